//===- ReverseSweep.cpp - Gradients of a block's values -------------------===//

#include "dialects/Interfaces/AutodiffOpInterface.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"
#include "espalier/Autodiff/Autodiff.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace espalier;

namespace {

/// The gradients of a block's values while it is gone through in reverse.
class ReverseSweep {
public:
  ReverseSweep(OpBuilder &builder, Block &block, ValueRange targets);

  void add(Value value, Value gradient) {
    if (active.contains(value))
      terms[value].push_back(gradient);
  }
  /// Adds to the gradients of the op's operands.
  LogicalResult differentiate(Operation *op);
  /// The sum of what has been added; null where that is nothing.
  Value gradientOf(Value value);

private:
  bool isActive(Value value) const { return active.contains(value); }

  OpBuilder &builder;
  /// Values that depend on a target and can have a gradient.
  DenseSet<Value> active;
  DenseMap<Value, SmallVector<Value>> terms;
};

} // namespace

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

ReverseSweep::ReverseSweep(OpBuilder &builder, Block &block, ValueRange targets)
    : builder(builder) {
  active.insert(targets.begin(), targets.end());
  for (Operation &op : block)
    if (llvm::any_of(op.getOperands(), [&](Value v) { return isActive(v); }))
      active.insert_range(llvm::make_filter_range(op.getResults(), isFloat));
}

/// The sum of several tensors as one map, so that it is one pass over memory.
static Value buildSum(OpBuilder &builder, Location loc, ArrayRef<Value> terms) {
  if (terms.size() == 1)
    return terms.front();
  return nn::buildMap(builder, loc, terms,
                      [](OpBuilder &b, Location l, ValueRange args) {
                        Value sum = args.front();
                        for (Value term : args.drop_front())
                          sum = arith::AddFOp::create(b, l, sum, term);
                        return sum;
                      });
}

Value ReverseSweep::gradientOf(Value value) {
  auto it = terms.find(value);
  if (it == terms.end())
    return Value();
  Value sum = buildSum(builder, value.getLoc(), it->second);
  it->second = {sum};
  return sum;
}

LogicalResult ReverseSweep::differentiate(Operation *op) {
  SmallVector<Value> resultGradients;
  for (Value result : op->getResults())
    resultGradients.push_back(gradientOf(result));
  SmallVector<bool> wanted = llvm::map_to_vector(
      op->getOperands(), [&](Value v) { return isActive(v) && isFloat(v); });
  if (llvm::none_of(resultGradients, [](Value v) { return bool(v); }) ||
      !llvm::is_contained(wanted, true))
    return success();
  auto differentiable = dyn_cast<AutodiffOpInterface>(op);
  if (!differentiable)
    return op->emitOpError("has no derivative");
  auto gradients =
      differentiable.buildDerivative(builder, resultGradients, wanted);
  if (failed(gradients))
    return failure();
  for (auto [operand, gradient, isWanted] :
       llvm::zip(op->getOperands(), *gradients, wanted))
    if (gradient && isWanted)
      add(operand, gradient);
  return success();
}

FailureOr<SmallVector<Value>>
espalier::buildGradients(OpBuilder &builder, Block &block,
                         ArrayRef<std::pair<Value, Value>> seeds,
                         ValueRange targets) {
  ReverseSweep sweep(builder, block, targets);
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  for (auto [value, gradient] : seeds)
    sweep.add(value, gradient);
  for (Operation *op : llvm::reverse(ops))
    if (failed(sweep.differentiate(op)))
      return failure();
  SmallVector<Value> gradients;
  for (Value target : targets)
    gradients.push_back(sweep.gradientOf(target));
  return gradients;
}
