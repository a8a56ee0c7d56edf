//===- RankHarness.h - Ranks without a program ------------------*- C++ -*-===//

#ifndef ESPALIER_TEST_UNIT_RUNTIME_RANKHARNESS_H
#define ESPALIER_TEST_UNIT_RUNTIME_RANKHARNESS_H

#include "runtime/Rank.h"

#include <functional>

namespace espalier::test {

/// Runs `body` in `ranks` processes that share a segment; returns how many of
/// them returned true. `metadata.groups` gives the groups.
int onRanks(const runtime::Metadata &metadata, int32_t ranks,
            uint64_t arenaBytes, uint64_t checksums,
            const std::function<bool(runtime::Rank &)> &body);

/// Metadata with one group, of all ranks.
runtime::Metadata worldOf(int32_t ranks);

} // namespace espalier::test

#endif // ESPALIER_TEST_UNIT_RUNTIME_RANKHARNESS_H
