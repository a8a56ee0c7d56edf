//===- Elementwise.cpp - Folding and building of elementwise ops -*- C++
//-*-===//

#include "Elementwise.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace llvm;

namespace espalier::onnx {

ImportedValue tensorValue(mlir::Value value) {
  ImportedValue result;
  result.kind = ImportedValue::Kind::Tensor;
  result.dtype = dtypeOf(NnBuilder::elementOf(value));
  result.shape = Shape(NnBuilder::shapeOf(value));
  result.value = value;
  return result;
}

ImportedValue tensorValue(Constant constant) {
  ImportedValue result;
  result.kind = ImportedValue::Kind::Tensor;
  result.dtype = constant.dtype;
  result.shape = constant.shape;
  result.constant = std::move(constant);
  return result;
}

/// The stored shape of an elementwise result: a dimension varies only if it
/// does in some operand.
static Shape storedShape(ArrayRef<ImportedValue> operands,
                         ArrayRef<int64_t> shape) {
  Shape stored(shape.size(), 1);
  for (const ImportedValue &operand : operands) {
    const Shape &own = operand.constant->stored;
    size_t skip = shape.size() - own.size();
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i] != 1)
        stored[skip + i] = own[i];
  }
  return stored;
}

static Constant foldConstant(ArrayRef<ImportedValue> operands,
                             ArrayRef<int64_t> shape, ArrayRef<int64_t> stored,
                             Dtype dtype, const Computation &compute) {
  SmallVector<Shape> strides;
  for (const ImportedValue &operand : operands)
    strides.push_back(operand.constant->stridesFor(stored));
  std::vector<Scalar> data;
  data.reserve(*elementCount(stored));
  SmallVector<Scalar, 4> arguments(operands.size());
  walk(stored, strides, [&](ArrayRef<int64_t> at) {
    for (size_t i = 0; i < operands.size(); ++i)
      arguments[i] = (*operands[i].constant->data)[at[i]];
    data.push_back(roundTo(dtype, compute.fold(arguments)));
  });
  Constant result = Constant::make(dtype, stored, std::move(data));
  result.shape.assign(shape.begin(), shape.end());
  return result;
}

/// A scalar of a type from an element of a constant, exact for all integers.
static mlir::Value scalarArgument(ScalarBuilder &scalars, const Constant &value,
                                  mlir::Type type) {
  if (value.isFloat())
    return scalars.constant(value.first().f, type);
  auto attr = mlir::IntegerAttr::get(
      type, APInt(type.getIntOrFloatBitWidth(), uint64_t(value.first().i),
                  /*isSigned=*/false, /*implicitTrunc=*/true));
  return scalars.makeConstant(attr);
}

static mlir::Value buildElementwise(NodeContext &node,
                                    ArrayRef<ImportedValue> operands,
                                    ArrayRef<int64_t> shape, mlir::Type element,
                                    const Computation &compute) {
  SmallVector<mlir::Value> tensors;
  for (const ImportedValue &operand : operands)
    if (!operand.constant || !operand.constant->isUniform())
      tensors.push_back(node.compact(operand));
  auto body = [&](ScalarBuilder &scalars, mlir::ValueRange args) {
    SmallVector<mlir::Value> all;
    unsigned next = 0;
    for (const ImportedValue &operand : operands) {
      bool isInline = operand.constant && operand.constant->isUniform();
      mlir::Type type =
          elementType(node.state.builder.getContext(), operand.dtype);
      all.push_back(isInline ? scalarArgument(scalars, *operand.constant, type)
                             : args[next++]);
    }
    return compute.body(scalars, all);
  };
  return node.nn.map(tensors, shape, element, body);
}

ImportedValue elementwise(NodeContext &node, ArrayRef<ImportedValue> operands,
                          Dtype result, const Computation &compute) {
  SmallVector<Shape> shapes;
  bool isConstant = true;
  for (const ImportedValue &operand : operands) {
    shapes.push_back(operand.shape);
    isConstant &= operand.constant.has_value();
  }
  std::optional<Shape> shape = broadcastShapes(shapes);
  if (!shape) {
    std::string text;
    for (const Shape &part : shapes)
      text += (text.empty() ? "" : ", ") + shapeText(part);
    node.fail("operands of shapes " + text + " do not broadcast");
    return {};
  }
  if (isConstant) {
    Shape stored = storedShape(operands, *shape);
    // A large comparison of positions says more than its table of bits.
    bool isLargeMask =
        result == Dtype::Bool && *elementCount(stored) > (1 << 16);
    if (!isLargeMask && node.mayFold(*elementCount(stored)))
      return tensorValue(
          foldConstant(operands, *shape, stored, result, compute));
  }
  mlir::Type element = elementType(node.state.builder.getContext(), result);
  return tensorValue(
      buildElementwise(node, operands, *shape, element, compute));
}

void elementwise(NodeContext &node, Dtype result, const Computation &compute) {
  SmallVector<ImportedValue> operands;
  for (unsigned i = 0; i < node.inputs(); ++i)
    operands.push_back(node.in(i));
  ImportedValue value = elementwise(node, operands, result, compute);
  if (!node.failed())
    node.set(0, std::move(value));
}

Scalar castScalar(Scalar value, Dtype from, Dtype to) {
  if (isFloating(from) && isFloating(to))
    return roundTo(to, value);
  Scalar result;
  if (isFloating(from)) {
    if (to == Dtype::Bool)
      result.i = value.f != 0;
    else if (std::isnan(value.f))
      result.i = 0;
    else if (value.f >= 9.2233720368547758e18)
      result.i = INT64_MAX;
    else if (value.f <= -9.2233720368547758e18)
      result.i = INT64_MIN;
    else
      result.i = int64_t(value.f);
    return roundTo(to, result);
  }
  if (isFloating(to)) {
    result.f =
        from == Dtype::Uint64 ? double(uint64_t(value.i)) : double(value.i);
    return roundTo(to, result);
  }
  return roundTo(to, value);
}

static bool isUnsigned(Dtype dtype) {
  return dtype == Dtype::Uint8 || dtype == Dtype::Uint16 ||
         dtype == Dtype::Uint32 || dtype == Dtype::Uint64;
}

ImportedValue castTo(NodeContext &node, const ImportedValue &value, Dtype to) {
  if (value.dtype == to)
    return value;
  mlir::Type element = elementType(node.state.builder.getContext(), to);
  Dtype from = value.dtype;
  ImportedValue result = elementwise(
      node, value, to,
      {[&](ArrayRef<Scalar> x) { return castScalar(x[0], from, to); },
       [&](ScalarBuilder &s, mlir::ValueRange x) {
         return s.cast(x[0], element, isUnsigned(from), isUnsigned(to));
       }});
  // Between integers the values stay what they are.
  if (!isFloating(from) && !isFloating(to) && to != Dtype::Bool)
    result.input = value.input;
  return result;
}

} // namespace espalier::onnx
