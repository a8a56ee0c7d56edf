//===- NnBuilder.h - Makes ops of dialect nn -*- C++ -*-===//
//
// All ops that the importer makes are made here, each at the location of the
// node at hand. Shapes are known and checked by the caller.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_NNBUILDER_H
#define ESPALIER_LIB_IMPORT_ONNX_NNBUILDER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

#include "Constant.h"

namespace espalier::onnx {

/// Scalar arithmetic in the body of an nn.map, by the operands' type.
class ScalarBuilder {
public:
  ScalarBuilder(mlir::OpBuilder &builder, mlir::Location location)
      : builder(builder), location(location) {}
  using V = mlir::Value;

  V constant(double value, mlir::Type type);
  V constantLike(double value, V like) {
    return constant(value, like.getType());
  }
  V makeConstant(mlir::TypedAttr value);
  V exp(V a);
  V log(V a);
  V sqrt(V a);
  V abs(V a);
  V tanh(V a);
  V erf(V a);
  V sin(V a);
  V cos(V a);
  V floor(V a);
  V ceil(V a);
  V roundEven(V a);
  V pow(V a, V b);
  /// b where a > threshold, else c; NaN gives c.
  V selectGreater(V a, double threshold, V b, V c);
  V selectLessOrEqual(V a, double threshold, V b, V c);
  V add(V a, V b);
  V sub(V a, V b);
  V mul(V a, V b);
  V div(V a, V b);
  V neg(V a);
  V max(V a, V b);
  V min(V a, V b);
  V select(V condition, V a, V b);
  V logicalAnd(V a, V b);
  V logicalOr(V a, V b);
  V logicalXor(V a, V b);
  V logicalNot(V a);
  enum class Compare { Equal, Less, LessOrEqual, Greater, GreaterOrEqual };
  V compare(Compare kind, V a, V b);
  V isNan(V a);
  V cast(V a, mlir::Type to, bool fromUnsigned, bool toUnsigned);
  /// 1 / (1 + exp(-a))
  V sigmoid(V a);

  template <typename Op, typename... Args>
  V make(Args... args) {
    return Op::create(builder, location, args...);
  }
  mlir::OpBuilder &builder;
  mlir::Location location;
};

class NnBuilder {
public:
  NnBuilder(mlir::OpBuilder &builder, mlir::Location location)
      : builder(builder), location(location) {}
  using Value = mlir::Value;
  using Body = llvm::function_ref<Value(ScalarBuilder &, mlir::ValueRange)>;

  /// In its stored shape.
  Value constant(const Constant &constant);
  Value scalarConstant(double value, mlir::Type element);
  /// An elementwise op; operands broadcast to `shape`.
  Value map(mlir::ValueRange operands, llvm::ArrayRef<int64_t> shape,
            mlir::Type element, Body body);
  Value broadcast(Value value, llvm::ArrayRef<int64_t> shape);
  Value reshape(Value value, llvm::ArrayRef<int64_t> shape);
  Value transpose(Value value, llvm::ArrayRef<int64_t> perm);
  Value slice(Value value, llvm::ArrayRef<int64_t> offsets,
              llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides);
  /// Part of one dimension.
  Value sliceDim(Value value, int64_t dim, int64_t offset, int64_t size,
                 int64_t stride = 1);
  Value concat(mlir::ValueRange values, int64_t dim);
  Value pad(Value value, llvm::ArrayRef<int64_t> low,
            llvm::ArrayRef<int64_t> high, double fill);
  Value iota(llvm::ArrayRef<int64_t> shape, int64_t dim, mlir::Type element);
  enum class Reduce { Sum, Max, Min, Prod };
  /// Reduced dimensions stay with size 1.
  Value reduce(Reduce kind, Value value, llvm::ArrayRef<int64_t> dims);
  Value contract(llvm::StringRef equation, Value a, Value b);
  Value softmax(Value value, bool zeroMaskedRows = false);
  Value layerNorm(Value value, Value scale, Value bias, double epsilon);
  Value rmsNorm(Value value, Value scale, double epsilon);
  struct Window {
    Shape kernel, strides, low, high, dilations;
  };
  Value conv(Value value, Value weight, const Window &window, int64_t groups);
  Value maxPool(Value value, const Window &window,
                llvm::ArrayRef<int64_t> shape);
  Value avgPool(Value value, const Window &window, bool countPadding,
                llvm::ArrayRef<int64_t> shape);
  Value gather(Value table, Value indices);
  Value attention(Value q, Value k, Value v, Value mask, double scale,
                  bool causal);
  Value rope(Value value, Value cos, Value sin, bool interleaved);
  Value randomUniform(Value rng, llvm::ArrayRef<int64_t> shape,
                      llvm::StringRef stream);

  static llvm::ArrayRef<int64_t> shapeOf(Value value);
  static mlir::Type elementOf(Value value);

  mlir::OpBuilder &builder;
  mlir::Location location;
};

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_NNBUILDER_H
