//===- Norms.cpp - Norms written in pieces -----------------------===//
//
//   RMS norm    x * rsqrt(mean(x * x) + epsilon) * scale
//   layer norm  (x - mean(x)) * rsqrt(mean((x - mean(x))^2) + epsilon) * scale
//                 + bias
//
// First the norm itself, then, one at a time, its scale and bias.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include "MapMatch.h"

using namespace mlir;
using namespace espalier;
using nn::rankOf;
using nn::shapeOf;

/// The tensor whose mean over the last dimension (kept) this is.
static Value matchMean(Value value) {
  std::optional<TensorAndNumber> scaled = matchScaled(value);
  auto sum = scaled ? scaled->tensor.getDefiningOp<nn::ReduceOp>() : nullptr;
  if (!sum || sum.getKind() != ReductionKind::Sum)
    return {};
  int64_t last = rankOf(sum.getInput()) - 1;
  if (sum.getDims() != ArrayRef<int64_t>{last})
    return {};
  double size = shapeOf(sum.getInput())[last];
  // The factor may have been rounded to the element type.
  bool isMean = std::abs(scaled->number * size - 1) < 1e-6;
  return isMean ? sum.getInput() : Value();
}

/// The tensor whose square this is.
static Value matchSquare(Value value) {
  auto product = matchMap<arith::MulFOp>(value);
  if (!product || !(*product)[0].tensor ||
      (*product)[0].tensor != (*product)[1].tensor)
    return {};
  return (*product)[0].tensor;
}

namespace {

/// `centered` / sqrt(mean(centered^2) + epsilon).
struct Normalized {
  Value centered;
  double epsilon;
};

} // namespace

/// 1 / sqrt(mean(x^2) + epsilon), of x.
static std::optional<Normalized> matchDeviation(Value variance) {
  auto sum = matchWithNumber<arith::AddFOp>(variance);
  Value squares = sum && sum->number >= 0 ? matchMean(sum->tensor) : Value();
  Value centered = squares ? matchSquare(squares) : Value();
  if (!centered)
    return std::nullopt;
  return Normalized{centered, sum->number};
}

static std::optional<Normalized> matchNormalized(Value value) {
  if (auto product = matchMap<arith::MulFOp>(value)) {
    for (int side : {0, 1}) {
      Value x = (*product)[side].tensor, factor = (*product)[1 - side].tensor;
      Value variance = x && factor ? matchReciprocalRoot(factor) : Value();
      auto match = variance ? matchDeviation(variance) : std::nullopt;
      if (match && match->centered == x)
        return match;
    }
    return std::nullopt;
  }
  auto quotient = matchMap<arith::DivFOp>(value);
  if (!quotient || !(*quotient)[0].tensor || !(*quotient)[1].tensor)
    return std::nullopt;
  auto root = matchMap<math::SqrtOp>((*quotient)[1].tensor);
  auto match = root && (*root)[0].tensor ? matchDeviation((*root)[0].tensor)
                                         : std::nullopt;
  return match && match->centered == (*quotient)[0].tensor ? match
                                                           : std::nullopt;
}

/// The tensor from which its mean over the last dimension was taken off.
static Value matchCentered(Value value) {
  auto difference = matchMap<arith::SubFOp>(value);
  if (!difference || !(*difference)[0].tensor || !(*difference)[1].tensor)
    return {};
  Value x = (*difference)[0].tensor;
  return matchMean((*difference)[1].tensor) == x ? x : Value();
}

/// A tensor that varies along the last dimension, of this size, alone.
static bool isVector(Value value, int64_t size) {
  return value && rankOf(value) > 0 && shapeOf(value).back() == size &&
         nn::elementCount(value) == size;
}

static Value asVector(PatternRewriter &rewriter, Location loc, Value value) {
  return nn::buildReshape(rewriter, loc, value, shapeOf(value).back());
}

namespace {

struct RecognizeNorm : public OpRewritePattern<nn::MapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::MapOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "has several results");
    Value value = op.getResult(0);
    auto match = matchNormalized(value);
    if (!match || match->centered.getType() != value.getType())
      return rewriter.notifyMatchFailure(op, "divides by no deviation");
    FloatAttr epsilon = rewriter.getF64FloatAttr(match->epsilon);
    if (Value x = matchCentered(match->centered))
      rewriter.replaceOpWithNewOp<nn::LayerNormOp>(op, value.getType(), x,
                                                   Value(), Value(), epsilon);
    else
      rewriter.replaceOpWithNewOp<nn::RmsNormOp>(
          op, value.getType(), match->centered, Value(), epsilon);
    return success();
  }
};

/// norm * scale, where the norm has no scale yet and no other use.
struct ScaleIntoNorm : public OpRewritePattern<nn::MapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::MapOp op,
                                PatternRewriter &rewriter) const override {
    auto product = op.getNumResults() == 1
                       ? matchMap<arith::MulFOp>(op.getResult(0))
                       : std::nullopt;
    if (!product)
      return rewriter.notifyMatchFailure(op, "is no product");
    for (int side : {0, 1}) {
      Value norm = (*product)[side].tensor;
      if (!norm || !norm.hasOneUse() || norm.getType() != op.getType(0))
        continue;
      auto layer = norm.getDefiningOp<nn::LayerNormOp>();
      auto rms = norm.getDefiningOp<nn::RmsNormOp>();
      bool takesScale = (layer && !layer.getScale() && !layer.getBias()) ||
                        (rms && !rms.getScale());
      Value scale = (*product)[1 - side].tensor;
      if (!takesScale || !isVector(scale, shapeOf(norm).back()))
        continue;
      scale = asVector(rewriter, op.getLoc(), scale);
      if (layer)
        rewriter.replaceOpWithNewOp<nn::LayerNormOp>(
            op, op.getType(0), layer.getInput(), scale, Value(),
            layer.getEpsilonAttr());
      else
        rewriter.replaceOpWithNewOp<nn::RmsNormOp>(
            op, op.getType(0), rms.getInput(), scale, rms.getEpsilonAttr());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "scales no norm");
  }
};

/// norm + bias, where the norm has no bias yet and no other use.
struct BiasIntoNorm : public OpRewritePattern<nn::MapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::MapOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = op.getNumResults() == 1
                   ? matchMap<arith::AddFOp>(op.getResult(0))
                   : std::nullopt;
    if (!sum)
      return rewriter.notifyMatchFailure(op, "is no sum");
    for (int side : {0, 1}) {
      Value value = (*sum)[side].tensor;
      auto norm = value ? value.getDefiningOp<nn::LayerNormOp>() : nullptr;
      if (!norm || norm.getBias() || !value.hasOneUse() ||
          value.getType() != op.getType(0))
        continue;
      Value bias = (*sum)[1 - side].tensor;
      if (!isVector(bias, shapeOf(value).back()))
        continue;
      bias = asVector(rewriter, op.getLoc(), bias);
      rewriter.replaceOpWithNewOp<nn::LayerNormOp>(
          op, op.getType(0), norm.getInput(), norm.getScale(), bias,
          norm.getEpsilonAttr());
      return success();
    }
    return rewriter.notifyMatchFailure(op, "shifts no norm");
  }
};

} // namespace

void espalier::populateNorms(RewritePatternSet &patterns, ConstantCache &) {
  patterns.add<RecognizeNorm, ScaleIntoNorm, BiasIntoNorm>(
      patterns.getContext());
}
