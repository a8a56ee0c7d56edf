//===- Rotary.cpp - Rotary position embeddings -------------------===//
//
// x * cos + concat(-x2, x1) * sin, with x1, x2 the halves of x, and tables
// whose halves are equal: nn.rope takes half of them.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/IRMapping.h"

#include "ConstantCache.h"
#include "MapMatch.h"

using namespace mlir;
using namespace espalier;
using nn::rankOf;
using nn::shapeOf;

/// Half of the last dimension of `value`, from `offset`.
static bool isHalf(Value part, Value value, int64_t offset) {
  auto slice = part.getDefiningOp<nn::SliceOp>();
  if (!slice || slice.getInput() != value)
    return false;
  int64_t rank = rankOf(value);
  for (int64_t i = 0; i < rank; ++i)
    if (slice.getOffsets()[i] != (i + 1 == rank ? offset : 0) ||
        slice.getStrides()[i] != 1)
      return false;
  SmallVector<int64_t> shape(shapeOf(value));
  shape.back() /= 2;
  return llvm::equal(shapeOf(part), shape);
}

/// The tensor x of which this is concat(-x2, x1).
static Value matchRotatedHalves(Value value) {
  auto concat = value.getDefiningOp<nn::ConcatOp>();
  int64_t last = rankOf(value) - 1;
  if (!concat || concat.getInputs().size() != 2 ||
      int64_t(concat.getDim()) != last || shapeOf(value)[last] % 2)
    return {};
  auto negated = matchMap<arith::NegFOp>(concat.getInputs()[0]);
  auto second = negated && (*negated)[0].tensor
                    ? (*negated)[0].tensor.getDefiningOp<nn::SliceOp>()
                    : nullptr;
  if (!second)
    return {};
  Value x = second.getInput();
  int64_t half = shapeOf(value)[last] / 2;
  bool isRotated = x.getType() == value.getType() &&
                   isHalf(second.getResult(), x, half) &&
                   isHalf(concat.getInputs()[1], x, 0);
  return isRotated ? x : Value();
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static RankedTensorType halfType(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= 2;
  return RankedTensorType::get(shape, type.getElementType());
}

/// An operand of an elementwise op that is the same along the last dimension.
static bool isNarrow(Value value) {
  return rankOf(value) == 0 || shapeOf(value).back() == 1;
}

/// Whether the halves along the last dimension are equal, as far as that shows
/// in how exporters make tables.
static bool hasEqualHalves(ConstantCache &cache, Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  int64_t last = rankOf(value) - 1;
  if (!op || depth == 0 || last < 0 || shapeOf(value)[last] % 2)
    return false;
  if (DenseElementsAttr elements = matchConstant(value))
    return bool(cache.half(elements));
  if (auto concat = dyn_cast<nn::ConcatOp>(op))
    return concat.getInputs().size() == 2 &&
           concat.getInputs()[0] == concat.getInputs()[1] &&
           int64_t(concat.getDim()) == last;
  if (auto map = dyn_cast<nn::MapOp>(op))
    return map.getNumResults() == 1 &&
           llvm::all_of(map.getOperands(), [&](Value operand) {
             return isNarrow(operand) ||
                    hasEqualHalves(cache, operand, depth - 1);
           });
  if (!isa<nn::ReshapeOp, nn::BroadcastOp>(op))
    return false;
  Value input = op->getOperand(0);
  return !isNarrow(input) && shapeOf(input).back() == shapeOf(value).back() &&
         hasEqualHalves(cache, input, depth - 1);
}

/// The first half along the last dimension of a tensor with equal halves.
static Value halfOf(PatternRewriter &rewriter, ConstantCache &cache,
                    Value value) {
  Operation *op = value.getDefiningOp();
  Location loc = op->getLoc();
  if (DenseElementsAttr elements = matchConstant(value)) {
    DenseElementsAttr half = cache.half(elements);
    return nn::ConstantOp::create(rewriter, loc, half.getType(), half);
  }
  if (auto concat = dyn_cast<nn::ConcatOp>(op))
    return concat.getInputs()[0];
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= 2;
  if (isa<nn::ReshapeOp>(op))
    return nn::buildReshape(rewriter, loc,
                            halfOf(rewriter, cache, op->getOperand(0)), shape);
  if (isa<nn::BroadcastOp>(op))
    return nn::buildBroadcast(
        rewriter, loc, halfOf(rewriter, cache, op->getOperand(0)), shape);
  auto map = cast<nn::MapOp>(op);
  SmallVector<Value> operands;
  for (Value operand : map.getOperands())
    operands.push_back(isNarrow(operand) ? operand
                                         : halfOf(rewriter, cache, operand));
  Type half = RankedTensorType::get(shape, type.getElementType());
  auto halved = nn::MapOp::create(rewriter, loc, TypeRange(half), operands);
  IRMapping mapping;
  map.getBody().cloneInto(&halved.getBody(), mapping);
  return halved.getResult(0);
}

namespace {

struct RecognizeRope : public OpRewritePattern<nn::MapOp> {
  RecognizeRope(MLIRContext *context, ConstantCache &cache)
      : OpRewritePattern(context), cache(cache) {}

  LogicalResult matchAndRewrite(nn::MapOp op,
                                PatternRewriter &rewriter) const override {
    auto sum = op.getNumResults() == 1
                   ? matchMap<arith::AddFOp>(op.getResult(0))
                   : std::nullopt;
    if (!sum || !(*sum)[0].tensor || !(*sum)[1].tensor)
      return rewriter.notifyMatchFailure(op, "is no sum");
    for (int side : {0, 1}) {
      Value x, cos, sin;
      if (!matchProducts((*sum)[side].tensor, (*sum)[1 - side].tensor, x, cos,
                         sin) ||
          x.getType() != op.getType(0))
        continue;
      if (cos.getType() != sin.getType() || !hasEqualHalves(cache, cos, 8) ||
          !hasEqualHalves(cache, sin, 8))
        return rewriter.notifyMatchFailure(op, "tables with unequal halves");
      Value halfCos = halfOf(rewriter, cache, cos);
      Value halfSin = halfOf(rewriter, cache, sin);
      rewriter.replaceOpWithNewOp<nn::RopeOp>(op, op.getType(0), x, halfCos,
                                              halfSin, false, false);
      return success();
    }
    return rewriter.notifyMatchFailure(op, "rotates nothing");
  }

  /// x * cos and rotated(x) * sin.
  static bool matchProducts(Value straight, Value turned, Value &x, Value &cos,
                            Value &sin) {
    auto first = matchMap<arith::MulFOp>(straight);
    auto second = matchMap<arith::MulFOp>(turned);
    if (!first || !second)
      return false;
    for (int side : {0, 1}) {
      Value rotated = (*second)[side].tensor;
      sin = (*second)[1 - side].tensor;
      x = rotated && sin ? matchRotatedHalves(rotated) : Value();
      if (!x)
        continue;
      for (int other : {0, 1}) {
        cos = (*first)[1 - other].tensor;
        if ((*first)[other].tensor == x && cos)
          return true;
      }
    }
    return false;
  }

  ConstantCache &cache;
};

} // namespace

void espalier::populateRotary(RewritePatternSet &patterns,
                              ConstantCache &cache) {
  patterns.add<RecognizeRope>(patterns.getContext(), cache);
}
