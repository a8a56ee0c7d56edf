//===- Recognize.cpp - Find the layers that a model was written in --------===//

#include "espalier/Import/Recognize.h"

#include "passes/Import/Passes.h"

#include "mlir/IR/Remarks.h"

namespace espalier {
#define GEN_PASS_DEF_RECOGNIZEPASS
#include "passes/Import/Passes.h.inc"
} // namespace espalier

using namespace mlir;

namespace {

struct Recognize : public espalier::impl::RecognizePassBase<Recognize> {
  void runOnOperation() override {
    auto found = espalier::recognizeLayers(getOperation());
    if (failed(found)) {
      getOperation().emitError("expects patterns to come to an end");
      return signalPassFailure();
    }
    numAttention += found->attentions;
    numNorms += found->norms;
    numRotary += found->rotaries;
    numMissed += found->missed.size();
    for (const espalier::MissedAttention &missed : found->missed)
      remark::missed(
          missed.location,
          remark::RemarkOpts::name("NotAttention").category("import"))
          << remark::reason("{0}", missed.reason);
  }
};

} // namespace
