//===- AddLoss.cpp - Build @loss from @forward ----------------------------===//

#include "espalier/Autodiff/Autodiff.h"
#include "passes/Autodiff/Passes.h"

namespace espalier {
#define GEN_PASS_DEF_ADDLOSSPASS
#include "passes/Autodiff/Passes.h.inc"
} // namespace espalier

using namespace mlir;
using namespace espalier;

namespace {

struct AddLoss : espalier::impl::AddLossPassBase<AddLoss> {
  using AddLossPassBase::AddLossPassBase;

  void runOnOperation() override {
    LossOptions options{kind, output, target, ignoreIndex, weight};
    if (failed(buildLoss(getOperation(), options)))
      signalPassFailure();
  }
};

} // namespace
