//===- NnFolders.cpp - Ops that are nothing, or two that are one ----------===//
//
// A fold compares whole types, shardings included: a change of sharding is
// never folded away.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace espalier::nn;

Operation *NnDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                          Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || !isa<RankedTensorType>(type))
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValueAttr(); }

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  bool isIdentity =
      llvm::equal(getPermutation(), llvm::seq<int64_t>(0, rankOf(getInput())));
  return isIdentity && getInput().getType() == getType() ? getInput() : Value();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? getInput() : Value();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1 && getInputs()[0].getType() == getType())
    return getInputs()[0];
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? getInput() : Value();
}

OpFoldResult ReduceOp::fold(FoldAdaptor) {
  if (getDims().empty() && getInput().getType() == getType())
    return getInput();
  return {};
}

namespace {

/// Two reshapes are one.
struct MergeReshapes : public OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    auto first = op.getInput().getDefiningOp<ReshapeOp>();
    if (!first || tensorTypeOf(op.getResult()).getEncoding())
      return rewriter.notifyMatchFailure(op, "no reshape before it");
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), first.getInput());
    return success();
  }
};

/// A map takes each operand once, and only those that its body uses.
struct DropMapOperands : public OpRewritePattern<MapOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MapOp op,
                                PatternRewriter &rewriter) const override {
    Block &block = op.getBody().front();
    llvm::BitVector dropped(op.getNumOperands());
    llvm::DenseMap<Value, unsigned> first;
    for (unsigned i = 0; i < op.getNumOperands(); ++i) {
      auto [it, isNew] = first.try_emplace(op.getOperand(i), i);
      BlockArgument argument = block.getArgument(i);
      if (!isNew)
        rewriter.replaceAllUsesWith(argument, block.getArgument(it->second));
      if (argument.use_empty())
        dropped.set(i);
    }
    if (dropped.none())
      return rewriter.notifyMatchFailure(op, "all operands are used once");
    rewriter.modifyOpInPlace(op, [&] {
      block.eraseArguments(dropped);
      op->eraseOperands(dropped);
    });
    return success();
  }
};

} // namespace

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                            MLIRContext *context) {
  patterns.add<MergeReshapes>(context);
}

void MapOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                        MLIRContext *context) {
  patterns.add<DropMapOperands>(context);
}
