//===- VerifyPlanned.cpp - Check the contract `planned` -------------------===//

#include "espalier/Verify/PlanChecker.h"
#include "passes/Sharding/Passes.h"

using namespace espalier;

namespace espalier {
#define GEN_PASS_DEF_VERIFYPLANNEDPASS
#include "passes/Sharding/Passes.h.inc"
} // namespace espalier

namespace {

struct VerifyPlanned
    : public espalier::impl::VerifyPlannedPassBase<VerifyPlanned> {
  void runOnOperation() override {
    if (mlir::failed(checkPlan(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
