//===- Attention.cpp - Attention as one op -----------------------===//

#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "AttentionMatch.h"
#include "MapMatch.h"

using namespace mlir;
using namespace espalier;
using nn::rankOf;
using nn::shapeOf;

Value espalier::withRankFour(PatternRewriter &rewriter, Location location,
                             Value value) {
  SmallVector<int64_t> shape(shapeOf(value));
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  DenseElementsAttr elements = matchConstant(value);
  if (!elements)
    return nn::buildReshape(rewriter, location, value, shape);
  elements =
      elements.reshape(RankedTensorType::get(shape, elements.getElementType()));
  return nn::ConstantOp::create(rewriter, location, elements.getType(),
                                elements);
}

/// The tensor with its dimensions in the order of `wanted`.
static Value ordered(PatternRewriter &rewriter, Location location, Value value,
                     StringRef letters, StringRef wanted) {
  SmallVector<int64_t> perm;
  for (char c : wanted)
    perm.push_back(letters.find(c));
  return nn::buildTranspose(rewriter, location, value, perm);
}

/// [b, g, n, d] of [b, g * r, n, d] that repeats each of g heads r times; null
/// if it does not.
static Value matchRepeatedHeads(Value value) {
  auto merge = value.getDefiningOp<nn::ReshapeOp>();
  auto repeat =
      merge ? merge.getInput().getDefiningOp<nn::BroadcastOp>() : nullptr;
  auto split =
      repeat ? repeat.getInput().getDefiningOp<nn::ReshapeOp>() : nullptr;
  if (!split || rankOf(split.getInput()) != 4 || rankOf(value) != 4)
    return {};
  ArrayRef<int64_t> base = shapeOf(split.getInput());
  ArrayRef<int64_t> wide = shapeOf(repeat.getResult());
  SmallVector<int64_t> expected{base[0], base[1], 1, base[2], base[3]};
  if (!llvm::equal(shapeOf(split.getResult()), expected) || wide.size() != 5)
    return {};
  expected[2] = wide[2];
  SmallVector<int64_t> merged{base[0], base[1] * wide[2], base[2], base[3]};
  bool isRepeat =
      llvm::equal(wide, expected) && llvm::equal(shapeOf(value), merged);
  return isRepeat ? split.getInput() : Value();
}

namespace {

struct RecognizeAttention : public OpRewritePattern<nn::ContractOp> {
  RecognizeAttention(MLIRContext *context, ConstantCache &cache)
      : OpRewritePattern(context), cache(cache) {}

  LogicalResult matchAndRewrite(nn::ContractOp op,
                                PatternRewriter &rewriter) const override {
    AttentionMatch match;
    std::string reason;
    if (!matchAttention(op, match, reason))
      return rewriter.notifyMatchFailure(op, reason);
    if (match.addedMask && dependsOnParameter(match.addedMask))
      return rewriter.notifyMatchFailure(op, "the mask is trained");
    if (!match.scale || (match.addedMask && match.condition))
      return rewriter.notifyMatchFailure(op, "has two masks");
    Location loc = op.getLoc();
    Value q = ordered(rewriter, loc, match.query, match.queryLetters, "bhsd");
    Value k = ordered(rewriter, loc, match.key, match.keyLetters, "bhtd");
    Value v = ordered(rewriter, loc, match.value, match.valueLetters, "bhte");
    Value fewKeys = matchRepeatedHeads(k), fewValues = matchRepeatedHeads(v);
    if (fewKeys && fewValues && shapeOf(fewKeys)[1] == shapeOf(fewValues)[1]) {
      k = fewKeys;
      v = fewValues;
    }
    Value given =
        match.condition ? addedMask(rewriter, loc, match, q) : match.addedMask;
    SimplifiedMask mask;
    if (given)
      mask =
          simplifyMask(rewriter, loc, cache, withRankFour(rewriter, loc, given),
                       shapeOf(q)[2], shapeOf(k)[2], match.guardsRows);
    Value out = build(rewriter, loc, q, k, v, mask, match.scale);
    rewriter.replaceOp(op,
                       ordered(rewriter, loc, out, "bhse", match.outLetters));
    return success();
  }

  /// What is added to the scores so that those are hidden that the condition
  /// replaces.
  static Value addedMask(PatternRewriter &rewriter, Location loc,
                         const AttentionMatch &match, Value q) {
    Type element = cast<RankedTensorType>(q.getType()).getElementType();
    return nn::buildMap(
        rewriter, loc, match.condition,
        [&](OpBuilder &b, Location at, ValueRange x) -> Value {
          auto number = [&](double value) -> Value {
            return arith::ConstantOp::create(b, at,
                                             b.getFloatAttr(element, value));
          };
          Value hidden = number(match.hiddenScore), seen = number(0);
          return arith::SelectOp::create(b, at, x[0],
                                         match.hiddenIf ? hidden : seen,
                                         match.hiddenIf ? seen : hidden);
        });
  }

  static Value build(PatternRewriter &rewriter, Location loc, Value q, Value k,
                     Value v, const SimplifiedMask &mask, double scale) {
    SmallVector<int64_t> shape(shapeOf(q));
    shape[3] = shapeOf(v)[3];
    Type element = cast<RankedTensorType>(q.getType()).getElementType();
    Type sums = element.isF64() ? element : rewriter.getF32Type();
    auto out = RankedTensorType::get(shape, element);
    auto lse = RankedTensorType::get(ArrayRef(shape).drop_back(), sums);
    return nn::AttentionOp::create(rewriter, loc, out, lse, q, k, v, mask.mask,
                                   mask.causal, llvm::APFloat(scale))
        .getOut();
  }

  ConstantCache &cache;
};

} // namespace

void espalier::populateAttention(RewritePatternSet &patterns,
                                 ConstantCache &cache) {
  patterns.add<RecognizeAttention>(patterns.getContext(), cache);
}
