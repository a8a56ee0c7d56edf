//===- Tensor.h - A tensor's elements, for the interpreter ------*- C++ -*-===//

#ifndef ESPALIER_INTERPRETER_TENSOR_H
#define ESPALIER_INTERPRETER_TENSOR_H

#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/BuiltinTypes.h"

#include <vector>

namespace espalier {

/// How the elements of a floating-point type are kept between ops.
enum class Precision {
  AsTyped, // rounded to the type (f32, bf16, f16; f64 is exact) after every op
  Double,  // as doubles, whatever the type: the exact program, to compare with
};

/// The nearest value of `type`, ties to even.
double roundToType(double value, mlir::Type type);

/// A tensor's elements, row-major. Those of a floating-point type are doubles;
/// those of an integer type are sign-extended, but for i1, which is 0 or 1.
struct Tensor {
  mlir::Type elementType;
  llvm::SmallVector<int64_t> shape;
  std::vector<double> floats;    // of a floating-point type
  std::vector<int64_t> integers; // of an integer type

  Tensor() = default;
  /// Zeros. A sharding in the type is ignored: the shape is what counts.
  explicit Tensor(mlir::RankedTensorType type);
  Tensor(mlir::RankedTensorType type, std::vector<double> floats);
  Tensor(mlir::RankedTensorType type, std::vector<int64_t> integers);

  /// The elements of a constant. Fails where they are not in the program.
  static mlir::FailureOr<Tensor> fromAttribute(mlir::ElementsAttr value,
                                               mlir::RankedTensorType type);

  bool isFloat() const { return llvm::isa<mlir::FloatType>(elementType); }
  int64_t size() const;
  int64_t rank() const { return shape.size(); }

  /// Rounds every element to the element type.
  void round();
};

} // namespace espalier

#endif // ESPALIER_INTERPRETER_TENSOR_H
