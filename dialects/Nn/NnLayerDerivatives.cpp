//===- NnLayerDerivatives.cpp - Derivatives of layers ---------------------===//
//
// In the order of NnLayerOps.td. Ops that are themselves gradients have a
// derivative only where it is one of the other ops.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

using Gradients = FailureOr<SmallVector<Value>>;

/// The type of a tensor without its sharding: that of its gradient.
static RankedTensorType plainType(Value value) {
  return RankedTensorType::get(shapeOf(value), getElementTypeOrSelf(value));
}

static Gradients noSecondDerivative(Operation *op) {
  return op->emitOpError("has no second derivative");
}

//===----------------------------------------------------------------------===//
// Softmax and norms
//===----------------------------------------------------------------------===//

Gradients SoftmaxOp::buildDerivative(OpBuilder &builder,
                                     ArrayRef<Value> resultGradients,
                                     ArrayRef<bool>) {
  return SmallVector<Value>{
      SoftmaxGradOp::create(builder, getLoc(), plainType(getInput()),
                            getResult(), resultGradients[0])};
}

Gradients SoftmaxGradOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                         ArrayRef<bool>) {
  return noSecondDerivative(*this);
}

/// The type of the gradient of a norm's scale, absent or not.
static RankedTensorType columnType(Value input, Value scale) {
  return scale ? plainType(scale)
               : RankedTensorType::get(shapeOf(input).take_back(),
                                       getElementTypeOrSelf(input));
}

Gradients LayerNormOp::buildDerivative(OpBuilder &builder,
                                       ArrayRef<Value> resultGradients,
                                       ArrayRef<bool>) {
  RankedTensorType scaleType = columnType(getInput(), getScale());
  auto grad = LayerNormGradOp::create(
      builder, getLoc(), plainType(getInput()), scaleType,
      getBias() ? plainType(getBias()) : scaleType, getInput(),
      resultGradients[0], getScale(), getEpsilonAttr());
  SmallVector<Value> gradients = {grad.getDx()};
  if (getScale())
    gradients.push_back(grad.getDscale());
  if (getBias())
    gradients.push_back(grad.getDbias());
  return gradients;
}

Gradients LayerNormGradOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                           ArrayRef<bool>) {
  return noSecondDerivative(*this);
}

Gradients RmsNormOp::buildDerivative(OpBuilder &builder,
                                     ArrayRef<Value> resultGradients,
                                     ArrayRef<bool>) {
  auto grad =
      RmsNormGradOp::create(builder, getLoc(), plainType(getInput()),
                            columnType(getInput(), getScale()), getInput(),
                            resultGradients[0], getScale(), getEpsilonAttr());
  SmallVector<Value> gradients = {grad.getDx()};
  if (getScale())
    gradients.push_back(grad.getDscale());
  return gradients;
}

Gradients RmsNormGradOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                         ArrayRef<bool>) {
  return noSecondDerivative(*this);
}

//===----------------------------------------------------------------------===//
// Convolution and pooling
//===----------------------------------------------------------------------===//

/// Builds a convolution or one of its gradients with the window of `op`.
template <typename NewOpT, typename OpT>
static Value buildLike(OpBuilder &builder, OpT op, Value result, Value first,
                       Value second) {
  return NewOpT::create(builder, op.getLoc(), plainType(result), first, second,
                        op.getStridesAttr(), op.getPadsLowAttr(),
                        op.getPadsHighAttr(), op.getDilationsAttr(),
                        op.getGroupsAttr());
}

Gradients ConvOp::buildDerivative(OpBuilder &builder,
                                  ArrayRef<Value> resultGradients,
                                  ArrayRef<bool> wanted) {
  Value dy = resultGradients[0];
  SmallVector<Value> gradients(2);
  if (wanted[0])
    gradients[0] =
        buildLike<ConvInputGradOp>(builder, *this, getInput(), dy, getFilter());
  if (wanted[1])
    gradients[1] = buildLike<ConvFilterGradOp>(builder, *this, getFilter(),
                                               getInput(), dy);
  return gradients;
}

// The three are one trilinear form of input, filter and result.
Gradients ConvInputGradOp::buildDerivative(OpBuilder &builder,
                                           ArrayRef<Value> resultGradients,
                                           ArrayRef<bool> wanted) {
  Value dx = resultGradients[0];
  SmallVector<Value> gradients(2);
  if (wanted[0])
    gradients[0] = buildLike<ConvOp>(builder, *this, getDy(), dx, getFilter());
  if (wanted[1])
    gradients[1] =
        buildLike<ConvFilterGradOp>(builder, *this, getFilter(), dx, getDy());
  return gradients;
}

Gradients ConvFilterGradOp::buildDerivative(OpBuilder &builder,
                                            ArrayRef<Value> resultGradients,
                                            ArrayRef<bool> wanted) {
  Value dw = resultGradients[0];
  SmallVector<Value> gradients(2);
  if (wanted[0])
    gradients[0] =
        buildLike<ConvInputGradOp>(builder, *this, getInput(), getDy(), dw);
  if (wanted[1])
    gradients[1] = buildLike<ConvOp>(builder, *this, getDy(), getInput(), dw);
  return gradients;
}

Gradients MaxPoolOp::buildDerivative(OpBuilder &builder,
                                     ArrayRef<Value> resultGradients,
                                     ArrayRef<bool>) {
  return SmallVector<Value>{MaxPoolGradOp::create(
      builder, getLoc(), plainType(getInput()), getInput(), resultGradients[0],
      getKernelAttr(), getStridesAttr(), getPadsLowAttr(), getPadsHighAttr(),
      getDilationsAttr())};
}

Gradients MaxPoolGradOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                         ArrayRef<bool>) {
  return noSecondDerivative(*this);
}

Gradients AvgPoolOp::buildDerivative(OpBuilder &builder,
                                     ArrayRef<Value> resultGradients,
                                     ArrayRef<bool>) {
  return SmallVector<Value>{AvgPoolGradOp::create(
      builder, getLoc(), plainType(getInput()), resultGradients[0],
      getKernelAttr(), getStridesAttr(), getPadsLowAttr(), getPadsHighAttr(),
      getDilationsAttr(), getCountPadsAttr())};
}

Gradients AvgPoolGradOp::buildDerivative(OpBuilder &builder,
                                         ArrayRef<Value> resultGradients,
                                         ArrayRef<bool>) {
  return SmallVector<Value>{AvgPoolOp::create(
      builder, getLoc(), plainType(getDy()), resultGradients[0],
      getKernelAttr(), getStridesAttr(), getPadsLowAttr(), getPadsHighAttr(),
      getDilationsAttr(), getCountPadsAttr())};
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

Gradients GatherOp::buildDerivative(OpBuilder &builder,
                                    ArrayRef<Value> resultGradients,
                                    ArrayRef<bool>) {
  return SmallVector<Value>{
      ScatterAddOp::create(builder, getLoc(), plainType(getTable()),
                           getIndices(), resultGradients[0]),
      Value()};
}

Gradients ScatterAddOp::buildDerivative(OpBuilder &builder,
                                        ArrayRef<Value> resultGradients,
                                        ArrayRef<bool>) {
  return SmallVector<Value>{
      Value(), GatherOp::create(builder, getLoc(), plainType(getUpdates()),
                                resultGradients[0], getIndices())};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// A boolean [queries, keys]: who may be looked at by `causal`.
static Value buildCausalMask(OpBuilder &builder, Location loc, int64_t queries,
                             int64_t keys) {
  auto index = [&](int64_t dim, int64_t queries, int64_t keys) -> Value {
    auto type = RankedTensorType::get({queries, keys}, builder.getI64Type());
    return IotaOp::create(builder, loc, type, builder.getI64IntegerAttr(dim),
                          Value());
  };
  return buildMap(builder, loc, {index(0, queries, 1), index(1, 1, keys)},
                  [&](OpBuilder &b, Location l, ValueRange args) {
                    Value ahead = arith::ConstantOp::create(
                        b, l, b.getI64IntegerAttr(keys - queries));
                    Value last = arith::AddIOp::create(b, l, args[0], ahead);
                    return arith::CmpIOp::create(
                        b, l, arith::CmpIPredicate::sle, args[1], last);
                  });
}

/// The gradient of an added mask is that of the scores, which attention_grad
/// keeps to itself: p * (dout . v - dout . out) with p = exp(score - lse),
/// summed to the mask's shape. Heads are taken as [groups, heads in a group].
static Value buildMaskGradient(OpBuilder &builder, AttentionOp op, Value dout) {
  Location loc = op.getLoc();
  ArrayRef<int64_t> q = shapeOf(op.getQuery()), k = shapeOf(op.getKey());
  int64_t valueSize = shapeOf(op.getValue())[3];
  int64_t groups = k[1], heads = q[1] / k[1], queries = q[2], keys = k[2];
  auto grouped = [&](Value tensor, int64_t size) {
    return buildReshape(builder, loc, tensor,
                        {q[0], groups, heads, queries, size});
  };
  SmallVector<int64_t> shape = {q[0], q[1], queries, keys};
  Value scores = buildContract(builder, loc, "bghsd,bgtd->bghst",
                               grouped(op.getQuery(), q[3]), op.getKey());
  scores = buildReshape(builder, loc, scores, shape);
  Value dots = buildContract(builder, loc, "bghsd,bgtd->bghst",
                             grouped(dout, valueSize), op.getValue());
  dots = buildReshape(builder, loc, dots, shape);
  Value own = buildReduce(builder, loc, ReductionKind::Sum,
                          buildMul(builder, loc, dout, op.getOut()), {3});
  Value lse = buildReshape(builder, loc, op.getLse(), {q[0], q[1], queries, 1});
  lse = buildCast(builder, loc, lse, getElementTypeOrSelf(scores));
  SmallVector<Value> operands = {scores, op.getMask(), lse, dots, own};
  if (op.getCausal())
    operands.push_back(buildCausalMask(builder, loc, queries, keys));
  Value gradient = buildMap(
      builder, loc, operands, [&](OpBuilder &b, Location l, ValueRange args) {
        Type type = args[0].getType();
        auto constant = [&](double number) -> Value {
          return arith::ConstantOp::create(b, l, b.getFloatAttr(type, number));
        };
        Value scale = constant(op.getScale().convertToDouble());
        Value scaled = arith::MulFOp::create(b, l, args[0], scale);
        Value score = arith::AddFOp::create(b, l, scaled, args[1]);
        Value exponent = arith::SubFOp::create(b, l, score, args[2]);
        Value weight = math::ExpOp::create(b, l, exponent);
        Value slope = arith::SubFOp::create(b, l, args[3], args[4]);
        Value gradient = arith::MulFOp::create(b, l, weight, slope);
        // A masked score has weight 0, even in a row of nothing else, whose lse
        // is minus infinity too.
        Value lowest = constant(-std::numeric_limits<double>::infinity());
        Value seen = arith::CmpFOp::create(b, l, arith::CmpFPredicate::ONE,
                                           args[1], lowest);
        if (args.size() > 5)
          seen = arith::AndIOp::create(b, l, seen, args[5]);
        return arith::SelectOp::create(b, l, seen, gradient, constant(0));
      });
  return buildSumTo(builder, loc, gradient, shapeOf(op.getMask()));
}

Gradients AttentionOp::buildDerivative(OpBuilder &builder,
                                       ArrayRef<Value> resultGradients,
                                       ArrayRef<bool> wanted) {
  if (resultGradients[1])
    return emitOpError("has no derivative of its log-sum-exp");
  Value dout = resultGradients[0];
  SmallVector<Value> gradients(getNumOperands());
  if (wanted[0] || wanted[1] || wanted[2]) {
    auto grad = AttentionGradOp::create(
        builder, getLoc(), plainType(getQuery()), plainType(getKey()),
        plainType(getValue()), getQuery(), getKey(), getValue(), getOut(),
        getLse(), dout, getMask(), getCausalAttr(), getScaleAttr());
    llvm::copy(grad.getResults(), gradients.begin());
  }
  if (getMask() && wanted[3]) {
    if (getElementTypeOrSelf(getMask()) != getElementTypeOrSelf(getQuery()))
      return emitOpError("has no derivative for a mask of another type than "
                         "the queries'");
    gradients[3] = buildMaskGradient(builder, *this, dout);
  }
  return gradients;
}

Gradients AttentionGradOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                           ArrayRef<bool>) {
  return noSecondDerivative(*this);
}

/// The first or second element of each pair that a rotation turns.
static Value buildHalf(OpBuilder &builder, RopeOp op, Value tensor,
                       unsigned which) {
  SmallVector<int64_t> shape(shapeOf(tensor)), offsets(shape.size(), 0);
  int64_t half = shape.back() / 2;
  shape.back() = half;
  if (!op.getInterleaved()) {
    offsets.back() = which * half;
    return buildSlice(builder, op.getLoc(), tensor, offsets, shape);
  }
  SmallVector<int64_t> strides(shape.size(), 1);
  offsets.back() = which;
  strides.back() = 2;
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(tensor));
  return SliceOp::create(builder, op.getLoc(), type, tensor, offsets, strides);
}

/// The gradients of the cosines, dy1 * x1 + dy2 * x2, and of the sines,
/// dy2 * x1 - dy1 * x2, negated for the inverse.
static SmallVector<Value> buildAngleGradients(OpBuilder &builder, RopeOp op,
                                              Value dy) {
  SmallVector<Value> halves;
  for (Value tensor : {Value(op.getInput()), dy})
    for (unsigned which : {0, 1})
      halves.push_back(buildHalf(builder, op, tensor, which));
  SmallVector<Value> gradients =
      buildMultiMap(builder, op.getLoc(), halves, shapeOf(halves[0]),
                    [&](OpBuilder &b, Location l, ValueRange args) {
                      auto mul = [&](unsigned i, unsigned j) -> Value {
                        return arith::MulFOp::create(b, l, args[i], args[j]);
                      };
                      Value dcos =
                          arith::AddFOp::create(b, l, mul(2, 0), mul(3, 1));
                      Value plus = mul(3, 0), minus = mul(2, 1);
                      if (op.getInverse())
                        std::swap(plus, minus);
                      Value dsin = arith::SubFOp::create(b, l, plus, minus);
                      return SmallVector<Value>{dcos, dsin};
                    });
  for (Value &gradient : gradients)
    gradient = buildSumTo(builder, op.getLoc(), gradient, shapeOf(op.getCos()));
  return gradients;
}

Gradients RopeOp::buildDerivative(OpBuilder &builder,
                                  ArrayRef<Value> resultGradients,
                                  ArrayRef<bool> wanted) {
  Value dy = resultGradients[0];
  SmallVector<Value> gradients(3);
  if (wanted[0])
    gradients[0] =
        RopeOp::create(builder, getLoc(), plainType(getInput()), dy, getCos(),
                       getSin(), getInterleaved(), !getInverse());
  if (wanted[1] || wanted[2]) {
    SmallVector<Value> angles = buildAngleGradients(builder, *this, dy);
    llvm::copy(angles, gradients.begin() + 1);
  }
  return gradients;
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

/// The gradient through lse: softmax(logits) * dlse.
static Value buildLseGradient(OpBuilder &builder, CrossEntropyOp op,
                              Value dlse) {
  SmallVector<int64_t> rows(shapeOf(op.getLse()));
  rows.push_back(1);
  Type type = getElementTypeOrSelf(op.getLogits());
  auto column = [&](Value value) {
    value = buildReshape(builder, op.getLoc(), value, rows);
    return buildCast(builder, op.getLoc(), value, type);
  };
  return buildMap(
      builder, op.getLoc(), {op.getLogits(), column(op.getLse()), column(dlse)},
      [](OpBuilder &b, Location l, ValueRange args) {
        Value shifted = arith::SubFOp::create(b, l, args[0], args[1]);
        Value weight = math::ExpOp::create(b, l, shifted);
        return arith::MulFOp::create(b, l, weight, args[2]);
      });
}

Gradients CrossEntropyOp::buildDerivative(OpBuilder &builder,
                                          ArrayRef<Value> resultGradients,
                                          ArrayRef<bool>) {
  Value gradient;
  if (Value dloss = resultGradients[0])
    gradient = CrossEntropyGradOp::create(
        builder, getLoc(), plainType(getLogits()), getLogits(), getLabels(),
        getLse(), dloss, getIgnoreIndexAttr());
  if (Value dlse = resultGradients[1]) {
    Value through = buildLseGradient(builder, *this, dlse);
    gradient =
        gradient ? buildAdd(builder, getLoc(), gradient, through) : through;
  }
  return SmallVector<Value>{gradient, Value()};
}

Gradients CrossEntropyGradOp::buildDerivative(OpBuilder &, ArrayRef<Value>,
                                              ArrayRef<bool>) {
  return noSecondDerivative(*this);
}
