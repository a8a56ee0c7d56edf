//===- RecognizeLayers.cpp - The layers that a model was written in -------===//

#include "espalier/Import/Recognize.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "AttentionMatch.h"
#include "MapMatch.h"

using namespace mlir;
using namespace espalier;

/// Applies patterns to a fixed point.
static LogicalResult apply(
    func::FuncOp function, ConstantCache &cache,
    llvm::ArrayRef<void (*)(RewritePatternSet &, ConstantCache &)> populates) {
  RewritePatternSet patterns(function.getContext());
  for (auto populate : populates)
    populate(patterns, cache);
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return applyPatternsGreedily(function, std::move(patterns), config);
}

template <typename Op>
static unsigned count(func::FuncOp function) {
  unsigned number = 0;
  function.walk([&](Op) { ++number; });
  return number;
}

static RecognizedLayers countLayers(func::FuncOp function) {
  RecognizedLayers layers;
  layers.attentions = count<nn::AttentionOp>(function);
  layers.norms =
      count<nn::LayerNormOp>(function) + count<nn::RmsNormOp>(function);
  layers.rotaries = count<nn::RopeOp>(function);
  return layers;
}

/// Products of a softmax that are not attention, and why.
static std::vector<MissedAttention> findMissed(func::FuncOp function) {
  std::vector<MissedAttention> missed;
  function.walk([&](nn::ContractOp product) {
    AttentionMatch match;
    std::string reason;
    if (matchAttention(product, match, reason))
      reason = match.addedMask && dependsOnParameter(match.addedMask)
                   ? "the mask is trained"
                   : "the masks cannot be joined";
    if (!reason.empty())
      missed.push_back({product.getLoc(), reason});
  });
  return missed;
}

FailureOr<RecognizedLayers> espalier::recognizeLayers(func::FuncOp function) {
  RecognizedLayers before = countLayers(function);
  ConstantCache cache;
  // Attention comes after the rest: it takes in what they leave.
  if (failed(apply(function, cache,
                   {populateProducts, populateNorms, populateRotary})) ||
      failed(apply(function, cache,
                   {populateProducts, populateAttention, populateMasks})))
    return failure();
  RecognizedLayers found = countLayers(function);
  found.attentions -= before.attentions;
  found.norms -= before.norms;
  found.rotaries -= before.rotaries;
  found.missed = findMissed(function);
  return found;
}

FailureOr<RecognizedLayers> espalier::tidyImported(func::FuncOp function) {
  IRRewriter rewriter(function.getContext());
  auto eliminate = [&] {
    DominanceInfo dominance(function);
    eliminateCommonSubExpressions(rewriter, dominance, function);
  };
  // Exporters write masks and positions once for each layer, and patterns
  // compare operands by identity.
  eliminate();
  FailureOr<RecognizedLayers> found = recognizeLayers(function);
  if (failed(found))
    return failure();
  // After recognition, whose patterns are on single steps.
  fuseUnaryMaps(function);
  eliminate();
  return found;
}
