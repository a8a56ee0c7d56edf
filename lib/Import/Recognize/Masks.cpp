//===- Masks.cpp - What a mask of attention says -----------------===//
//
// A mask is a conjunction: causal, and not padding, and in the window. What is
// causal becomes a flag, which kernels skip work by; what is constantly true is
// left out; what is repeated is taken before its repetition.
//
//===----------------------------------------------------------------------===//

#include "AttentionMatch.h"
#include "MapMatch.h"

#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace espalier;
using nn::rankOf;
using nn::shapeOf;

static bool isMasking(double value) { return value <= -1e30; }

static bool isBool(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType().isInteger(1);
}

//===----------------------------------------------------------------------===//
// Constant masks
//===----------------------------------------------------------------------===//

/// Elements of a constant mask [1, 1, S, T] as bits; nothing if they are
/// neither boolean nor all 0 or masking.
static std::optional<SmallVector<bool>> maskBits(DenseElementsAttr elements) {
  SmallVector<bool> bits;
  Type type = elements.getElementType();
  bits.reserve(elements.getNumElements());
  if (type.isInteger(1)) {
    llvm::append_range(bits, elements.getValues<bool>());
    return bits;
  }
  if (!isa<FloatType>(type))
    return std::nullopt;
  for (const APFloat &value : elements.getValues<APFloat>()) {
    bool seen = value.isZero();
    if (!seen && !isMasking(value.convertToDouble()))
      return std::nullopt;
    bits.push_back(seen);
  }
  return bits;
}

/// Query s sees exactly the keys t <= s + T - S.
static bool isCausal(ArrayRef<bool> bits, ArrayRef<int64_t> shape,
                     int64_t queries, int64_t keys) {
  if (shape[0] != 1 || shape[1] != 1 || shape[2] != queries ||
      shape[3] != keys)
    return false;
  for (int64_t s = 0; s < queries; ++s)
    for (int64_t t = 0; t < keys; ++t)
      if (bits[s * keys + t] != (t <= s + keys - queries))
        return false;
  return true;
}

static bool seesSomething(ArrayRef<bool> bits, int64_t keys) {
  for (size_t row = 0; row < bits.size(); row += keys)
    if (llvm::none_of(bits.slice(row, keys), [](bool bit) { return bit; }))
      return false;
  return true;
}

/// A constant compared along rows and columns, too large to be folded: key
/// index [.., 1, T] <= query index [.., S, 1].
static bool isCausalComparison(Value value, int64_t queries, int64_t keys) {
  auto compare = matchMap<arith::CmpIOp>(value);
  if (!compare || !(*compare)[0].tensor || !(*compare)[1].tensor)
    return false;
  auto map = value.getDefiningOp<nn::MapOp>();
  auto predicate = map.getBody()
                       .front()
                       .getTerminator()
                       ->getOperand(0)
                       .getDefiningOp<arith::CmpIOp>()
                       .getPredicate();
  Value key = (*compare)[0].tensor, query = (*compare)[1].tensor;
  if (predicate == arith::CmpIPredicate::sge)
    std::swap(key, query);
  else if (predicate != arith::CmpIPredicate::sle)
    return false;
  DenseElementsAttr columns = matchConstant(key), rows = matchConstant(query);
  auto varies = [](Value x, int64_t fromEnd, int64_t size) {
    ArrayRef<int64_t> shape = shapeOf(x);
    return int64_t(shape.size()) >= fromEnd &&
           shape[shape.size() - fromEnd] == size &&
           cast<RankedTensorType>(x.getType()).getNumElements() == size;
  };
  if (!columns || !rows || !varies(key, 1, keys) || !varies(query, 2, queries))
    return false;
  auto isCounting = [](DenseElementsAttr elements, int64_t from) {
    for (const APInt &element : elements.getValues<APInt>())
      if (element.getSExtValue() != from++)
        return false;
    return true;
  };
  int64_t start = (*columns.getValues<APInt>().begin()).getSExtValue();
  return isCounting(columns, start) &&
         isCounting(rows, start + keys - queries);
}

//===----------------------------------------------------------------------===//
// Conjunctions
//===----------------------------------------------------------------------===//

namespace {

/// What a boolean mask is the conjunction of.
struct Conjunction {
  bool causal = false;
  SmallVector<Value> rest; // each broadcasts to the scores
};

} // namespace

static void collect(Value mask, int64_t queries, int64_t keys,
                    Conjunction &into) {
  SmallVector<Value> work{mask};
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (auto broadcast = next.getDefiningOp<nn::BroadcastOp>()) {
      work.push_back(broadcast.getInput());
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
      auto bits = maskBits(elements);
      if (bits && llvm::all_of(*bits, [](bool bit) { return bit; }))
        continue;
      SmallVector<int64_t> shape(shapeOf(next));
      shape.insert(shape.begin(), 4 - shape.size(), 1);
      if (bits && isCausal(*bits, shape, queries, keys)) {
        into.causal = true;
        continue;
      }
    }
    if (isCausalComparison(next, queries, keys)) {
      into.causal = true;
      continue;
    }
    into.rest.push_back(next);
  }
}

static SimplifiedMask simplifyBoolean(PatternRewriter &rewriter, Location loc,
                                      Value mask, int64_t queries,
                                      int64_t keys) {
  Conjunction parts;
  collect(mask, queries, keys, parts);
  SimplifiedMask result;
  result.causal = parts.causal;
  for (Value part : parts.rest) {
    result.mask =
        !result.mask
            ? part
            : nn::buildMap(rewriter, loc, {result.mask, part},
                           [](OpBuilder &b, Location at, ValueRange x) {
                             return arith::AndIOp::create(b, at, x[0], x[1])
                                 .getResult();
                           });
  }
  if (result.mask)
    result.mask = withRankFour(rewriter, loc, result.mask);
  return result;
}

/// A mask that is added, as the boolean one that computes the same, or null.
static Value asBoolean(PatternRewriter &rewriter, Location loc, Value mask,
                       bool guardsRows) {
  if (DenseElementsAttr elements = matchConstant(mask)) {
    auto bits = maskBits(elements);
    if (!bits || (!guardsRows && !seesSomething(*bits, shapeOf(mask).back())))
      return {};
    auto type =
        RankedTensorType::get(shapeOf(mask), rewriter.getI1Type());
    return nn::ConstantOp::create(rewriter, loc, type,
                                  DenseElementsAttr::get(type, *bits));
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
  if (!select || !(*select)[0].tensor || (*select)[1].number != 0.0 ||
      !(*select)[2].number || !isMasking(*(*select)[2].number))
    return {};
  bool isInfinite = std::isinf(*(*select)[2].number);
  // Finite masking of a whole row leaves its keys equal; only a guard, or a
  // mask that is never all false, says that this does not matter.
  Value condition = (*select)[0].tensor;
  if (!guardsRows && !isInfinite) {
    DenseElementsAttr elements = matchConstant(condition);
    auto bits = elements ? maskBits(elements) : std::nullopt;
    if (!bits || !seesSomething(*bits, shapeOf(condition).back()))
      return {};
  }
  return condition;
}

SimplifiedMask espalier::simplifyMask(PatternRewriter &rewriter, Location loc,
                                      Value mask, int64_t queries, int64_t keys,
                                      bool guardsRows) {
  if (isBool(mask))
    return simplifyBoolean(rewriter, loc, mask, queries, keys);
  if (Value boolean = asBoolean(rewriter, loc, mask, guardsRows))
    return simplifyBoolean(rewriter, loc, boolean, queries, keys);
  SimplifiedMask result;
  result.mask = mask;
  return result;
}

namespace {

/// An nn.attention whose mask says less than it seems to.
struct SimplifyAttentionMask : public OpRewritePattern<nn::AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::AttentionOp op,
                                PatternRewriter &rewriter) const override {
    Value mask = op.getMask();
    if (!mask || !mayShrink(mask))
      return rewriter.notifyMatchFailure(op, "its mask is as small as can be");
    SimplifiedMask simple =
        simplifyMask(rewriter, op.getLoc(), mask, shapeOf(op.getQuery())[2],
                     shapeOf(op.getKey())[2], /*guardsRows=*/true);
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

  /// Whether taking the mask apart can come to something new: else this would
  /// apply to its own result for ever.
  static bool mayShrink(Value mask) {
    Value inner = mask;
    if (auto reshape = mask.getDefiningOp<nn::ReshapeOp>())
      inner = reshape.getInput();
    if (DenseElementsAttr elements = matchConstant(inner)) {
      auto bits = maskBits(elements);
      return bits && (!isBool(inner) || isCausalOrTrue(*bits, shapeOf(inner)));
    }
    if (inner.getDefiningOp<nn::BroadcastOp>())
      return true;
    auto both = matchMap<arith::AndIOp>(inner);
    if (!both)
      return matchMap<arith::SelectOp>(inner).has_value() ||
             matchMap<arith::CmpIOp>(inner).has_value();
    for (const MapOperand &operand : *both)
      if (operand.tensor && (matchConstant(operand.tensor) ||
                             operand.tensor.getDefiningOp<nn::BroadcastOp>() ||
                             matchMap<arith::AndIOp>(operand.tensor)))
        return true;
    return false;
  }

  static bool isCausalOrTrue(ArrayRef<bool> bits, ArrayRef<int64_t> shape) {
    return llvm::all_of(bits, [](bool bit) { return bit; }) ||
           (shape.size() == 4 && isCausal(bits, shape, shape[2], shape[3]));
  }
};

} // namespace

void espalier::populateMasks(RewritePatternSet &patterns) {
  patterns.add<SimplifyAttentionMask>(patterns.getContext());
}
