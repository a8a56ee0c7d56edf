//===- VerifyDifferentiated.cpp - Check the contract `differentiated` -----===//

#include "passes/Verify/FormChecks.h"
#include "passes/Verify/Passes.h"

#include "mlir/IR/Builders.h"

namespace espalier {
#define GEN_PASS_DEF_VERIFYDIFFERENTIATEDPASS
#include "passes/Verify/Passes.h.inc"
} // namespace espalier

using namespace mlir;
using namespace espalier;

/// f32 or, in programs that are tested in f64, that.
static Type scalarTypeOf(func::FuncOp grad) {
  auto type = RankedTensorType::get({}, Float64Type::get(grad.getContext()));
  if (grad.getNumResults() > 0 && grad.getResultTypes()[0] == type)
    return type;
  return RankedTensorType::get({}, Float32Type::get(grad.getContext()));
}

static LogicalResult verifyGrad(func::FuncOp grad, ArrayRef<Slot> arguments,
                                ArrayRef<Slot> results) {
  Type scalar = scalarTypeOf(grad);
  return success(
      succeeded(checkSlots(grad, arguments,
                           {role::parameter, role::frozen, role::buffer,
                            role::input, role::label, role::valid, role::rng},
                           "argument")) &&
      succeeded(
          checkSlots(grad, results,
                     {role::lossSum, role::weightSum, role::grad, role::buffer},
                     "result")) &&
      succeeded(checkSingle(grad, results, role::lossSum, scalar)) &&
      succeeded(checkSingle(grad, results, role::weightSum, scalar)) &&
      succeeded(checkSame(grad, results, role::grad, arguments, role::parameter,
                          "gradients")) &&
      succeeded(checkSame(grad, results, role::buffer, arguments, role::buffer,
                          "results that are buffers")) &&
      succeeded(checkOps(grad)));
}

static LogicalResult verifyUpdate(func::FuncOp update,
                                  ArrayRef<Slot> gradArguments, Type scalar) {
  SmallVector<Slot> arguments = argumentSlots(update);
  SmallVector<Slot> results = resultSlots(update);
  Builder builder(update.getContext());
  auto step = RankedTensorType::get({}, builder.getI64Type());
  if (failed(checkSlots(update, arguments,
                        {role::parameter, role::state, role::grad,
                         role::lossSum, role::weightSum, role::step},
                        "argument")) ||
      failed(checkSlots(
          update, results,
          {role::parameter, role::state, role::loss, role::gradNorm, role::lr},
          "result")) ||
      failed(checkSame(update, arguments, role::parameter, gradArguments,
                       role::parameter, "parameters")) ||
      failed(checkSame(update, arguments, role::grad, gradArguments,
                       role::parameter, "gradients")) ||
      failed(checkSame(update, results, role::parameter, arguments,
                       role::parameter, "results that are parameters")) ||
      failed(checkSame(update, results, role::state, arguments, role::state,
                       "results that are state")) ||
      failed(checkSingle(update, arguments, role::step, step)))
    return failure();
  for (StringRef role : {role::lossSum, role::weightSum})
    if (failed(checkSingle(update, arguments, role, scalar)))
      return failure();
  for (StringRef role : {role::loss, role::gradNorm, role::lr})
    if (failed(checkSingle(update, results, role, scalar)))
      return failure();
  return checkOps(update);
}

namespace {

struct VerifyDifferentiated
    : espalier::impl::VerifyDifferentiatedPassBase<VerifyDifferentiated> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    auto grad = findFunction(getOperation(), "grad");
    if (!grad)
      return signalPassFailure();
    SmallVector<Slot> arguments = argumentSlots(grad);
    if (failed(verifyGrad(grad, arguments, resultSlots(grad))))
      return signalPassFailure();
    auto update = findFunction(getOperation(), "update");
    if (!update || failed(verifyUpdate(update, arguments, scalarTypeOf(grad))))
      signalPassFailure();
  }
};

} // namespace
