//===- TestRuntime.h - A runtime for compiled programs in a test -*- C++
//-*-===//
//
// Naive products, and collectives among ranks that are threads of the test.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_TEST_UNIT_TARGET_CPU_TESTRUNTIME_H
#define ESPALIER_TEST_UNIT_TARGET_CPU_TESTRUNTIME_H

#include "espalier/runtime/abi.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <barrier>
#include <vector>

namespace espalier::test {

/// The ranks of a program, each with an arena.
class World {
public:
  World(int32_t ranks, uint64_t arenaBytes,
        std::vector<std::vector<int32_t>> groups);
  ~World();
  World(const World &) = delete;

  /// Calls a function on all ranks at once.
  void run(EspalierFunction function);
  uint8_t *arena(int32_t rank) { return contexts[rank].arena; }
  int32_t rankCount() const { return int32_t(contexts.size()); }

  /// Lets the ranks see what each has at `input`, then lets `receive` write.
  template <typename Receive>
  void exchange(EspalierContext *context, uint64_t input, uint64_t bytes,
                Receive receive) {
    const uint8_t *from = context->arena + input;
    sent[context->rank].assign(from, from + bytes);
    barrier.arrive_and_wait();
    receive();
    barrier.arrive_and_wait();
  }
  /// What member i of a group has sent.
  const uint8_t *sentBy(int32_t group, size_t member) const {
    return sent[groups[group][member]].data();
  }
  size_t groupSize(int32_t group) const { return groups[group].size(); }
  /// The place of a rank in its group.
  size_t placeOf(int32_t group, int32_t rank) const;

private:
  std::vector<EspalierContext> contexts;
  std::vector<std::vector<int32_t>> groups;
  std::vector<std::vector<uint8_t>> sent;
  std::barrier<> barrier;
};

/// Defines the functions of abi.h.
llvm::Error defineRuntime(llvm::orc::LLJIT &jit);

} // namespace espalier::test

#endif // ESPALIER_TEST_UNIT_TARGET_CPU_TESTRUNTIME_H
