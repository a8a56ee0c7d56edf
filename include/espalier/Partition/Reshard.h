//===- Reshard.h - From one sharding to another -----------------*- C++ -*-===//
//
// A reshard is a sequence of collectives and local slices. Each step moves one
// or more axes of a tensor from where they are (cutting a dimension, partial,
// or nowhere) to where they should be:
//
//   partial   -> nowhere    all-reduce
//   partial   -> cutting    reduce-scatter
//   cutting   -> nowhere    all-gather
//   cutting   -> cutting    all-to-all
//   nowhere   -> cutting    slice, without communication
//
// Only the minor-most axis of a dimension can be moved or put there; what lies
// behind an axis in the way is gathered first. A step that must gather what a
// cheaper one could have moved is possible, and its bytes are in the price.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_PARTITION_RESHARD_H
#define ESPALIER_PARTITION_RESHARD_H

#include "espalier/Sharding/Sharding.h"

namespace espalier {

enum class ReshardKind { AllReduce, ReduceScatter, AllGather, AllToAll, Slice };

struct ReshardStep {
  ReshardKind kind;
  Axis axis;
  ReductionKind reduction = ReductionKind::Sum; // AllReduce, ReduceScatter
  unsigned dim = 0; // the dimension that is cut or gathered; AllToAll: was cut
  unsigned toDim = 0; // AllToAll: is cut then
};

/// The steps from one sharding of a tensor to another. Fails where the sizes do
/// not divide, or where a replicated value should become partial.
mlir::FailureOr<llvm::SmallVector<ReshardStep>>
planReshard(const Mesh &mesh, llvm::ArrayRef<int64_t> shape,
            const Sharding &from, const Sharding &to);

} // namespace espalier

#endif // ESPALIER_PARTITION_RESHARD_H
