//===- RankHarness.cpp - Ranks without a program --------------------------===//

#include "RankHarness.h"

#include <numeric>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace espalier::runtime;

namespace espalier::test {

int onRanks(const Metadata &metadata, int32_t ranks, uint64_t arenaBytes,
            uint64_t checksums, const std::function<bool(Rank &)> &body) {
  SegmentPlan plan;
  plan.ranks = ranks;
  plan.barriers = static_cast<uint32_t>(metadata.groups.size()) + 1;
  plan.arenaBytes = arenaBytes;
  plan.checksums = checksums;
  Segment segment;
  if (!segment.create(plan).ok())
    return -1;
  EspalierClass only = {nullptr, nullptr, nullptr, arenaBytes};
  std::vector<int32_t> classes(static_cast<size_t>(ranks), 0);
  EspalierProgram program = {ESPALIER_ABI_VERSION, ranks, &only, 1,
                             classes.data(),       ""};
  std::vector<pid_t> children;
  for (int32_t i = 0; i < ranks; ++i) {
    pid_t pid = fork();
    if (pid == 0) {
      Rank rank(program, metadata, segment, i, /*supervised=*/true);
      rank.slot.pid.store(getpid());
      _exit(body(rank) ? 0 : 1);
    }
    children.push_back(pid);
  }
  int succeeded = 0;
  for (pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    succeeded += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return succeeded;
}

Metadata worldOf(int32_t ranks) {
  Metadata metadata;
  metadata.groups.emplace_back(static_cast<size_t>(ranks));
  std::iota(metadata.groups[0].begin(), metadata.groups[0].end(), 0);
  metadata.ops.push_back({"op", "op"});
  return metadata;
}

} // namespace espalier::test
