//===- Propagation.cpp - Shardings of a program from those of a few -------===//

#include "espalier/Sharding/Propagation.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace espalier;

ValueId Propagation::addValue(ArrayRef<int64_t> shape) {
  ValueState &value = values.emplace_back();
  value.shape.assign(shape.begin(), shape.end());
  value.dims.resize(shape.size());
  return values.size() - 1;
}

OpId Propagation::addOp(ShardingRule rule, ArrayRef<ValueId> operands,
                        ArrayRef<ValueId> results) {
  OpId id = ops.size();
  OpState &op = ops.emplace_back();
  op.factorAxes.resize(rule.factors.size());
  op.rule = std::move(rule);
  op.tensors.append(operands.begin(), operands.end());
  op.tensors.append(results.begin(), results.end());
  for (ValueId value : op.tensors)
    values[value].users.push_back(id);
  return id;
}

void Propagation::seed(ValueId value, const DimAxes &dims, std::string reason,
                       bool closed) {
  values[value].dims = dims;
  values[value].closed = closed;
  for (const AxisList &list : dims)
    for (Axis axis : list)
      values[value].origins.push_back(
          {axis, std::nullopt, std::nullopt, reason});
}

void Propagation::run() {
  // In the order of the program, so that forward comes before backward.
  for (OpId op = 0; op < ops.size(); ++op)
    enqueue(op);
  while (!queue.empty()) {
    OpId op = queue.front();
    queue.pop_front();
    ops[op].queued = false;
    visit(op);
  }
}

void Propagation::enqueue(OpId op) {
  if (ops[op].queued)
    return;
  ops[op].queued = true;
  queue.push_back(op);
}

const TensorFactors &Propagation::factorsOf(const OpState &op,
                                            size_t tensor) const {
  size_t operands = op.rule.operands.size();
  return tensor < operands ? op.rule.operands[tensor]
                           : op.rule.results[tensor - operands];
}

void Propagation::visit(OpId op) {
  for (size_t tensor = 0; tensor < ops[op].tensors.size(); ++tensor)
    takeFrom(op, tensor);
  for (size_t tensor = 0; tensor < ops[op].tensors.size(); ++tensor)
    giveTo(op, tensor);
}

/// Reads a tensor's dimensions as cuts of the op's factors.
void Propagation::takeFrom(OpId op, size_t tensor) {
  ValueId value = ops[op].tensors[tensor];
  const TensorFactors &factors = factorsOf(ops[op], tensor);
  for (auto [list, dim] : zip(values[value].dims, factors)) {
    size_t current = 0, depth = 0; // the factor, and how many axes cut it
    int64_t cut = 1;               // into how many blocks
    for (Axis axis : list) {
      while (current < dim.size() &&
             cut == ops[op].rule.factors[dim[current]].size) {
        ++current;
        depth = 0;
        cut = 1;
      }
      if (current == dim.size() ||
          !cutFactor(op, value, dim[current], axis, depth))
        break;
      cut *= mesh.axes[axis].size;
      ++depth;
    }
  }
}

/// Cuts a factor along `axis`, as the axis number `depth` of its list. Returns
/// whether it is cut so.
bool Propagation::cutFactor(OpId op, ValueId from, unsigned factor, Axis axis,
                            size_t depth) {
  OpState &state = ops[op];
  AxisList &list = state.factorAxes[factor];
  if (depth < list.size()) {
    if (list[depth] == axis)
      return true;
    record(op, from, axis, "the op is cut there along another axis");
    return false;
  }
  if (state.rule.factors[factor].kind == FactorKind::Whole) {
    record(op, from, axis, "the op needs this dimension whole");
    return false;
  }
  bool usedElsewhere = any_of(state.factorAxes, [&](const AxisList &other) {
    return is_contained(other, axis);
  });
  if (usedElsewhere) {
    record(op, from, axis, "the op uses the axis for another dimension");
    return false;
  }
  int64_t blocks = mesh.sizeOf(list) * mesh.axes[axis].size;
  if (state.rule.factors[factor].size % blocks != 0) {
    record(op, from, axis, "the size does not divide");
    return false;
  }
  list.push_back(axis);
  return true;
}

/// Cuts a tensor as the op's factors are, where it is not cut otherwise.
void Propagation::giveTo(OpId op, size_t tensor) {
  ValueId id = ops[op].tensors[tensor];
  ValueState &value = values[id];
  if (value.closed)
    return;
  DimAxes wanted = dimsFromFactors(
      mesh, ops[op].rule, factorsOf(ops[op], tensor), ops[op].factorAxes);
  bool changed = false;
  for (auto [list, target] : zip(value.dims, wanted)) {
    if (list.size() >= target.size() ||
        !equal(list, ArrayRef<Axis>(target).take_front(list.size())))
      continue;
    for (Axis axis : ArrayRef<Axis>(target).drop_front(list.size())) {
      if (any_of(value.dims,
                 [&](const AxisList &dim) { return is_contained(dim, axis); }))
        break;
      list.push_back(axis);
      value.origins.push_back({axis, op, std::nullopt, ""});
      changed = true;
    }
  }
  if (changed)
    for (OpId user : value.users)
      enqueue(user);
}

void Propagation::record(OpId op, ValueId value, Axis axis,
                         std::string reason) {
  // An op is visited several times; one conflict of a kind is enough.
  for (const Conflict &known : reverse(conflictList)) {
    if (known.op != op)
      break;
    if (known.value == value && known.axis == axis)
      return;
  }
  conflictList.push_back({op, value, axis, std::move(reason)});
}

DimAxes espalier::dimsFromFactors(const Mesh &mesh, const ShardingRule &rule,
                                  const TensorFactors &factors,
                                  ArrayRef<AxisList> factorAxes) {
  DimAxes dims;
  for (const DimFactors &dim : factors) {
    AxisList &list = dims.emplace_back();
    for (unsigned factor : dim) {
      list.append(factorAxes[factor].begin(), factorAxes[factor].end());
      if (mesh.sizeOf(factorAxes[factor]) != rule.factors[factor].size)
        break;
    }
  }
  return dims;
}
