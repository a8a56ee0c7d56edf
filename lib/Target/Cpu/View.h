//===- View.h - Tensors as strided parts of storage -------------*- C++ -*-===//

#ifndef ESPALIER_LIB_TARGET_CPU_VIEW_H
#define ESPALIER_LIB_TARGET_CPU_VIEW_H

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace espalier::cpu {

/// Elements of a block of storage, by sizes and strides. Transposes, slices,
/// broadcasts (stride 0) and most reshapes of a tensor are views of it.
struct View {
  int64_t storage = -1; // an index into the program's storage
  int64_t offset = 0;   // elements
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<int64_t> strides; // elements
  mlir::Type elementType;

  int64_t rank() const { return shape.size(); }
  int64_t elements() const;
  /// The distance from the first to the last element, plus one.
  int64_t span() const;
  /// Row-major, without gaps.
  bool isDense() const;
};

/// Row-major strides.
llvm::SmallVector<int64_t> denseStrides(llvm::ArrayRef<int64_t> shape);

View denseView(int64_t storage, llvm::ArrayRef<int64_t> shape,
               mlir::Type elementType);

/// The same elements in another shape, if strides can express it.
std::optional<View> reshapeView(const View &view,
                                llvm::ArrayRef<int64_t> shape);
View transposeView(const View &view, llvm::ArrayRef<int64_t> permutation);
View sliceView(const View &view, llvm::ArrayRef<int64_t> offsets,
               llvm::ArrayRef<int64_t> steps, llvm::ArrayRef<int64_t> shape);
/// Aligned at the last dimension, with stride 0 where it repeats.
View broadcastView(const View &view, llvm::ArrayRef<int64_t> shape);

} // namespace espalier::cpu

#endif // ESPALIER_LIB_TARGET_CPU_VIEW_H
