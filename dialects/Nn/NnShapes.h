//===- NnShapes.h - Shapes of tensors, for verifiers and rules --*- C++ -*-===//
//
// Works on shapes alone: from `planned` on, types carry shardings too, and two
// tensors of one shape can have different types.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_DIALECTS_NN_NNSHAPES_H
#define ESPALIER_DIALECTS_NN_NNSHAPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/TypeUtilities.h"

namespace espalier::nn {

inline mlir::RankedTensorType tensorTypeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return tensorTypeOf(value).getShape();
}
inline int64_t rankOf(mlir::Value value) {
  return tensorTypeOf(value).getRank();
}
inline int64_t elementCount(mlir::Value value) {
  return tensorTypeOf(value).getNumElements();
}

/// Whether a tensor of shape `from` broadcasts to `to`: aligned at the last
/// dimension, each size is equal or 1 or absent.
inline bool broadcasts(llvm::ArrayRef<int64_t> from,
                       llvm::ArrayRef<int64_t> to) {
  if (from.size() > to.size())
    return false;
  for (auto [size, target] : llvm::zip(from, to.take_back(from.size())))
    if (size != 1 && size != target)
      return false;
  return true;
}

/// Fails, with an error on `op`, unless `value` has `shape`. `what` says what
/// that shape is.
inline llvm::LogicalResult verifyShape(mlir::Operation *op, mlir::Value value,
                                       llvm::ArrayRef<int64_t> shape,
                                       llvm::StringRef what) {
  if (shapeOf(value) == shape)
    return llvm::success();
  return op->emitOpError("expects ")
         << what << ", [" << shape << "], but got " << value.getType();
}

/// The geometry of a convolution or pooling along its spatial dimensions.
struct Window {
  llvm::ArrayRef<int64_t> kernel, strides, padsLow, padsHigh, dilations;

  /// The number of positions along spatial dimension `dim` of a padded input of
  /// `size`; less than 1 where the kernel does not fit.
  int64_t resultSize(unsigned dim, int64_t size) const {
    int64_t extent = dilations[dim] * (kernel[dim] - 1) + 1;
    int64_t room = size + padsLow[dim] + padsHigh[dim] - extent;
    return room < 0 ? 0 : room / strides[dim] + 1;
  }
};

} // namespace espalier::nn

#endif // ESPALIER_DIALECTS_NN_NNSHAPES_H
