//===- DistOps.cpp - Verifiers of the dist dialect ------------------------===//

#include "dialects/Dist/Dist.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::dist;

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult MeshOp::verify() {
  llvm::StringSet<> names;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    if (!names.insert(axis.getName()).second) // (C1)
      return emitOpError("expects axes of different names, but got '")
             << axis.getName() << "' twice";
  return success();
}

LogicalResult ReshardOp::verify() {
  RankedTensorType from = tensorType(getInput()), to = tensorType(getResult());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType()) // (C1)
    return emitOpError("expects one shape and element type, but got ")
           << from << " and " << to;
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (!llvm::equal(getInputs().getTypes(), getResultTypes())) // (C1)
    return emitOpError("expects results of the operands' types");
  return success();
}

/// Checks that `whole` is `block` but for a multiple of its size in `dim`.
static LogicalResult verifyBlocks(Operation *op, Value block, Value whole,
                                  int64_t dim) {
  SmallVector<int64_t> small(tensorType(block).getShape());
  SmallVector<int64_t> large(tensorType(whole).getShape());
  bool isDim = dim >= 0 && dim < int64_t(small.size());
  if (!isDim || small.size() != large.size() || small[dim] == 0 ||
      large[dim] % small[dim] != 0)
    return op->emitOpError("expects blocks along a dimension, but got ")
           << block.getType() << " and " << whole.getType() << " along " << dim;
  large[dim] = small[dim];
  if (small != large)
    return op->emitOpError("expects shapes that differ only in dimension ")
           << dim << ", but got " << block.getType() << " and "
           << whole.getType();
  return success();
}

LogicalResult AllGatherOp::verify() {
  return verifyBlocks(*this, getInput(), getResult(), getDim()); // (C1)
}
LogicalResult ReduceScatterOp::verify() {
  return verifyBlocks(*this, getResult(), getInput(), getDim()); // (C1)
}
LogicalResult ShardSliceOp::verify() {
  return verifyBlocks(*this, getResult(), getInput(), getDim()); // (C1)
}

LogicalResult AllToAllOp::verify() {
  SmallVector<int64_t> from(tensorType(getInput()).getShape());
  SmallVector<int64_t> to(tensorType(getResult()).getShape());
  int64_t split = getSplitDim(), concat = getConcatDim();
  int64_t rank = from.size();
  if (from.size() != to.size() || split < 0 || split >= rank || concat < 0 ||
      concat >= rank || split == concat ||
      from[split] * from[concat] != to[split] * to[concat]) // (C1)
    return emitOpError("expects a cut moved between two dimensions, but got ")
           << getInput().getType() << " and " << getResult().getType();
  to[split] = from[split];
  to[concat] = from[concat];
  if (from != to) // (C1)
    return emitOpError("expects shapes that differ only in the two dimensions, "
                       "but got ")
           << getInput().getType() << " and " << getResult().getType();
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.cpp.inc"
