//===- PlanChecker.cpp - Types a planned program by the ops' rules --------===//

#include "espalier/Verify/PlanChecker.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ShardingRuleOpInterface.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace espalier;
using dist::ShardingAttr;

namespace {

using AxisNames = SmallVector<StringAttr, 2>;

/// Checks one op; messages follow the numbers at the top of the header.
class OpChecker {
public:
  OpChecker(Operation *op, const llvm::StringMap<int64_t> &sizes)
      : op(op), sizes(sizes),
        rule(cast<ShardingRuleOpInterface>(op).getShardingRule()),
        cuts(rule.factors.size()), known(rule.factors.size()) {}

  LogicalResult run() {
    for (auto [value, factors] : llvm::zip(op->getOperands(), rule.operands))
      if (failed(readCuts(value, factors)))
        return failure();
    for (auto [value, factors] : llvm::zip(op->getResults(), rule.results))
      if (failed(readCuts(value, factors)))
        return failure();
    for (const auto &axis : sizes)
      if (failed(checkPartial(axis.getKey())))
        return failure();
    return success();
  }

private:
  LogicalResult readCuts(Value value, const TensorFactors &factors);
  LogicalResult readDim(Value value, ArrayAttr axes, const DimFactors &dim);
  LogicalResult agree(Value value, unsigned factor, const AxisNames &axes);
  LogicalResult checkPartial(StringRef axis);
  LogicalResult checkFactorAxis(StringRef axis, unsigned factor);
  LogicalResult checkFreeAxis(StringRef axis);
  std::optional<ReductionKind> partialKind(Value value, StringRef axis) const;

  Operation *op;
  const llvm::StringMap<int64_t> &sizes; // of the mesh's axes
  ShardingRule rule;
  SmallVector<AxisNames> cuts; // by factor
  SmallVector<bool> known;     // whether a tensor has said how it is cut
};

} // namespace

LogicalResult OpChecker::readCuts(Value value, const TensorFactors &factors) {
  ShardingAttr sharding = dist::shardingOf(value.getType());
  for (auto [axes, dim] : llvm::zip(sharding.getDims(), factors))
    if (failed(readDim(value, axes, dim)))
      return failure();
  return success();
}

/// Reads a dimension's axes as cuts of its factors (2).
LogicalResult OpChecker::readDim(Value value, ArrayAttr axes,
                                 const DimFactors &dim) {
  SmallVector<StringAttr> rest = llvm::to_vector(axes.getAsRange<StringAttr>());
  size_t taken = 0;
  bool open = true; // whether all factors so far are cut to single elements
  for (unsigned factor : dim) {
    AxisNames own;
    int64_t blocks = 1, size = rule.factors[factor].size;
    while (open && taken < rest.size() && blocks < size) {
      blocks *= sizes.lookup(rest[taken].getValue());
      own.push_back(rest[taken++]);
    }
    if (size % blocks != 0) // (3)
      return op->emitOpError("has a dimension of ")
             << size << " elements cut into " << blocks << " blocks";
    open = open && blocks == size;
    if (failed(agree(value, factor, own)))
      return failure();
  }
  if (taken < rest.size())
    return op->emitOpError("has a tensor cut along ")
           << rest[taken]
           << " where its rule has no factor: " << value.getType();
  return success();
}

LogicalResult OpChecker::agree(Value value, unsigned factor,
                               const AxisNames &axes) {
  if (known[factor] && cuts[factor] != axes)
    return op->emitOpError("has tensors that cut one dimension differently, "
                           "among them ")
           << value.getType();
  if (rule.factors[factor].kind == FactorKind::Whole && !axes.empty()) // (3)
    return op->emitOpError("needs a dimension whole that is cut in ")
           << value.getType();
  known[factor] = true;
  cuts[factor] = axes;
  return success();
}

std::optional<ReductionKind> OpChecker::partialKind(Value value,
                                                    StringRef axis) const {
  ShardingAttr sharding = dist::shardingOf(value.getType());
  for (auto [name, kind] :
       llvm::zip(sharding.getPartialAxes(), sharding.getPartialKinds()))
    if (name.getValue() == axis)
      return kind;
  return std::nullopt;
}

LogicalResult OpChecker::checkPartial(StringRef axis) {
  for (auto [factor, axes] : llvm::enumerate(cuts))
    for (StringAttr name : axes)
      if (name.getValue() == axis)
        return checkFactorAxis(axis, factor);
  return checkFreeAxis(axis);
}

/// (5)
LogicalResult OpChecker::checkFactorAxis(StringRef axis, unsigned factor) {
  for (Value operand : op->getOperands())
    if (partialKind(operand, axis))
      return op->emitOpError("takes a value that is partial over '")
             << axis << "', along which it is cut";
  for (auto [result, factors] : llvm::zip(op->getResults(), rule.results)) {
    bool has = llvm::any_of(factors, [&](const DimFactors &dim) {
      return llvm::is_contained(dim, factor);
    });
    std::optional<ReductionKind> kind = partialKind(result, axis);
    if (has && kind)
      return op->emitOpError("has a result that is not partial over '")
             << axis << "' but is typed so";
    if (has)
      continue;
    if (rule.factors[factor].kind != FactorKind::Reduced)
      return op->emitOpError("has a result without a dimension that is cut "
                             "along '")
             << axis << "'";
    if (kind != rule.factors[factor].reduction)
      return op->emitOpError("has a result that is partial over '")
             << axis << "' by "
             << stringifyReductionKind(rule.factors[factor].reduction)
             << ", but its type is " << result.getType();
  }
  return success();
}

/// (4)
LogicalResult OpChecker::checkFreeAxis(StringRef axis) {
  SmallVector<unsigned, 2> partial;
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    if (std::optional<ReductionKind> kind = partialKind(operand, axis)) {
      if (*kind != ReductionKind::Sum)
        return op->emitOpError("takes a value that is partial over '")
               << axis << "' by a reduction other than a sum";
      partial.push_back(number);
    }
  bool passes = llvm::any_of(rule.linearIn, [&](ArrayRef<unsigned> set) {
    return llvm::equal(set, partial);
  });
  if (!partial.empty() && !passes)
    return op->emitOpError("takes values that are partial over '")
           << axis << "', in which it is not linear";
  for (Value result : op->getResults()) {
    std::optional<ReductionKind> kind = partialKind(result, axis);
    if (kind.has_value() != !partial.empty() ||
        (kind && *kind != ReductionKind::Sum))
      return op->emitOpError("has a result that is ")
             << (partial.empty() ? "not " : "") << "partial over '" << axis
             << "', but its type is " << result.getType();
  }
  return success();
}

/// (1)
static LogicalResult checkType(Operation *op, Value value,
                               const llvm::StringMap<int64_t> &sizes) {
  ShardingAttr sharding = dist::shardingOf(value.getType());
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !sharding ||
      int64_t(sharding.getDims().size()) != type.getRank())
    return op->emitOpError("has a tensor without a sharding of its rank: ")
           << value.getType();
  auto isAxis = [&](StringAttr name) {
    return sizes.contains(name.getValue());
  };
  for (ArrayAttr dim : sharding.getDims())
    if (!llvm::all_of(dim.getAsRange<StringAttr>(), isAxis))
      return op->emitOpError(
                 "has a tensor cut along an axis that the mesh does "
                 "not have: ")
             << value.getType();
  if (!llvm::all_of(sharding.getPartialAxes(), isAxis))
    return op->emitOpError("has a tensor partial over an axis that the mesh "
                           "does not have: ")
           << value.getType();
  return success();
}

static LogicalResult checkReshard(dist::ReshardOp op) {
  ShardingAttr from = dist::shardingOf(op.getInput().getType());
  ShardingAttr to = dist::shardingOf(op.getResult().getType());
  for (auto [axis, kind] :
       llvm::zip(to.getPartialAxes(), to.getPartialKinds())) {
    bool same = false;
    for (auto [has, hasKind] :
         llvm::zip(from.getPartialAxes(), from.getPartialKinds()))
      same |= has == axis && hasKind == kind;
    if (!same)
      return op.emitOpError("makes a value partial over ") << axis;
  }
  return success();
}

static LogicalResult checkOp(Operation *op,
                             const llvm::StringMap<int64_t> &sizes) {
  for (Value value : op->getOperands())
    if (failed(checkType(op, value, sizes)))
      return failure();
  for (Value value : op->getResults())
    if (failed(checkType(op, value, sizes)))
      return failure();
  if (auto reshard = dyn_cast<dist::ReshardOp>(op))
    return checkReshard(reshard);
  if (isa<func::ReturnOp>(op))
    return success();
  if (!isa<ShardingRuleOpInterface>(op))
    return op->emitError("'") << op->getName() << "' has no sharding rule";
  return OpChecker(op, sizes).run();
}

LogicalResult espalier::checkPlan(ModuleOp module) {
  dist::MeshOp mesh = dist::meshOf(module);
  if (!mesh)
    return module.emitError("has no dist.mesh");
  llvm::StringMap<int64_t> sizes;
  for (auto axis : mesh.getAxes().getAsRange<dist::MeshAxisAttr>())
    sizes[axis.getName()] = axis.getSize();
  bool ok = true;
  for (auto function : module.getOps<func::FuncOp>())
    for (Operation &op : function.front())
      if (failed(checkOp(&op, sizes))) {
        ok = false;
        break;
      }
  return success(ok);
}
