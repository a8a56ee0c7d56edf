//===- Constant.h - Tensors known at import -*- C++ -*-===//
//
// Exporters compute shapes, positions and masks in the graph. With sizes bound
// all of that is constant; a Constant is one such tensor.
//
// Masks are large only because they repeat: a causal mask of 32 samples is 32
// equal ones. So a Constant stores each dimension along which it does not
// change with size 1, and arithmetic is done on stored elements alone. Beside
// speed this keeps the batch out of constants, which then hold for every batch.
//
//   shape {32, 1, 3, 3}, stored {1, 1, 3, 3}: 9 elements
//   Expand: changes `shape` only
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_CONSTANT_H
#define ESPALIER_LIB_IMPORT_ONNX_CONSTANT_H

#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>
#include <vector>

#include "Tensors.h"

namespace espalier::onnx {

/// One element. Floating types are kept as double (rounded to their type), the
/// others as int64 (bool is 0 or 1, uint64 wraps).
union Scalar {
  double f;
  int64_t i;
};

class Constant {
public:
  Dtype dtype = Dtype::Undefined;
  Shape shape;  // what the graph sees
  Shape stored; // of each dimension its size, or 1 if it does not vary
  std::shared_ptr<const std::vector<Scalar>> data; // row-major over `stored`

  bool isFloat() const { return isFloating(dtype); }
  int64_t elements() const { return *elementCount(shape); }
  int64_t storedElements() const { return data->size(); }
  /// All elements are equal (and there is one).
  bool isUniform() const { return data->size() == 1 && elements() > 0; }
  Scalar first() const { return data->front(); }
  double firstAsDouble() const {
    return isFloat() ? first().f : double(first().i);
  }

  /// The same tensor with every dimension stored in full.
  Constant expanded() const;
  /// Strides of `stored` for walking `shape`: 0 where it does not vary.
  Shape strides() const;
  /// Strides for walking `target`, to which `shape` broadcasts.
  Shape stridesFor(llvm::ArrayRef<int64_t> target) const;
  /// All elements of an integer constant in order.
  std::vector<int64_t> ints() const;

  static Constant make(Dtype dtype, llvm::ArrayRef<int64_t> shape,
                       std::vector<Scalar> data);
  static Constant fromInts(llvm::ArrayRef<int64_t> values, Dtype dtype,
                           bool isScalar = false);
  static Constant scalar(double value, Dtype dtype);
  static Constant scalarInt(int64_t value, Dtype dtype);
  /// From raw data of exactly the right size.
  static Constant fromBytes(Dtype dtype, llvm::ArrayRef<int64_t> shape,
                            llvm::StringRef bytes);

  /// Stores dimensions along which nothing changes with size 1.
  void compress();
};

/// The value as the type can hold it: floating types rounded, integers wrapped.
Scalar roundTo(Dtype dtype, Scalar value);

/// first, first + 1, ..., end - 1
Shape dimsBetween(int64_t first, int64_t end);

/// Row-major strides.
Shape rowMajor(llvm::ArrayRef<int64_t> shape);

/// numpy's broadcast of shapes; nothing if they do not fit.
std::optional<Shape> broadcastShapes(llvm::ArrayRef<Shape> shapes);

/// Calls `visit(offsets)` for every index of `shape` in row-major order, with
/// the offset into each operand by its strides.
void walk(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<Shape> strides,
          llvm::function_ref<void(llvm::ArrayRef<int64_t> offsets)> visit);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_CONSTANT_H
