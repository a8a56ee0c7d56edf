//===- Grad.cpp - Builds @grad --------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"
#include "espalier/Autodiff/Autodiff.h"
#include "espalier/Support/FunctionForm.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace espalier;

/// Copies the body of `from`, but its terminator, into the empty body of `to`,
/// which has the same arguments. Returns what it returned.
static SmallVector<Value> cloneBody(OpBuilder &builder, func::FuncOp from,
                                    func::FuncOp to) {
  IRMapping mapping;
  for (auto [old, argument] :
       llvm::zip(from.getArguments(), to.getArguments())) {
    argument.setLoc(old.getLoc());
    mapping.map(old, argument);
  }
  Block &block = from.getBody().front();
  for (Operation &op : block.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookup(value); });
}

FailureOr<func::FuncOp> espalier::buildGrad(ModuleOp module) {
  auto loss = module.lookupSymbol<func::FuncOp>("loss");
  if (!loss)
    return module.emitError("expects a function @loss");
  SmallVector<Slot> arguments = argumentSlots(loss);
  SmallVector<Slot> lossResults = resultSlots(loss);
  SmallVector<Slot> results = {lossResults[0], lossResults[1]};
  SmallVector<unsigned> places;
  for (auto [i, slot] : llvm::enumerate(arguments))
    if (slot.role == role::parameter) {
      results.push_back({slot.type, slot.name, role::grad.str()});
      places.push_back(i);
    }
  llvm::append_range(results, ArrayRef<Slot>(lossResults).drop_front(2));

  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto grad =
      createFunction(builder, loss.getLoc(), "grad", arguments, results);
  if (loss->hasAttr(countsInvalidAttribute))
    grad->setAttr(countsInvalidAttribute, builder.getUnitAttr());
  Block &block = grad.getBody().front();
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> values = cloneBody(builder, loss, grad);
  SmallVector<Value> parameters = llvm::map_to_vector(
      places, [&](unsigned i) -> Value { return grad.getArgument(i); });
  Value one =
      nn::buildSplat(builder, loss.getLoc(), nn::tensorTypeOf(values[0]), 1.0);
  auto gradients =
      buildGradients(builder, block, {{values[0], one}}, parameters);
  if (failed(gradients)) {
    grad.erase();
    return failure();
  }
  SmallVector<Value> returned = {values[0], values[1]};
  for (auto [parameter, gradient, place] :
       llvm::zip(parameters, *gradients, places)) {
    if (!gradient) {
      emitRemark(parameter.getLoc())
          << "parameter '" << arguments[place].name
          << "' has gradient zero: the loss does not depend on it";
      gradient = nn::buildSplat(builder, parameter.getLoc(),
                                nn::tensorTypeOf(parameter), 0.0);
    }
    returned.push_back(gradient);
  }
  llvm::append_range(returned, ArrayRef<Value>(values).drop_front(2));
  func::ReturnOp::create(builder, loss.getLoc(), returned);
  return grad;
}
