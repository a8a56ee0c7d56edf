//===- VerifyImported.cpp - Check the contract `imported` -----------------===//

#include "passes/Verify/FormChecks.h"
#include "passes/Verify/Passes.h"

#include "mlir/IR/Builders.h"

namespace espalier {
#define GEN_PASS_DEF_VERIFYIMPORTEDPASS
#include "passes/Verify/Passes.h.inc"
} // namespace espalier

using namespace mlir;
using namespace espalier;

static LogicalResult verifyImported(ModuleOp module) {
  auto forward = findFunction(module, "forward");
  if (!forward)
    return failure();
  if (!llvm::hasSingleElement(module.getOps<func::FuncOp>()))
    return forward.emitError("expects to be the only function");
  SmallVector<Slot> arguments = argumentSlots(forward);
  SmallVector<Slot> results = resultSlots(forward);
  Builder builder(module.getContext());
  auto rng = RankedTensorType::get({3}, builder.getI64Type());
  return success(
      succeeded(checkSlots(forward, arguments,
                           {role::parameter, role::frozen, role::buffer,
                            role::input, role::valid, role::rng},
                           "argument")) &&
      succeeded(checkSlots(forward, results, {role::output, role::buffer},
                           "result")) &&
      succeeded(checkSame(forward, results, role::buffer, arguments,
                          role::buffer, "results that are buffers")) &&
      succeeded(checkSingle(forward, arguments, role::valid, Type())) &&
      succeeded(checkSingle(forward, arguments, role::rng, rng)) &&
      succeeded(checkOps(forward)));
}

namespace {

struct VerifyImported : espalier::impl::VerifyImportedPassBase<VerifyImported> {
  void runOnOperation() override {
    if (failed(verifyImported(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
