//===- BuildUpdate.cpp - Build @update beside @grad -----------------------===//

#include "espalier/Autodiff/Autodiff.h"
#include "passes/Autodiff/Passes.h"

namespace espalier {
#define GEN_PASS_DEF_BUILDUPDATEPASS
#include "passes/Autodiff/Passes.h.inc"
} // namespace espalier

using namespace mlir;
using namespace espalier;

namespace {

struct BuildUpdate : espalier::impl::BuildUpdatePassBase<BuildUpdate> {
  using BuildUpdatePassBase::BuildUpdatePassBase;

  void runOnOperation() override {
    TrainingOptions options;
    options.optimizer = {optimizer, learningRate, weightDecay, beta1,   beta2,
                         epsilon,   momentum,     dampening,   nesterov};
    options.schedule = {schedule, warmupSteps, totalSteps, minLearningRate};
    options.gradientClip = gradientClip;
    if (failed(buildUpdate(getOperation(), options)))
      signalPassFailure();
  }
};

} // namespace
