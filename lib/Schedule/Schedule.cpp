//===- Schedule.cpp - Lay out a rank's step as a sequence of functions ----===//

#include "espalier/Schedule/Schedule.h"

#include "dialects/Nn/NnBuilders.h"
#include "espalier/Sharding/ShardFunction.h"

using namespace mlir;
using namespace espalier;

/// Whether results of this role are summed over the microbatches of a step.
static bool isAccumulated(StringRef role) {
  return role == "grad" || role == "loss_sum" || role == "weight_sum";
}

/// Makes `function` take each sum so far as a further argument and add to it.
static void accumulate(func::FuncOp function) {
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  OpBuilder builder(ret);
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (!isAccumulated(resultString(function, i, kRoleAttr)))
      continue;
    Value own = ret.getOperand(i);
    unsigned position = function.getNumArguments();
    (void)function.insertArgument(position, own.getType(),
                                  function.getResultAttrDict(i), own.getLoc());
    Value sum = nn::buildAdd(builder, own.getLoc(),
                             function.getArgument(position), own);
    ret.setOperand(i, sum);
  }
}

LogicalResult espalier::scheduleModule(ModuleOp module, int64_t microBatches) {
  auto grad = module.lookupSymbol<func::FuncOp>("grad");
  if (!grad)
    return module.emitError("has no function @grad");
  if (microBatches > 1) {
    OpBuilder builder(grad);
    builder.setInsertionPointAfter(grad);
    auto next = cast<func::FuncOp>(builder.clone(*grad));
    next.setSymName("next");
    accumulate(next);
  }
  grad.setSymName("first");
  return success();
}
