//===- Recognize.cpp - Find the layers that a model was written in --------===//

#include "AttentionMatch.h"
#include "MapMatch.h"
#include "passes/Import/Passes.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace espalier {
#define GEN_PASS_DEF_RECOGNIZEPASS
#include "passes/Import/Passes.h.inc"
} // namespace espalier

using namespace mlir;
using namespace espalier;

/// Applies patterns to a fixed point.
static LogicalResult
apply(func::FuncOp function,
      llvm::ArrayRef<void (*)(RewritePatternSet &)> populates) {
  RewritePatternSet patterns(function.getContext());
  for (auto populate : populates)
    populate(patterns);
  GreedyRewriteConfig config;
  // Folding would take constants apart from the layers that name them.
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(function, std::move(patterns), config);
}

namespace {

struct Recognize : public espalier::impl::RecognizePassBase<Recognize> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    unsigned given = count<nn::AttentionOp>();
    unsigned givenNorms = count<nn::LayerNormOp>() + count<nn::RmsNormOp>();
    unsigned givenRopes = count<nn::RopeOp>();
    // Attention comes after the rest: it takes in what they leave.
    if (failed(apply(function, {populateNormalizeProducts,
                                populateRecognizeNorms,
                                populateRecognizeRotary})) ||
        failed(apply(function, {populateNormalizeProducts,
                                populateRecognizeAttention,
                                populateRecognizeMasks})))
      return signalPassFailure();
    numAttention += count<nn::AttentionOp>() - given;
    numNorms +=
        count<nn::LayerNormOp>() + count<nn::RmsNormOp>() - givenNorms;
    numRotary += count<nn::RopeOp>() - givenRopes;
    reportMissed();
  }

  template <typename Op> unsigned count() {
    unsigned number = 0;
    getOperation().walk([&](Op) { ++number; });
    return number;
  }

  /// Products of a softmax that are not attention, and why.
  void reportMissed() {
    getOperation().walk([&](nn::ContractOp product) {
      AttentionMatch match;
      std::string reason;
      if (matchAttention(product, match, reason))
        reason = match.addedMask && dependsOnParameter(match.addedMask)
                     ? "the mask is trained"
                     : "the masks cannot be joined";
      if (reason.empty())
        return;
      ++numMissed;
      remark::missed(product.getLoc(),
                     remark::RemarkOpts::name("NotAttention").category("import"))
          << remark::reason("{0}", reason);
    });
  }
};

} // namespace
