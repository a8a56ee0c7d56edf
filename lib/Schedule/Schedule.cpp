//===- Schedule.cpp - Lay out a rank's step as a sequence of functions ----===//

#include "espalier/Schedule/Schedule.h"

#include "dialects/Dist/Dist.h"
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

/// Makes @update return the weight of the whole step too, for the log: its
/// argument, or what the all-reduces on its way make of it.
static void returnWeight(func::FuncOp update) {
  for (unsigned i = 0; i < update.getNumArguments(); ++i) {
    if (argumentString(update, i, kRoleAttr) != "weight_sum")
      continue;
    Value weight = update.getArgument(i);
    for (bool reduced = true; reduced;) {
      reduced = false;
      for (OpOperand &use : weight.getUses())
        if (auto reduce = dyn_cast<dist::AllReduceOp>(use.getOwner())) {
          weight = reduce.getResult(use.getOperandNumber());
          reduced = true;
          break;
        }
    }
    Builder builder(update.getContext());
    auto attributes = builder.getDictionaryAttr(
        {builder.getNamedAttr(kNameAttr, builder.getStringAttr("weight")),
         builder.getNamedAttr(kRoleAttr, builder.getStringAttr("weight"))});
    (void)update.insertResult(update.getNumResults(), weight.getType(),
                              attributes);
    auto ret = cast<func::ReturnOp>(update.front().getTerminator());
    ret.getOperandsMutable().append(weight);
    return;
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
  if (auto update = module.lookupSymbol<func::FuncOp>("update"))
    returnWeight(update);
  return success();
}
