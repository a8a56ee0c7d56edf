//===- Differentiate.cpp - Build @grad from @loss -------------------------===//

#include "espalier/Autodiff/Autodiff.h"
#include "passes/Autodiff/Passes.h"

namespace espalier {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/Autodiff/Passes.h.inc"
} // namespace espalier

using namespace mlir;
using namespace espalier;

namespace {

struct Differentiate : espalier::impl::DifferentiatePassBase<Differentiate> {
  void runOnOperation() override {
    if (failed(buildGrad(getOperation())))
      return signalPassFailure();
    for (StringRef name : {"loss", "forward"})
      if (auto function = getOperation().lookupSymbol<func::FuncOp>(name))
        function.erase();
  }
};

} // namespace
