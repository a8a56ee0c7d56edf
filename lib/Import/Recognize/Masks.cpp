//===- Masks.cpp - What a mask of attention says -----------------===//
//
// A mask is a conjunction: causal, and not padding, and in the window. What is
// causal becomes a flag, which kernels skip work by; what is constantly true is
// left out; what is repeated is taken before its repetition.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"

#include "AttentionMatch.h"
#include "MapMatch.h"

using namespace mlir;
using namespace espalier;
using nn::rankOf;
using nn::shapeOf;

static bool isBool(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType().isInteger(1);
}

/// The constant counts up by one along the dimension `fromEnd` from the last,
/// of this size, and varies along no other; its first element goes to `first`.
static bool countsAlong(Value value, int64_t fromEnd, int64_t size,
                        int64_t &first) {
  DenseElementsAttr elements = matchConstant(value);
  ArrayRef<int64_t> shape = shapeOf(value);
  if (!elements || elements.getNumElements() != size || size == 0 ||
      int64_t(shape.size()) < fromEnd || shape[shape.size() - fromEnd] != size)
    return false;
  auto values = elements.getValues<APInt>();
  first = (*values.begin()).getSExtValue();
  int64_t expected = first;
  return llvm::all_of(values, [&](const APInt &element) {
    return element.getSExtValue() == expected++;
  });
}

/// A comparison of key positions [..., T] and query positions [..., S, 1],
/// which the importer leaves where the result would be large: true exactly for
/// t <= s + T - S, or with `negated` for the others.
static bool isCausalComparison(Value value, int64_t queries, int64_t keys,
                               bool negated) {
  using Predicate = arith::CmpIPredicate;
  auto compare = matchMap<arith::CmpIOp>(value);
  if (!compare || !(*compare)[0].tensor || !(*compare)[1].tensor)
    return false;
  auto map = value.getDefiningOp<nn::MapOp>();
  Value yielded = map.getBody().front().getTerminator()->getOperand(0);
  Predicate predicate = yielded.getDefiningOp<arith::CmpIOp>().getPredicate();
  if (negated)
    predicate = arith::invertPredicate(predicate);
  Value key = (*compare)[0].tensor, query = (*compare)[1].tensor;
  if (predicate == Predicate::sge || predicate == Predicate::sgt) {
    std::swap(key, query);
    predicate = predicate == Predicate::sge ? Predicate::sle : Predicate::slt;
  }
  int64_t firstKey, firstQuery;
  if (!countsAlong(key, 1, keys, firstKey) ||
      !countsAlong(query, 2, queries, firstQuery))
    return false;
  int64_t distance = firstQuery - firstKey - (keys - queries);
  return (predicate == Predicate::sle && distance == 0) ||
         (predicate == Predicate::slt && distance == 1);
}

/// What a boolean tensor is the opposite of, or null.
static Value matchNot(Value value) {
  auto flipped = matchWithNumber<arith::XOrIOp>(value);
  return flipped && flipped->number == 1 ? flipped->tensor : Value();
}

//===----------------------------------------------------------------------===//
// Conjunctions
//===----------------------------------------------------------------------===//

namespace {

/// What a boolean mask is the conjunction of.
struct Conjunction {
  bool causal = false;
  bool shrinks = false;    // `rest` says less than the mask
  SmallVector<Value> rest; // each broadcasts to the scores
};

} // namespace

static void collect(ConstantCache &cache, Value mask, int64_t queries,
                    int64_t keys, Conjunction &into) {
  SmallVector<Value> work{mask};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (auto broadcast = next.getDefiningOp<nn::BroadcastOp>()) {
      work.push_back(broadcast.getInput());
      into.shrinks = true;
      continue;
    }
    auto reshape = next.getDefiningOp<nn::ReshapeOp>();
    if (reshape && nn::broadcasts(shapeOf(reshape.getInput()), shapeOf(next))) {
      work.push_back(reshape.getInput()); // leading dimensions of size 1
      continue;
    }
    if (auto both = matchMap<arith::AndIOp>(next)) {
      bool known = llvm::all_of(*both, [](const MapOperand &operand) {
        return operand.tensor || operand.number == 1.0;
      });
      if (known) {
        for (const MapOperand &operand : llvm::reverse(*both))
          if (operand.tensor)
            work.push_back(operand.tensor);
        continue;
      }
    }
    if (DenseElementsAttr elements = matchConstant(next)) {
      const MaskFacts &facts = cache.mask(elements);
      ArrayRef<int64_t> shape = shapeOf(next);
      bool isCausal = facts.causal && shape.back() == keys &&
                      shape[shape.size() - 2] == queries;
      into.causal |= isCausal;
      if (facts.allSeen || isCausal) {
        into.shrinks = true;
        continue;
      }
    }
    Value opposite = matchNot(next);
    if (isCausalComparison(next, queries, keys, /*negated=*/false) ||
        (opposite &&
         isCausalComparison(opposite, queries, keys, /*negated=*/true))) {
      into.causal = into.shrinks = true;
      continue;
    }
    into.rest.push_back(next);
  }
}

static SimplifiedMask simplifyBoolean(PatternRewriter &rewriter, Location loc,
                                      ConstantCache &cache, Value mask,
                                      int64_t queries, int64_t keys) {
  Conjunction parts;
  collect(cache, mask, queries, keys, parts);
  SimplifiedMask result;
  result.causal = parts.causal;
  for (Value part : parts.rest) {
    result.mask =
        !result.mask
            ? part
            : nn::buildMap(
                  rewriter, loc, {result.mask, part},
                  [](OpBuilder &b, Location at, ValueRange x) {
                    return arith::AndIOp::create(b, at, x[0], x[1]).getResult();
                  });
  }
  if (result.mask)
    result.mask = withRankFour(rewriter, loc, result.mask);
  return result;
}

static Value buildNot(PatternRewriter &rewriter, Location loc, Value value) {
  return nn::buildMap(
      rewriter, loc, value, [](OpBuilder &b, Location at, ValueRange x) {
        Value one = arith::ConstantIntOp::create(b, at, 1, 1);
        return arith::XOrIOp::create(b, at, x[0], one).getResult();
      });
}

/// Every query sees some key, as far as that is known.
static bool everyRowSees(ConstantCache &cache, Value mask, int64_t queries,
                         int64_t keys) {
  if (DenseElementsAttr elements = matchConstant(mask))
    return cache.mask(elements).everyRowSees;
  Conjunction parts;
  collect(cache, mask, queries, keys, parts);
  return parts.rest.empty() && keys >= queries;
}

/// A mask that is added, as the boolean one that computes the same, or null.
static Value asBoolean(PatternRewriter &rewriter, Location loc,
                       ConstantCache &cache, Value mask, int64_t queries,
                       int64_t keys, bool guardsRows) {
  if (DenseElementsAttr elements = matchConstant(mask)) {
    const MaskFacts &facts = cache.mask(elements);
    if (!facts.isMask || (!guardsRows && !facts.everyRowSees))
      return {};
    return nn::ConstantOp::create(rewriter, loc, facts.boolean.getType(),
                                  facts.boolean);
  }
  while (Operation *op = mask.getDefiningOp()) {
    if (!isa<nn::BroadcastOp, nn::ReshapeOp>(op))
      break;
    // A reshape here only adds leading dimensions.
    if (isa<nn::ReshapeOp>(op) &&
        !nn::broadcasts(shapeOf(op->getOperand(0)), shapeOf(mask)))
      break;
    mask = op->getOperand(0);
  }
  auto select = matchMap<arith::SelectOp>(mask);
  if (!select || !(*select)[0].tensor || !(*select)[1].number ||
      !(*select)[2].number)
    return {};
  Value condition = (*select)[0].tensor;
  double seen = *(*select)[1].number, hidden = *(*select)[2].number;
  bool negated = seen != 0;
  if (negated)
    std::swap(seen, hidden);
  if (seen != 0 || !isMasking(hidden))
    return {};
  // Finite masking of a whole row leaves its keys equal; only a guard, or a
  // mask that is never all false, says that this does not matter.
  if (!guardsRows && !std::isinf(hidden) &&
      (negated || !everyRowSees(cache, condition, queries, keys)))
    return {};
  return negated ? buildNot(rewriter, loc, condition) : condition;
}

SimplifiedMask espalier::simplifyMask(PatternRewriter &rewriter, Location loc,
                                      ConstantCache &cache, Value mask,
                                      int64_t queries, int64_t keys,
                                      bool guardsRows) {
  if (isBool(mask))
    return simplifyBoolean(rewriter, loc, cache, mask, queries, keys);
  if (Value boolean =
          asBoolean(rewriter, loc, cache, mask, queries, keys, guardsRows))
    return simplifyBoolean(rewriter, loc, cache, boolean, queries, keys);
  SimplifiedMask result;
  result.mask = mask;
  return result;
}

namespace {

/// An nn.attention whose mask says less than it seems to.
struct SimplifyAttentionMask : public OpRewritePattern<nn::AttentionOp> {
  SimplifyAttentionMask(MLIRContext *context, ConstantCache &cache)
      : OpRewritePattern(context), cache(cache) {}

  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter &rewriter) const override {
    Value mask = op.getMask();
    if (!mask)
      return rewriter.notifyMatchFailure(op, "has no mask");
    int64_t queries = shapeOf(op.getQuery())[2];
    int64_t keys = shapeOf(op.getKey())[2];
    if (isBool(mask)) {
      // What this leaves must not be found again.
      Conjunction parts;
      collect(cache, mask, queries, keys, parts);
      if (!parts.shrinks)
        return rewriter.notifyMatchFailure(op, "its mask is as small as it is");
    }
    SimplifiedMask simple = simplifyMask(rewriter, op.getLoc(), cache, mask,
                                         queries, keys, /*guardsRows=*/false);
    if (simple.mask == mask)
      return rewriter.notifyMatchFailure(op, "nothing of its mask is known");
    rewriter.modifyOpInPlace(op, [&] {
      op.getMaskMutable().clear();
      if (simple.mask)
        op.getMaskMutable().assign(simple.mask);
      op.setCausal(op.getCausal() || simple.causal);
    });
    return success();
  }

  ConstantCache &cache;
};

} // namespace

void espalier::populateMasks(RewritePatternSet &patterns,
                             ConstantCache &cache) {
  patterns.add<SimplifyAttentionMask>(patterns.getContext(), cache);
}
