//===- ShardFunction.cpp - Types a function with shardings ----------------===//

#include "espalier/Sharding/ShardFunction.h"

#include "dialects/Interfaces/ShardingRuleOpInterface.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace espalier;

StringRef espalier::argumentString(func::FuncOp function, unsigned number,
                                   StringRef attribute) {
  auto text = function.getArgAttrOfType<StringAttr>(number, attribute);
  return text ? text.getValue() : StringRef();
}

StringRef espalier::resultString(func::FuncOp function, unsigned number,
                                 StringRef attribute) {
  auto text = function.getResultAttrOfType<StringAttr>(number, attribute);
  return text ? text.getValue() : StringRef();
}

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static int64_t localBytes(const Mesh &mesh, Value value,
                          const Sharding &sharding) {
  RankedTensorType type = tensorType(value);
  int64_t count = 1;
  for (int64_t size : localShape(mesh, type.getShape(), sharding))
    count *= size;
  return count * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

namespace {

/// Types one function, op by op.
class FunctionSharder {
public:
  FunctionSharder(func::FuncOp function, const Mesh &mesh,
                  const ShardingRequest &request)
      : function(function), mesh(mesh), request(request), propagation(mesh),
        builder(function.getContext()) {}

  FailureOr<ShardedFunction> run() {
    if (failed(buildPropagation()))
      return failure();
    propagation.run();
    typeArguments();
    for (auto [number, op] : llvm::enumerate(ops))
      typeOp(op, number);
    typeReturn();
    describeConflicts();
    return std::move(sharded);
  }

private:
  LogicalResult buildPropagation();
  void seedArguments();
  void typeArguments();
  void typeOp(Operation *op, OpId number);
  void typeReturn();
  void describeConflicts();
  SmallVector<Partial, 1> keptPartials(Operation *op, const ShardingRule &rule,
                                       ArrayRef<AxisList> factorAxes);
  bool keepsPartial(Operation *op, ArrayRef<unsigned> set,
                    const Partial &partial, ArrayRef<AxisList> factorAxes);
  Value inSharding(Value value, const Sharding &wanted);
  void setSharding(Value value, const Sharding &sharding);

  func::FuncOp function;
  const Mesh &mesh;
  const ShardingRequest &request;
  Propagation propagation;
  OpBuilder builder;
  SmallVector<Operation *> ops; // by OpId
  llvm::DenseMap<Value, ValueId> ids;
  llvm::DenseMap<Value, Sharding> shardings; // of values typed so far
  // A value in another sharding is made once.
  llvm::DenseMap<std::pair<Value, Attribute>, Value> reshards;
  ShardedFunction sharded;
};

} // namespace

LogicalResult FunctionSharder::buildPropagation() {
  auto idOf = [&](Value value) {
    auto [it, isNew] = ids.try_emplace(value, 0);
    if (isNew)
      it->second = propagation.addValue(tensorType(value).getShape());
    return it->second;
  };
  for (Value argument : function.getArguments())
    idOf(argument);
  for (Operation &op : function.front().without_terminator()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (!ruled)
      return op.emitError("'")
             << op.getName() << "' has no sharding rule; implement "
             << "ShardingRuleOpInterface for it (dialects/README.md shows how)";
    ops.push_back(&op);
    propagation.addOp(ruled.getShardingRule(),
                      llvm::map_to_vector(op.getOperands(), idOf),
                      llvm::map_to_vector(op.getResults(), idOf));
  }
  seedArguments();
  return success();
}

void FunctionSharder::seedArguments() {
  for (BlockArgument argument : function.getArguments())
    if (auto seed = request.argument(function, argument.getArgNumber()))
      propagation.seed(ids[argument], seed->sharding.dims, seed->reason,
                       seed->closed);
}

void FunctionSharder::typeArguments() {
  for (BlockArgument argument : function.getArguments()) {
    Sharding sharding;
    sharding.dims = propagation.dimsOf(ids[argument]);
    if (auto seed = request.argument(function, argument.getArgNumber()))
      sharding.partial = seed->sharding.partial;
    setSharding(argument, sharding);
    sharded.arguments.push_back(sharding);
  }
}

void FunctionSharder::setSharding(Value value, const Sharding &sharding) {
  RankedTensorType type = tensorType(value);
  value.setType(
      RankedTensorType::get(type.getShape(), type.getElementType(),
                            sharding.toAttr(function.getContext(), mesh)));
  shardings[value] = sharding;
}

/// Returns `value` in the sharding `wanted`, by a reshard after its definition
/// if it has another.
Value FunctionSharder::inSharding(Value value, const Sharding &wanted) {
  if (shardings[value] == wanted)
    return value;
  auto attr = wanted.toAttr(function.getContext(), mesh);
  Value &reshard = reshards[{value, attr}];
  if (reshard)
    return reshard;
  builder.setInsertionPointAfterValue(value);
  RankedTensorType type = tensorType(value);
  reshard = dist::ReshardOp::create(
      builder, value.getLoc(),
      RankedTensorType::get(type.getShape(), type.getElementType(), attr),
      value);
  shardings[reshard] = wanted;
  return reshard;
}

/// Whether `partial` may stay in the operands of `set` through `op`.
bool FunctionSharder::keepsPartial(Operation *op, ArrayRef<unsigned> set,
                                   const Partial &partial,
                                   ArrayRef<AxisList> factorAxes) {
  if (partial.kind != ReductionKind::Sum) // linear ops keep no maximum
    return false;
  for (const AxisList &list : factorAxes)
    if (llvm::is_contained(list, partial.axis))
      return false;
  int64_t before = 0, after = 0;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    const Sharding &has = shardings[operand];
    bool inSet = llvm::is_contained(set, unsigned(number));
    if (has.isPartialOver(partial.axis) != inSet)
      return false;
    if (!inSet)
      continue;
    if (!llvm::is_contained(has.partial, partial))
      return false;
    before += localBytes(mesh, operand, has);
  }
  for (Value result : op->getResults())
    after += localBytes(mesh, result,
                        Sharding::replicated(tensorType(result).getRank()));
  return after <= before;
}

/// The partial axes of the operands that the op passes on to its results.
SmallVector<Partial, 1>
FunctionSharder::keptPartials(Operation *op, const ShardingRule &rule,
                              ArrayRef<AxisList> factorAxes) {
  SmallVector<Partial, 1> kept;
  for (Value operand : op->getOperands())
    for (const Partial &partial : shardings[operand].partial) {
      bool keeps = llvm::any_of(rule.linearIn, [&](ArrayRef<unsigned> set) {
        return keepsPartial(op, set, partial, factorAxes);
      });
      if (keeps && !llvm::is_contained(kept, partial))
        kept.push_back(partial);
    }
  return kept;
}

void FunctionSharder::typeOp(Operation *op, OpId number) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<AxisList> factorAxes(propagation.factorAxesOf(number));
  SmallVector<Partial, 1> kept = keptPartials(op, rule, factorAxes);

  for (auto [operand, factors] :
       llvm::zip(op->getOpOperands(), rule.operands)) {
    Sharding wanted;
    wanted.dims = dimsFromFactors(mesh, rule, factors, factorAxes);
    for (const Partial &partial : shardings[operand.get()].partial)
      if (llvm::is_contained(kept, partial))
        wanted.partial.push_back(partial);
    operand.set(inSharding(operand.get(), wanted));
  }
  SmallVector<Partial, 1> partial = kept;
  for (auto [axes, factor] : llvm::zip(factorAxes, rule.factors))
    if (factor.kind == FactorKind::Reduced)
      for (Axis axis : axes)
        partial.push_back({axis, factor.reduction});
  llvm::sort(partial, [](const Partial &a, const Partial &b) {
    return a.axis < b.axis;
  });
  for (auto [result, factors] : llvm::zip(op->getResults(), rule.results)) {
    Sharding sharding;
    sharding.dims = dimsFromFactors(mesh, rule, factors, factorAxes);
    // A result that has a factor (the input's gradient beside the scale's) is
    // not reduced over it.
    for (const Partial &entry : partial)
      if (!sharding.cuts(entry.axis))
        sharding.partial.push_back(entry);
    setSharding(result, sharding);
  }
}

void FunctionSharder::typeReturn() {
  auto ret = cast<func::ReturnOp>(function.front().getTerminator());
  for (OpOperand &operand : ret->getOpOperands()) {
    Sharding wanted =
        request.result(function, operand.getOperandNumber(),
                       shardings[operand.get()], sharded.arguments);
    operand.set(inSharding(operand.get(), wanted));
    sharded.results.push_back(wanted);
  }
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      llvm::to_vector(ret.getOperandTypes())));
}

void FunctionSharder::describeConflicts() {
  for (const Conflict &conflict : propagation.conflicts()) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "'" << ops[conflict.op]->getName() << "' at "
       << ops[conflict.op]->getLoc() << ": not cut along "
       << mesh.axes[conflict.axis].name << ": " << conflict.reason;
    sharded.conflicts.push_back(text);
  }
}

FailureOr<ShardedFunction>
espalier::shardFunction(func::FuncOp function, const Mesh &mesh,
                        const ShardingRequest &request) {
  return FunctionSharder(function, mesh, request).run();
}
