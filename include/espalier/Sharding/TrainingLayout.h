//===- TrainingLayout.h - Shards a training program -------------*- C++ -*-===//
//
// From a layout in the words that users know to the shardings of a
// differentiated program (@grad and @update).
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_SHARDING_TRAININGLAYOUT_H
#define ESPALIER_SHARDING_TRAININGLAYOUT_H

#include "espalier/Sharding/ShardFunction.h"

namespace espalier {

/// What is fixed of a training program's layout.
struct TrainingLayout {
  /// The axes that cut the batch: the first dimension of inputs, labels and the
  /// mask of valid samples.
  AxisList batchAxes;
};

/// Types @grad and @update of `module`, which has a dist.mesh, with shardings.
/// Gradients, and the sums of losses and weights, are left partial by @grad, so
/// that they can be accumulated over microbatches and reduced once a step, in
/// @update. Returns the conflicts, in words. Fails with an error on the op at
/// fault.
mlir::FailureOr<llvm::SmallVector<std::string>>
shardTrainingProgram(mlir::ModuleOp module, const TrainingLayout &layout);

} // namespace espalier

#endif // ESPALIER_SHARDING_TRAININGLAYOUT_H
