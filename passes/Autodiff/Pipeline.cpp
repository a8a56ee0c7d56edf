//===- Pipeline.cpp - From `imported` to `differentiated` -----------------===//

#include "passes/Autodiff/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace espalier;

static AddLossPassOptions passOptions(const LossOptions &o) {
  AddLossPassOptions options;
  options.kind = o.kind;
  options.output = o.output;
  options.target = o.target;
  options.ignoreIndex = o.ignoreIndex;
  options.weight = o.weight;
  return options;
}

static BuildUpdatePassOptions passOptions(const TrainingOptions &o) {
  BuildUpdatePassOptions options;
  options.optimizer = o.optimizer.kind;
  options.learningRate = o.optimizer.learningRate;
  options.weightDecay = o.optimizer.weightDecay;
  options.beta1 = o.optimizer.beta1;
  options.beta2 = o.optimizer.beta2;
  options.epsilon = o.optimizer.epsilon;
  options.momentum = o.optimizer.momentum;
  options.dampening = o.optimizer.dampening;
  options.nesterov = o.optimizer.nesterov;
  options.schedule = o.schedule.kind;
  options.warmupSteps = o.schedule.warmupSteps;
  options.totalSteps = o.schedule.totalSteps;
  options.minLearningRate = o.schedule.minLearningRate;
  options.gradientClip = o.gradientClip;
  return options;
}

void espalier::buildAutodiffPipeline(OpPassManager &manager,
                                     const TrainingOptions &options) {
  manager.addPass(createAddLossPass(passOptions(options.loss)));
  // What the loss does not use is gone now, and is not differentiated.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createDifferentiatePass());
  manager.addPass(createBuildUpdatePass(passOptions(options)));
  // Derivatives repeat forward computations and operands.
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
}

namespace {
/// What differs between the models of tests.
struct AutodiffPipelineOptions
    : public PassPipelineOptions<AutodiffPipelineOptions> {
  Option<std::string> output{*this, "output",
                             llvm::cl::desc("The model's logits"),
                             llvm::cl::init("logits")};
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("The name of the labels"),
                             llvm::cl::init("labels")};
};
} // namespace

void espalier::registerAutodiffPipelines() {
  PassPipelineRegistration<AutodiffPipelineOptions>(
      "espalier-autodiff", "Build a training step with cross-entropy and AdamW",
      [](OpPassManager &manager, const AutodiffPipelineOptions &options) {
        TrainingOptions training;
        training.loss.output = options.output;
        training.loss.target = options.target;
        buildAutodiffPipeline(manager, training);
      });
}
