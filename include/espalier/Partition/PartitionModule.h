//===- PartitionModule.h - From a plan to a rank's program ------*- C++ -*-===//

#ifndef ESPALIER_PARTITION_PARTITIONMODULE_H
#define ESPALIER_PARTITION_PARTITIONMODULE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace espalier {

/// Gives every tensor of a `planned` module the shape of a rank's block, and
/// every dist.reshard its collectives: from `planned` to `partitioned`. Fails,
/// with an error on the op, where a reshard is not supported.
mlir::LogicalResult partitionModule(mlir::ModuleOp module);

/// Puts all-reduces of one group and kind whose operands are all there at the
/// first of them into one op. Returns how many were put into another.
int64_t combineAllReduces(mlir::func::FuncOp function);

} // namespace espalier

#endif // ESPALIER_PARTITION_PARTITIONMODULE_H
