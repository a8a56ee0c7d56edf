//===- NnLayerShardingRules.cpp - Sharding rules of layers ----------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"
#include "dialects/Nn/RuleBuilders.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

//===----------------------------------------------------------------------===//
// Softmax and norms: rows are independent, a row is whole
//===----------------------------------------------------------------------===//

/// Factors of [rows..., whole].
static TensorFactors rowFactors(ShardingRule &rule, Value tensor) {
  TensorFactors factors = newFactors(rule, shapeOf(tensor));
  rule.factors[factors.back().front()].kind = FactorKind::Whole;
  return factors;
}

ShardingRule SoftmaxOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors rows = rowFactors(rule, getInput());
  rule.operands = {rows};
  rule.results = {rows};
  return rule;
}

ShardingRule SoftmaxGradOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors rows = rowFactors(rule, getY());
  rule.operands = {rows, rows};
  rule.results = {rows};
  rule.linearIn = {{1}};
  return rule;
}

/// The rule of a norm, or of its gradient: `rows` operands like the input, then
/// `columns` operands like its last dimension.
static ShardingRule normRule(Value input, unsigned rows, unsigned columns) {
  ShardingRule rule;
  TensorFactors factors = rowFactors(rule, input);
  rule.operands.append(rows, factors);
  rule.operands.append(columns, {factors.back()});
  rule.results = {factors};
  return rule;
}

/// Gradients of a norm's scale and bias are sums over the rows.
static ShardingRule normGradRule(Value input, unsigned operands,
                                 unsigned columnResults) {
  ShardingRule rule = normRule(input, 2, operands - 2);
  for (Factor &factor : rule.factors)
    if (factor.kind == FactorKind::Parallel)
      factor.kind = FactorKind::Reduced;
  rule.results.append(columnResults, {rule.operands[0].back()});
  rule.linearIn = {{1}};
  return rule;
}

ShardingRule LayerNormOp::getShardingRule() {
  return normRule(getInput(), 1, getNumOperands() - 1);
}
ShardingRule LayerNormGradOp::getShardingRule() {
  return normGradRule(getInput(), getNumOperands(), 2);
}
ShardingRule RmsNormOp::getShardingRule() {
  return normRule(getInput(), 1, getNumOperands() - 1);
}
ShardingRule RmsNormGradOp::getShardingRule() {
  return normGradRule(getInput(), getNumOperands(), 1);
}

//===----------------------------------------------------------------------===//
// Convolution and pooling: spatial dimensions are whole
//===----------------------------------------------------------------------===//

namespace {
struct ConvFactors {
  TensorFactors input, filter, output;
};
} // namespace

/// Channels are summed over, unless they come in groups, which are whole.
static ConvFactors convFactors(ShardingRule &rule, Value input, Value filter,
                               Value output, int64_t groups) {
  FactorKind channelKind =
      groups == 1 ? FactorKind::Parallel : FactorKind::Whole;
  unsigned batch = rule.addFactor(shapeOf(input)[0]);
  unsigned features = rule.addFactor(shapeOf(filter)[0], channelKind);
  unsigned channels = rule.addFactor(shapeOf(input)[1], channelKind);
  unsigned filterChannels =
      groups == 1 ? channels
                  : rule.addFactor(shapeOf(filter)[1], FactorKind::Whole);
  ConvFactors factors{{{batch}, {channels}},
                      {{features}, {filterChannels}},
                      {{batch}, {features}}};
  auto addSpatial = [&](TensorFactors &tensor, Value value) {
    llvm::append_range(tensor, newFactors(rule, shapeOf(value).drop_front(2),
                                          FactorKind::Whole));
  };
  addSpatial(factors.input, input);
  addSpatial(factors.filter, filter);
  addSpatial(factors.output, output);
  return factors;
}

/// Makes the cuttable factors that `result` lacks reduced.
static ShardingRule productRule(ShardingRule rule, TensorFactors lhs,
                                TensorFactors rhs, TensorFactors result) {
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    bool inResult = llvm::any_of(result, [&](const DimFactors &dim) {
      return llvm::is_contained(dim, number);
    });
    if (!inResult && factor.kind == FactorKind::Parallel)
      factor.kind = FactorKind::Reduced;
  }
  rule.operands = {lhs, rhs};
  rule.results = {result};
  rule.linearIn = {{0}, {1}};
  return rule;
}

ShardingRule ConvOp::getShardingRule() {
  ShardingRule rule;
  ConvFactors factors =
      convFactors(rule, getInput(), getFilter(), getResult(), getGroups());
  return productRule(rule, factors.input, factors.filter, factors.output);
}

ShardingRule ConvInputGradOp::getShardingRule() {
  ShardingRule rule;
  ConvFactors factors =
      convFactors(rule, getResult(), getFilter(), getDy(), getGroups());
  return productRule(rule, factors.output, factors.filter, factors.input);
}

ShardingRule ConvFilterGradOp::getShardingRule() {
  ShardingRule rule;
  ConvFactors factors =
      convFactors(rule, getInput(), getResult(), getDy(), getGroups());
  return productRule(rule, factors.input, factors.output, factors.filter);
}

/// [batch, channels] are parallel, the spatial dimensions of each tensor whole.
static ShardingRule poolRule(Operation *op) {
  ShardingRule rule;
  Value result = op->getResult(0);
  TensorFactors shared = newFactors(rule, shapeOf(result).take_front(2));
  auto factorsOf = [&](Value tensor) {
    TensorFactors factors = shared;
    llvm::append_range(factors, newFactors(rule, shapeOf(tensor).drop_front(2),
                                           FactorKind::Whole));
    return factors;
  };
  for (Value operand : op->getOperands())
    rule.operands.push_back(factorsOf(operand));
  rule.results = {factorsOf(result)};
  return rule;
}

ShardingRule MaxPoolOp::getShardingRule() { return poolRule(*this); }
ShardingRule MaxPoolGradOp::getShardingRule() {
  ShardingRule rule = poolRule(*this);
  rule.linearIn = {{1}};
  return rule;
}
ShardingRule AvgPoolOp::getShardingRule() {
  ShardingRule rule = poolRule(*this);
  rule.linearIn = {{0}};
  return rule;
}
ShardingRule AvgPoolGradOp::getShardingRule() {
  ShardingRule rule = poolRule(*this);
  rule.linearIn = {{0}};
  return rule;
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {
struct TableFactors {
  TensorFactors table, indices, rows;
};
} // namespace

static TableFactors tableFactors(ShardingRule &rule, Value table,
                                 Value indices) {
  TableFactors factors;
  factors.table = newFactors(rule, shapeOf(table));
  rule.factors[factors.table.front().front()].kind = FactorKind::Whole;
  factors.indices = newFactors(rule, shapeOf(indices));
  factors.rows = factors.indices;
  factors.rows.append(factors.table.begin() + 1, factors.table.end());
  return factors;
}

ShardingRule GatherOp::getShardingRule() {
  ShardingRule rule;
  TableFactors factors = tableFactors(rule, getTable(), getIndices());
  rule.operands = {factors.table, factors.indices};
  rule.results = {factors.rows};
  rule.linearIn = {{0}};
  return rule;
}

ShardingRule ScatterAddOp::getShardingRule() {
  ShardingRule rule;
  TableFactors factors = tableFactors(rule, getResult(), getIndices());
  for (const DimFactors &dim : factors.indices)
    rule.factors[dim.front()].kind = FactorKind::Reduced;
  rule.operands = {factors.indices, factors.rows};
  rule.results = {factors.table};
  rule.linearIn = {{1}};
  return rule;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
struct AttentionFactors {
  TensorFactors query, key, value, out, lse, mask;
};
} // namespace

/// Batch and groups of heads are parallel. Queries within a head are too, but
/// the causal mask needs their place, so that they are whole here.
static AttentionFactors attentionFactors(ShardingRule &rule, Value query,
                                         Value key, Value value, Value mask) {
  int64_t groups = shapeOf(key)[1], heads = shapeOf(query)[1];
  unsigned batch = rule.addFactor(shapeOf(query)[0]);
  unsigned group = rule.addFactor(groups);
  unsigned headInGroup = rule.addFactor(heads / groups, FactorKind::Whole);
  auto whole = [&](int64_t size) {
    return rule.addFactor(size, FactorKind::Whole);
  };
  unsigned queries = whole(shapeOf(query)[2]), keys = whole(shapeOf(key)[2]);
  unsigned size = whole(shapeOf(query)[3]),
           valueSize = whole(shapeOf(value)[3]);
  DimFactors head = {group, headInGroup};
  AttentionFactors factors;
  factors.query = {{batch}, head, {queries}, {size}};
  factors.key = {{batch}, {group}, {keys}, {size}};
  factors.value = {{batch}, {group}, {keys}, {valueSize}};
  factors.out = {{batch}, head, {queries}, {valueSize}};
  factors.lse = {{batch}, head, {queries}};
  if (mask)
    factors.mask = broadcastFactors(
        {{batch}, head, {queries}, {keys}}, shapeOf(mask),
        {shapeOf(query)[0], heads, shapeOf(query)[2], shapeOf(key)[2]});
  return factors;
}

ShardingRule AttentionOp::getShardingRule() {
  ShardingRule rule;
  AttentionFactors factors =
      attentionFactors(rule, getQuery(), getKey(), getValue(), getMask());
  rule.operands = {factors.query, factors.key, factors.value};
  if (getMask())
    rule.operands.push_back(factors.mask);
  rule.results = {factors.out, factors.lse};
  return rule;
}

ShardingRule AttentionGradOp::getShardingRule() {
  ShardingRule rule;
  AttentionFactors factors =
      attentionFactors(rule, getQuery(), getKey(), getValue(), getMask());
  rule.operands = {factors.query, factors.key, factors.value,
                   factors.out,   factors.lse, factors.out};
  if (getMask())
    rule.operands.push_back(factors.mask);
  rule.results = {factors.query, factors.key, factors.value};
  return rule;
}

ShardingRule RopeOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input = rowFactors(rule, getInput());
  SmallVector<int64_t> angles(shapeOf(getInput()));
  angles.back() /= 2;
  TensorFactors wide = input;
  wide.back() = {rule.addFactor(angles.back(), FactorKind::Whole)};
  rule.operands = {input, broadcastFactors(wide, shapeOf(getCos()), angles),
                   broadcastFactors(wide, shapeOf(getSin()), angles)};
  rule.results = {input};
  rule.linearIn = {{0}};
  return rule;
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

ShardingRule CrossEntropyOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors logits = rowFactors(rule, getLogits());
  TensorFactors rows(logits.begin(), logits.end() - 1);
  rule.operands = {logits, rows};
  rule.results = {rows, rows};
  return rule;
}

ShardingRule CrossEntropyGradOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors logits = rowFactors(rule, getLogits());
  TensorFactors rows(logits.begin(), logits.end() - 1);
  rule.operands = {logits, rows, rows, rows};
  rule.results = {logits};
  rule.linearIn = {{3}};
  return rule;
}
