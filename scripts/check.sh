#!/usr/bin/env bash
# What a change must pass: packages, release build, format, tidy, all tests.
#
#   scripts/check.sh [BASE]
#
# BASE is the commit that changes are counted from, for tidy; else where this branch
# left origin/main, or the commit before.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

jobs=$(nproc)
tidy_seconds=420 # for all files together
failed=()
summary=()

# Runs one step: step NAME COMMAND... ; what must not fail is followed by `|| stop`.
step() {
  local name=$1 start=$SECONDS status=0
  shift
  echo "== $name"
  "$@" || status=$?
  summary+=("$(printf '%-10s %-6s %4d s' "$name" "$([ $status -eq 0 ] && echo ok || echo FAILED)" $((SECONDS - start)))")
  [ $status -eq 0 ] || failed+=("$name")
  return $status
}

report() {
  printf '%s\n' "== summary" "${summary[@]}"
}

stop() {
  report
  echo "check: FAILED: ${failed[*]}"
  exit 1
}

check_format() {
  git ls-files -z '*.cpp' '*.h' | xargs -0 clang-format-22 --dry-run -Werror
}

changed_sources() {
  local base=${1:-}
  [ -n "$base" ] || base=$(git merge-base HEAD origin/main 2>/dev/null) || base=
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
    base=$(git rev-parse -q --verify HEAD~1 || git hash-object -t tree /dev/null)
  fi
  git diff --name-only --diff-filter=d "$base" -- \
    dialects lib passes runtime tools test | grep '\.cpp$'
}

# As many of the changed files as the time allows, small ones first.
check_tidy() {
  local files done_list status=0 count
  files=$(changed_sources "${1:-}" | xargs -r ls -Sr --)
  [ -n "$files" ] || { echo "no source has changed"; return 0; }
  done_list=$(mktemp)
  timeout "$tidy_seconds" xargs -P "$jobs" -I{} sh -c \
    'clang-tidy-22 -p build/release --quiet {} && echo {} >>"$0" || exit 1' "$done_list" \
    <<<"$files" || status=$?
  count=$(wc -l <"$done_list")
  rm -f "$done_list"
  echo "$count of $(wc -l <<<"$files") changed files are tidy"
  if [ $status -eq 124 ]; then
    echo "the time for this was up; the others were not looked at"
    status=0
  fi
  return $status
}

step bootstrap bash scripts/bootstrap.sh || stop
step configure cmake --preset release || stop
step build cmake --build --preset release -j "$jobs" || stop
step format check_format
step tidy check_tidy "${1:-}"
report

# The tests come last, so that their own closing lines end the output.
ctest --preset release -j "$jobs" --timeout 900 || failed+=(tests)
if [ ${#failed[@]} -gt 0 ]; then
  echo "check: FAILED: ${failed[*]}"
  exit 1
fi
