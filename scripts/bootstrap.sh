#!/usr/bin/env bash
# Installs the Debian 12 packages that building, testing and the demo need.
# Does nothing where all of them are there.
set -euo pipefail

packages=(
  # Building. clang, lld and MLIR are of version 22.
  cmake ninja-build ccache git
  clang-22 lld-22 llvm-22-dev libmlir-22-dev mlir-22-tools
  libprotobuf-dev protobuf-compiler nlohmann-json3-dev libzstd-dev
  # Testing.
  llvm-22-tools clang-format-22 clang-tidy-22 libclang-rt-22-dev
  libgtest-dev libbenchmark-dev librapidcheck-dev
  python3 python3-numpy python3-yaml
  # What training binaries open by name.
  libdnnl2
  # The demo's text.
  bible-kjv
)

installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/^installed //p') || true
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package" <<<"$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "bootstrap: all ${#packages[@]} packages are there"
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "bootstrap: this is not Debian; it needs what these packages of Debian 12 hold: ${missing[*]}" >&2
  exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "bootstrap: run this as root: these packages are missing: ${missing[*]}" >&2
  exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -q
for package in "${missing[@]}"; do
  if ! apt-cache show --no-all-versions "$package" >/dev/null 2>&1; then
    echo "bootstrap: there is no package '$package' in the configured sources." >&2
    echo "  The packages of version 22 are LLVM's own for Debian 12 (suite llvm-toolchain-bookworm-22):" >&2
    echo "  add that source, then run this again." >&2
    exit 1
  fi
done
apt-get install -y -q --no-install-recommends "${missing[@]}"
echo "bootstrap: installed ${missing[*]}"
