//===- NnBuilders.cpp - Short ways to build nn ops ------------------------===//

#include "dialects/Nn/NnBuilders.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

std::optional<SmallVector<int64_t>> nn::broadcastShapes(ArrayRef<int64_t> a,
                                                        ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<int64_t> shape(a);
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t &size = shape[a.size() - b.size() + i];
    if (size != b[i] && size != 1 && b[i] != 1)
      return std::nullopt;
    size = size == 1 ? b[i] : size;
  }
  return shape;
}

SmallVector<Value> nn::buildMultiMap(OpBuilder &builder, Location loc,
                                     ValueRange operands,
                                     ArrayRef<int64_t> shape,
                                     MultiMapBody body) {
  // The types of the results are known once the body is built.
  auto region = std::make_unique<Region>();
  Block &block = region->emplaceBlock();
  for (Value operand : operands)
    block.addArgument(getElementTypeOrSelf(operand), loc);
  SmallVector<Type> types;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&block);
    SmallVector<Value> values = body(builder, loc, block.getArguments());
    for (Value value : values)
      types.push_back(RankedTensorType::get(shape, value.getType()));
    YieldOp::create(builder, loc, values);
  }
  OperationState state(loc, MapOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addRegion(std::move(region));
  return SmallVector<Value>(builder.create(state)->getResults());
}

Value nn::buildMap(OpBuilder &builder, Location loc, ValueRange operands,
                   MapBody body) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    auto both = broadcastShapes(shape, shapeOf(operand));
    assert(both && "the operands of a map broadcast");
    shape = *both;
  }
  return buildMultiMap(builder, loc, operands, shape,
                       [&](OpBuilder &b, Location l, ValueRange arguments) {
                         return SmallVector<Value>{body(b, l, arguments)};
                       })
      .front();
}

Value nn::buildAdd(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  return buildMap(builder, loc, {lhs, rhs},
                  [](OpBuilder &b, Location l, ValueRange args) -> Value {
                    if (isa<FloatType>(args[0].getType()))
                      return arith::AddFOp::create(b, l, args[0], args[1]);
                    return arith::AddIOp::create(b, l, args[0], args[1]);
                  });
}

Value nn::buildMul(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  return buildMap(builder, loc, {lhs, rhs},
                  [](OpBuilder &b, Location l, ValueRange args) -> Value {
                    if (isa<FloatType>(args[0].getType()))
                      return arith::MulFOp::create(b, l, args[0], args[1]);
                    return arith::MulIOp::create(b, l, args[0], args[1]);
                  });
}

Value nn::buildScale(OpBuilder &builder, Location loc, Value input,
                     double factor) {
  if (factor == 1.0)
    return input;
  return buildMap(builder, loc, {input},
                  [&](OpBuilder &b, Location l, ValueRange args) -> Value {
                    Value scale = arith::ConstantOp::create(
                        b, l, b.getFloatAttr(args[0].getType(), factor));
                    return arith::MulFOp::create(b, l, args[0], scale);
                  });
}

/// Converts a scalar.
static Value castScalar(OpBuilder &b, Location l, Value value, Type to) {
  Type from = value.getType();
  if (from == to)
    return value;
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  unsigned fromBits = from.getIntOrFloatBitWidth();
  unsigned toBits = to.getIntOrFloatBitWidth();
  if (fromFloat && toFloat) {
    if (toBits > fromBits)
      return arith::ExtFOp::create(b, l, to, value);
    return arith::TruncFOp::create(b, l, to, value);
  }
  if (toBits == 1) { // to a boolean: whether it is not zero
    Value zero = arith::ConstantOp::create(b, l, b.getZeroAttr(from));
    if (fromFloat)
      return arith::CmpFOp::create(b, l, arith::CmpFPredicate::UNE, value,
                                   zero);
    return arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne, value, zero);
  }
  if (fromFloat)
    return arith::FPToSIOp::create(b, l, to, value);
  if (toFloat && fromBits == 1)
    return arith::UIToFPOp::create(b, l, to, value);
  if (toFloat)
    return arith::SIToFPOp::create(b, l, to, value);
  if (fromBits > toBits)
    return arith::TruncIOp::create(b, l, to, value);
  if (fromBits == 1)
    return arith::ExtUIOp::create(b, l, to, value);
  return arith::ExtSIOp::create(b, l, to, value);
}

Value nn::buildCast(OpBuilder &builder, Location loc, Value input,
                    Type elementType) {
  if (getElementTypeOrSelf(input) == elementType)
    return input;
  return buildMap(builder, loc, {input},
                  [&](OpBuilder &b, Location l, ValueRange args) {
                    return castScalar(b, l, args[0], elementType);
                  });
}

Value nn::buildSplat(OpBuilder &builder, Location loc, RankedTensorType type,
                     double value) {
  type = RankedTensorType::get(type.getShape(), type.getElementType());
  Attribute element =
      isa<FloatType>(type.getElementType())
          ? Attribute(builder.getFloatAttr(type.getElementType(), value))
          : builder.getIntegerAttr(type.getElementType(), int64_t(value));
  return ConstantOp::create(builder, loc, type,
                            DenseElementsAttr::get(type, element));
}

Value nn::buildReduce(OpBuilder &builder, Location loc, ReductionKind kind,
                      Value input, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return input;
  SmallVector<int64_t> shape(shapeOf(input));
  for (int64_t dim : dims)
    shape[dim] = 1;
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(input));
  return ReduceOp::create(builder, loc, type, kind, input, dims);
}

Value nn::buildSumTo(OpBuilder &builder, Location loc, Value input,
                     ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = shapeOf(input);
  size_t missing = from.size() - shape.size();
  SmallVector<int64_t> dims;
  for (size_t dim = 0; dim < from.size(); ++dim)
    if (from[dim] != 1 && (dim < missing || shape[dim - missing] == 1))
      dims.push_back(dim);
  Value sum = buildReduce(builder, loc, ReductionKind::Sum, input, dims);
  return buildReshape(builder, loc, sum, shape);
}

Value nn::buildContract(OpBuilder &builder, Location loc, StringRef equation,
                        Value lhs, Value rhs) {
  auto [operands, result] = equation.split("->");
  auto [left, right] = operands.split(',');
  SmallVector<int64_t> shape;
  for (char letter : result) {
    size_t at = left.find(letter);
    shape.push_back(at != StringRef::npos ? shapeOf(lhs)[at]
                                          : shapeOf(rhs)[right.find(letter)]);
  }
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(lhs));
  return ContractOp::create(builder, loc, type, equation, lhs, rhs);
}

Value nn::buildReshape(OpBuilder &builder, Location loc, Value input,
                       ArrayRef<int64_t> shape) {
  if (shapeOf(input) == shape)
    return input;
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(input));
  return ReshapeOp::create(builder, loc, type, input);
}

Value nn::buildTranspose(OpBuilder &builder, Location loc, Value input,
                         ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return input;
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(shapeOf(input)[dim]);
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(input));
  return TransposeOp::create(builder, loc, type, input, permutation);
}

Value nn::buildBroadcast(OpBuilder &builder, Location loc, Value input,
                         ArrayRef<int64_t> shape) {
  if (shapeOf(input) == shape)
    return input;
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(input));
  return BroadcastOp::create(builder, loc, type, input);
}

Value nn::buildSlice(OpBuilder &builder, Location loc, Value input,
                     ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  if (shapeOf(input) == sizes)
    return input;
  auto type = RankedTensorType::get(sizes, getElementTypeOrSelf(input));
  SmallVector<int64_t> strides(sizes.size(), 1);
  return SliceOp::create(builder, loc, type, input, offsets, strides);
}

Value nn::buildConcat(OpBuilder &builder, Location loc, ValueRange inputs,
                      int64_t dim) {
  if (inputs.size() == 1)
    return inputs.front();
  SmallVector<int64_t> shape(shapeOf(inputs.front()));
  shape[dim] = 0;
  for (Value input : inputs)
    shape[dim] += shapeOf(input)[dim];
  auto type =
      RankedTensorType::get(shape, getElementTypeOrSelf(inputs.front()));
  return ConcatOp::create(builder, loc, type, inputs, dim);
}
