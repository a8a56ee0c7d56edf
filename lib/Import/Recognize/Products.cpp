//===- Products.cpp - Transposes and reshapes around products ----===//

#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/IR/IRMapping.h"

#include "MapMatch.h"

using namespace mlir;
using namespace espalier;
using nn::rankOf;
using nn::shapeOf;

namespace {

/// Two transposes are one.
struct MergeTransposes : public OpRewritePattern<nn::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto first = op.getInput().getDefiningOp<nn::TransposeOp>();
    if (!first)
      return rewriter.notifyMatchFailure(op, "no transpose before it");
    SmallVector<int64_t> merged;
    for (int64_t dim : op.getPermutation())
      merged.push_back(first.getPermutation()[dim]);
    rewriter.replaceOp(op, nn::buildTranspose(rewriter, op.getLoc(),
                                              first.getInput(), merged));
    return success();
  }
};

/// Leading dimensions merged, the rest transposed, and split again: a transpose
/// that leaves the leading dimensions alone.
struct TransposeBetweenReshapes : public OpRewritePattern<nn::ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto transpose = op.getInput().getDefiningOp<nn::TransposeOp>();
    auto merge = transpose ? transpose.getInput().getDefiningOp<nn::ReshapeOp>()
                           : nullptr;
    if (!merge || transpose.getPermutation()[0] != 0)
      return rewriter.notifyMatchFailure(op, "no transpose of a reshape");
    ArrayRef<int64_t> from = shapeOf(merge.getInput());
    ArrayRef<int64_t> merged = shapeOf(merge.getResult());
    ArrayRef<int64_t> result = shapeOf(op.getResult());
    int64_t leading = int64_t(from.size()) - int64_t(merged.size()) + 1;
    if (leading < 1 || result.size() != from.size() ||
        from.drop_front(leading) != merged.drop_front() ||
        from.take_front(leading) != result.take_front(leading))
      return rewriter.notifyMatchFailure(op, "not the same leading dimensions");
    SmallVector<int64_t> perm;
    for (int64_t i = 0; i < leading; ++i)
      perm.push_back(i);
    for (int64_t dim : transpose.getPermutation().drop_front())
      perm.push_back(leading - 1 + dim);
    for (auto [size, dim] : llvm::zip(result, perm))
      if (size != from[dim])
        return rewriter.notifyMatchFailure(op, "splits other dimensions");
    Value moved = nn::buildTranspose(rewriter, transpose.getLoc(),
                                     merge.getInput(), perm);
    rewriter.replaceOp(op, moved);
    return success();
  }
};

/// A product names its operands' dimensions: it needs no transpose of them.
struct TransposeIntoContract : public OpRewritePattern<nn::ContractOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ContractOp op,
                                PatternRewriter &rewriter) const override {
    auto letters = op.getLetters();
    Value operands[] = {op.getLhs(), op.getRhs()};
    std::string names[] = {letters[0].str(), letters[1].str()};
    bool changed = false;
    for (int side : {0, 1}) {
      auto transpose = operands[side].getDefiningOp<nn::TransposeOp>();
      if (!transpose)
        continue;
      std::string moved = names[side];
      for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
        moved[dim] = names[side][i];
      names[side] = moved;
      operands[side] = transpose.getInput();
      changed = true;
    }
    if (!changed)
      return rewriter.notifyMatchFailure(op, "no operand is transposed");
    std::string equation = names[0] + "," + names[1] + "->" + letters[2].str();
    rewriter.modifyOpInPlace(op, [&] {
      op.setEquation(equation);
      op.getLhsMutable().assign(operands[0]);
      op.getRhsMutable().assign(operands[1]);
    });
    return success();
  }
};

/// The shape of rows that a reshape merges into its first dimension, with the
/// other dimensions as they are in the result; nothing if it merges none. For
/// [2, 3, 4, 5] -> [6, 20] it is [2, 3, 20].
std::optional<SmallVector<int64_t>> splitRows(nn::ReshapeOp reshape) {
  if (!reshape || rankOf(reshape.getResult()) == 0)
    return std::nullopt;
  ArrayRef<int64_t> from = shapeOf(reshape.getInput());
  ArrayRef<int64_t> to = shapeOf(reshape.getResult());
  // Dimensions of size 1 come and go by reshapes that merge nothing.
  int64_t rows = 1;
  size_t leading = 0;
  while (leading < from.size() && rows < to.front())
    rows *= from[leading++];
  if (leading < 2 || from.front() == 1 || rows != to.front())
    return std::nullopt;
  SmallVector<int64_t> split(from.take_front(leading));
  llvm::append_range(split, to.drop_front());
  return split;
}

char unusedLetter(StringRef equation, StringRef taken) {
  for (char c = 'a'; c <= 'z'; ++c)
    if (!equation.contains(c) && !taken.contains(c))
      return c;
  return 0;
}

/// (merge x) * w is merge (x * w): rows stay apart in a product.
struct MergeAfterContract : public OpRewritePattern<nn::ContractOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::ContractOp op,
                                PatternRewriter &rewriter) const override {
    auto [lhs, rhs, out] = op.getLetters();
    if (lhs.empty() || out.empty() || lhs.front() != out.front() ||
        rhs.contains(lhs.front()))
      return rewriter.notifyMatchFailure(op, "no rows on the left");
    auto merge = op.getLhs().getDefiningOp<nn::ReshapeOp>();
    auto split = splitRows(merge);
    if (!split)
      return rewriter.notifyMatchFailure(op, "rows are not merged");
    std::string rows;
    for (size_t i = lhs.size(); i <= split->size(); ++i) {
      char letter = unusedLetter(op.getEquation(), rows);
      if (!letter)
        return rewriter.notifyMatchFailure(op, "no letter is left");
      rows += letter;
    }
    std::string equation = rows + lhs.drop_front().str() + "," + rhs.str() +
                           "->" + rows + out.drop_front().str();
    Value whole =
        nn::buildReshape(rewriter, merge.getLoc(), merge.getInput(), *split);
    Value product =
        nn::buildContract(rewriter, op.getLoc(), equation, whole, op.getRhs());
    rewriter.replaceOp(op, nn::buildReshape(rewriter, op.getLoc(), product,
                                            shapeOf(op.getResult())));
    return success();
  }
};

/// A map of merged rows is merged rows of a map, where the other operands do
/// not vary along the rows, or are merged alike.
struct MergeAfterMap : public OpRewritePattern<nn::MapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(nn::MapOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "has several results");
    ArrayRef<int64_t> shape = shapeOf(op.getResult(0));
    SmallVector<int64_t> whole; // the shape before rows were merged
    for (Value operand : op.getOperands()) {
      ArrayRef<int64_t> own = shapeOf(operand);
      if (own.size() < shape.size())
        continue; // the same for all rows
      auto split = splitRows(operand.getDefiningOp<nn::ReshapeOp>());
      if (!split || own != shape || (!whole.empty() && whole != *split))
        return rewriter.notifyMatchFailure(op, "an operand has own rows");
      whole = *split;
    }
    if (whole.empty())
      return rewriter.notifyMatchFailure(op, "no operand merges rows");
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      if (shapeOf(operand).size() == shape.size()) {
        auto merge = operand.getDefiningOp<nn::ReshapeOp>();
        operand =
            nn::buildReshape(rewriter, merge.getLoc(), merge.getInput(), whole);
      }
      operands.push_back(operand);
    }
    auto type = RankedTensorType::get(
        whole, cast<RankedTensorType>(op.getType(0)).getElementType());
    auto moved =
        nn::MapOp::create(rewriter, op.getLoc(), TypeRange(type), operands);
    rewriter.inlineRegionBefore(op.getBody(), moved.getBody(),
                                moved.getBody().begin());
    rewriter.replaceOp(
        op, nn::buildReshape(rewriter, op.getLoc(), moved.getResult(0), shape));
    return success();
  }
};

} // namespace

void espalier::populateProducts(RewritePatternSet &patterns, ConstantCache &) {
  patterns.add<MergeTransposes, TransposeBetweenReshapes, TransposeIntoContract,
               MergeAfterContract, MergeAfterMap>(patterns.getContext());
  nn::ReshapeOp::getCanonicalizationPatterns(patterns, patterns.getContext());
}
