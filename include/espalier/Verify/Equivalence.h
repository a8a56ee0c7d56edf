//===- Equivalence.h - Do all ranks compute what one device would *- C++
//-*-===//
//
// Runs a differentiated program on one device and its partitioned form on all
// virtual ranks, in fp64, on random numbers, and compares every value that both
// have. The programs are small: see Shrink.h.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_VERIFY_EQUIVALENCE_H
#define ESPALIER_VERIFY_EQUIVALENCE_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace espalier {

/// Gives each op of @grad and @update a number by which its forms in the
/// planned and the partitioned module are found again. Before sharding.
void numberOps(mlir::ModuleOp module);

struct EquivalenceOptions {
  uint64_t seed = 0;
  /// How many of the last samples of the batch are padding. Padding that counts
  /// somewhere is a difference.
  int64_t padded = 1;
};

struct EquivalenceResult {
  bool equivalent = true;
  /// Of the first value that differs: its op, node, rank, and by how much.
  std::string difference;
  int64_t comparedValues = 0;
  int64_t comparedElements = 0;
  /// The largest difference, as a part of the bound that rounding sets.
  double worst = 0;
};

/// Compares `whole` (differentiated, with numbered ops) with `partitioned`,
/// which came from it by way of `planned`. Fails, with an error, where a
/// program cannot be run.
///
/// The bound: both sides compute in fp64, and differ by the order of sums
/// alone. A value may differ by 2^-53 times its number of terms (bounded by the
/// elements of all tensors together) times the largest magnitude of a value of
/// its kind.
mlir::FailureOr<EquivalenceResult>
compareWithSingleDevice(mlir::ModuleOp whole, mlir::ModuleOp planned,
                        mlir::ModuleOp partitioned,
                        const EquivalenceOptions &options = {});

} // namespace espalier

#endif // ESPALIER_VERIFY_EQUIVALENCE_H
