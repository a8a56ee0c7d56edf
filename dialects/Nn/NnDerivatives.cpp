//===- NnDerivatives.cpp - Derivatives of structural ops ------------------===//
//
// In the order of NnOps.td; that of nn.map is in MapDerivative.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

using Gradients = FailureOr<SmallVector<Value>>;

/// The gradients of an op's one operand that has any.
static Gradients only(Value gradient) { return SmallVector<Value>{gradient}; }

/// Surrounds `input` with zeros: `low[d]` before, and after it what is missing
/// to `shape`.
static Value padWithZeros(OpBuilder &builder, Location loc, Value input,
                          ArrayRef<int64_t> low, ArrayRef<int64_t> shape) {
  if (shapeOf(input) == shape)
    return input;
  SmallVector<int64_t> high;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    high.push_back(shape[dim] - low[dim] - shapeOf(input)[dim]);
  Type elementType = getElementTypeOrSelf(input);
  return PadOp::create(builder, loc, RankedTensorType::get(shape, elementType),
                       input, low, high,
                       cast<TypedAttr>(builder.getZeroAttr(elementType)));
}

//===----------------------------------------------------------------------===//
// Values from nothing
//===----------------------------------------------------------------------===//

Gradients ConstantOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                      ArrayRef<bool>) {
  return SmallVector<Value>();
}

Gradients IotaOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                  ArrayRef<bool>) {
  return SmallVector<Value>(getNumOperands());
}

Gradients RandomUniformOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                           ArrayRef<bool>) {
  return SmallVector<Value>(getNumOperands());
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

Gradients ReshapeOp::buildDerivative(OpBuilder &builder,
                                     ArrayRef<Value> resultGradients,
                                     ArrayRef<bool>) {
  return only(
      buildReshape(builder, getLoc(), resultGradients[0], shapeOf(getInput())));
}

Gradients TransposeOp::buildDerivative(OpBuilder &builder,
                                       ArrayRef<Value> resultGradients,
                                       ArrayRef<bool>) {
  return only(buildTranspose(builder, getLoc(), resultGradients[0],
                             invertPermutationVector(getPermutation())));
}

/// Puts `stride - 1` zeros after each element along `dim`: with a dimension of
/// size 1 after it, that is padding of that dimension.
static Value spread(OpBuilder &builder, Location loc, Value input, int64_t dim,
                    int64_t stride) {
  SmallVector<int64_t> shape(shapeOf(input)), low(shape.size() + 1, 0);
  shape.insert(shape.begin() + dim + 1, 1);
  Value column = buildReshape(builder, loc, input, shape);
  shape[dim + 1] = stride;
  Value padded = padWithZeros(builder, loc, column, low, shape);
  shape.erase(shape.begin() + dim + 1);
  shape[dim] *= stride;
  return buildReshape(builder, loc, padded, shape);
}

/// The gradient lies between zeros: those between its elements by `spread`,
/// whose last zeros may reach beyond the input and are then cut off, those
/// around by padding.
Gradients SliceOp::buildDerivative(OpBuilder &builder,
                                   ArrayRef<Value> resultGradients,
                                   ArrayRef<bool>) {
  Value gradient = resultGradients[0];
  ArrayRef<int64_t> input = shapeOf(getInput());
  SmallVector<int64_t> origin(input.size(), 0);
  for (auto [dim, stride] : llvm::enumerate(getStrides())) {
    if (stride == 1 || shapeOf(gradient)[dim] == 0)
      continue;
    gradient = spread(builder, getLoc(), gradient, dim, stride);
    SmallVector<int64_t> sizes(shapeOf(gradient));
    sizes[dim] = std::min(sizes[dim], input[dim] - getOffsets()[dim]);
    gradient = buildSlice(builder, getLoc(), gradient, origin, sizes);
  }
  return only(padWithZeros(builder, getLoc(), gradient, getOffsets(), input));
}

Gradients ConcatOp::buildDerivative(OpBuilder &builder,
                                    ArrayRef<Value> resultGradients,
                                    ArrayRef<bool> wanted) {
  SmallVector<Value> gradients;
  SmallVector<int64_t> offsets(rankOf(getResult()), 0);
  for (auto [input, isWanted] : llvm::zip(getInputs(), wanted)) {
    gradients.push_back(isWanted
                            ? buildSlice(builder, getLoc(), resultGradients[0],
                                         offsets, shapeOf(input))
                            : Value());
    offsets[getDim()] += shapeOf(input)[getDim()];
  }
  return gradients;
}

Gradients PadOp::buildDerivative(OpBuilder &builder,
                                 ArrayRef<Value> resultGradients,
                                 ArrayRef<bool>) {
  return only(buildSlice(builder, getLoc(), resultGradients[0], getLow(),
                         shapeOf(getInput())));
}

Gradients BroadcastOp::buildDerivative(OpBuilder &builder,
                                       ArrayRef<Value> resultGradients,
                                       ArrayRef<bool>) {
  return only(
      buildSumTo(builder, getLoc(), resultGradients[0], shapeOf(getInput())));
}

//===----------------------------------------------------------------------===//
// Reductions and products
//===----------------------------------------------------------------------===//

static Value compare(OpBuilder &b, Location l, Value lhs, Value rhs) {
  return arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, lhs, rhs);
}

static Value constant(OpBuilder &b, Location l, Type type, double number) {
  return arith::ConstantOp::create(b, l, b.getFloatAttr(type, number));
}

/// All elements that are the extremum share its gradient evenly, as in PyTorch.
static Value differentiateExtremum(OpBuilder &builder, ReduceOp op, Value dy) {
  Location loc = op.getLoc();
  Value x = op.getInput(), y = op.getResult();
  Value isExtremum = buildMap(
      builder, loc, {x, y}, [](OpBuilder &b, Location l, ValueRange args) {
        Value equal = compare(b, l, args[0], args[1]);
        Type type = args[0].getType();
        return arith::SelectOp::create(b, l, equal, constant(b, l, type, 1),
                                       constant(b, l, type, 0));
      });
  Value count =
      buildReduce(builder, loc, ReductionKind::Sum, isExtremum, op.getDims());
  return buildMap(builder, loc, {x, y, dy, count},
                  [](OpBuilder &b, Location l, ValueRange args) {
                    Value equal = compare(b, l, args[0], args[1]);
                    Value share = arith::DivFOp::create(b, l, args[2], args[3]);
                    return arith::SelectOp::create(
                        b, l, equal, share, constant(b, l, share.getType(), 0));
                  });
}

/// The product of the others. With z zeros among the elements and p the product
/// of those that are not zero it is p / x without zeros, p at a single zero,
/// else 0.
static Value differentiateProduct(OpBuilder &builder, ReduceOp op, Value dy) {
  Location loc = op.getLoc();
  Value x = op.getInput();
  SmallVector<Value> parts =
      buildMultiMap(builder, loc, {x}, shapeOf(x),
                    [](OpBuilder &b, Location l, ValueRange args) {
                      Value zero = constant(b, l, args[0].getType(), 0);
                      Value one = constant(b, l, args[0].getType(), 1);
                      Value isZero = compare(b, l, args[0], zero);
                      return SmallVector<Value>{
                          arith::SelectOp::create(b, l, isZero, one, args[0]),
                          arith::SelectOp::create(b, l, isZero, one, zero)};
                    });
  Value product =
      buildReduce(builder, loc, ReductionKind::Prod, parts[0], op.getDims());
  Value zeros =
      buildReduce(builder, loc, ReductionKind::Sum, parts[1], op.getDims());
  return buildMap(
      builder, loc, {x, product, zeros, dy},
      [](OpBuilder &b, Location l, ValueRange args) {
        Value zero = constant(b, l, args[0].getType(), 0);
        Value one = constant(b, l, args[0].getType(), 1);
        Value isZero = compare(b, l, args[0], zero);
        Value isOnly = compare(b, l, args[2], one);
        Value isNone = compare(b, l, args[2], zero);
        Value divisor = arith::SelectOp::create(b, l, isZero, one, args[0]);
        Value others = arith::DivFOp::create(b, l, args[1], divisor);
        Value counts = arith::SelectOp::create(b, l, isZero, isOnly, isNone);
        Value gradient = arith::MulFOp::create(b, l, args[3], others);
        return arith::SelectOp::create(b, l, counts, gradient, zero);
      });
}

Gradients ReduceOp::buildDerivative(OpBuilder &builder,
                                    ArrayRef<Value> resultGradients,
                                    ArrayRef<bool>) {
  Value dy = resultGradients[0];
  switch (getKind()) {
  case ReductionKind::Sum:
    return only(buildBroadcast(builder, getLoc(), dy, shapeOf(getInput())));
  case ReductionKind::Max:
  case ReductionKind::Min:
    return only(differentiateExtremum(builder, *this, dy));
  case ReductionKind::Prod:
    return only(differentiateProduct(builder, *this, dy));
  }
  llvm_unreachable("all kinds are above");
}

/// The gradient of one operand is the contraction of the result's with the
/// other operand: the letters of the equation only change places.
Gradients ContractOp::buildDerivative(OpBuilder &builder,
                                      ArrayRef<Value> resultGradients,
                                      ArrayRef<bool> wanted) {
  auto [lhs, rhs, result] = getLetters();
  auto product = [&](Value tensor, StringRef letters, Value other,
                     StringRef otherLetters) -> Value {
    // Operands of a product have one type; the sum is rounded to the
    // gradient's.
    Value dy = buildCast(builder, getLoc(), resultGradients[0],
                         getElementTypeOrSelf(other));
    std::string equation = (result + "," + otherLetters + "->" + letters).str();
    auto type =
        RankedTensorType::get(shapeOf(tensor), getElementTypeOrSelf(tensor));
    return ContractOp::create(builder, getLoc(), type, equation, dy, other);
  };
  SmallVector<Value> gradients(2);
  if (wanted[0])
    gradients[0] = product(getLhs(), lhs, getRhs(), rhs);
  if (wanted[1])
    gradients[1] = product(getRhs(), rhs, getLhs(), lhs);
  return gradients;
}
