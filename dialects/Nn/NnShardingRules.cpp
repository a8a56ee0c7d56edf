//===- NnShardingRules.cpp - Rules of elementwise and structural ops ------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"
#include "dialects/Nn/RuleBuilders.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

//===----------------------------------------------------------------------===//
// Values from nothing
//===----------------------------------------------------------------------===//

/// The value is the same in all blocks if it is one number; else a rank takes
/// its part after the fact, so that no dimension is cut here.
ShardingRule ConstantOp::getShardingRule() {
  auto dense = dyn_cast<DenseElementsAttr>(getValue());
  FactorKind kind =
      dense && dense.isSplat() ? FactorKind::Parallel : FactorKind::Whole;
  ShardingRule rule;
  rule.results = {newFactors(rule, shapeOf(getResult()), kind)};
  return rule;
}

ShardingRule IotaOp::getShardingRule() {
  ShardingRule rule;
  rule.operands.resize(getNumOperands());
  if (getOffset())
    rule.operands[0].resize(rankOf(getOffset()));
  rule.results = {newFactors(rule, shapeOf(getResult()))};
  return rule;
}

ShardingRule RandomUniformOp::getShardingRule() {
  ShardingRule rule;
  for (Value operand : getOperands())
    rule.operands.push_back(
        newFactors(rule, shapeOf(operand), FactorKind::Whole));
  rule.results = {newFactors(rule, shapeOf(getResult()))};
  return rule;
}

//===----------------------------------------------------------------------===//
// MapOp
//===----------------------------------------------------------------------===//

namespace {
/// How a scalar depends on one set of arguments, all scaled by one number:
/// not at all, linearly (f(tx) = t f(x) and additive), or in another way.
enum class Dependence { None, Linear, Other };
} // namespace

static Dependence dependenceOf(Operation &op, ArrayRef<Dependence> operands) {
  if (llvm::all_of(operands,
                   [](Dependence d) { return d == Dependence::None; }))
    return Dependence::None;
  if (llvm::is_contained(operands, Dependence::Other))
    return Dependence::Other;
  bool allLinear = llvm::all_of(
      operands, [](Dependence d) { return d == Dependence::Linear; });
  // A sum of partial and whole terms would count the whole ones once a rank.
  if (isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::ExtFOp>(op))
    return allLinear ? Dependence::Linear : Dependence::Other;
  if (isa<arith::MulFOp>(op))
    return allLinear ? Dependence::Other : Dependence::Linear;
  if (isa<arith::DivFOp>(op))
    return operands[1] == Dependence::None ? Dependence::Linear
                                           : Dependence::Other;
  return Dependence::Other;
}

/// Whether every result of the map is linear in the operands of `set`.
static bool isLinearIn(MapOp op, ArrayRef<unsigned> set) {
  Block &block = op.getBody().front();
  llvm::DenseMap<Value, Dependence> known;
  for (BlockArgument argument : block.getArguments())
    known[argument] = llvm::is_contained(set, argument.getArgNumber())
                          ? Dependence::Linear
                          : Dependence::None;
  for (Operation &scalar : block.without_terminator()) {
    SmallVector<Dependence> operands;
    for (Value operand : scalar.getOperands())
      operands.push_back(known.lookup(operand));
    Dependence dependence = dependenceOf(scalar, operands);
    for (Value result : scalar.getResults())
      known[result] = dependence;
  }
  return llvm::all_of(block.getTerminator()->getOperands(), [&](Value value) {
    return known.lookup(value) == Dependence::Linear;
  });
}

ShardingRule MapOp::getShardingRule() {
  ShardingRule rule;
  ArrayRef<int64_t> shape = shapeOf(getResult(0));
  TensorFactors factors = newFactors(rule, shape);
  for (Value operand : getOperands())
    rule.operands.push_back(broadcastFactors(factors, shapeOf(operand), shape));
  rule.results.assign(getNumResults(), factors);

  // Each floating-point operand alone, then all of them: a product, then a sum.
  SmallVector<unsigned, 2> all;
  for (auto [number, operand] : llvm::enumerate(getOperands())) {
    if (!isa<FloatType>(getElementTypeOrSelf(operand)))
      continue;
    all.push_back(number);
    if (isLinearIn(*this, {unsigned(number)}))
      rule.linearIn.push_back({unsigned(number)});
  }
  if (all.size() > 1 && isLinearIn(*this, all))
    rule.linearIn.push_back(all);
  return rule;
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// Cuts both shapes at common products into runs. Within a run, the sizes of
/// the two sides are split into common factors from the left as long as one
/// divides the other; where they do not, the rest of the run is one whole
/// factor.
ShardingRule ReshapeOp::getShardingRule() {
  ShardingRule rule;
  ReshapeFactors factors =
      reshapeFactors(rule, shapeOf(getInput()), shapeOf(getResult()));
  rule.operands = {factors.input};
  rule.results = {factors.result};
  rule.linearIn = {{0}};
  return rule;
}

ShardingRule TransposeOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input = newFactors(rule, shapeOf(getInput()));
  TensorFactors result;
  for (int64_t dim : getPermutation())
    result.push_back(input[dim]);
  rule.operands = {input};
  rule.results = {result};
  rule.linearIn = {{0}};
  return rule;
}

/// The rule of ops that change sizes in some dimensions: these are whole, with
/// a factor for each side.
static ShardingRule resizingRule(ValueRange inputs, Value result,
                                 ArrayRef<bool> resized) {
  ShardingRule rule;
  TensorFactors factors = newFactors(rule, shapeOf(result));
  for (auto [dim, isResized] : llvm::enumerate(resized))
    if (isResized)
      for (unsigned factor : factors[dim])
        rule.factors[factor].kind = FactorKind::Whole;
  for (Value input : inputs) {
    TensorFactors own = factors;
    for (auto [dim, isResized] : llvm::enumerate(resized))
      if (isResized)
        own[dim] = {rule.addFactor(shapeOf(input)[dim], FactorKind::Whole)};
    rule.operands.push_back(own);
  }
  rule.results = {factors};
  return rule;
}

ShardingRule SliceOp::getShardingRule() {
  SmallVector<bool> resized;
  for (auto [from, to] : llvm::zip(shapeOf(getInput()), shapeOf(getResult())))
    resized.push_back(from != to);
  ShardingRule rule = resizingRule({getInput()}, getResult(), resized);
  rule.linearIn = {{0}};
  return rule;
}

ShardingRule ConcatOp::getShardingRule() {
  SmallVector<bool> resized(rankOf(getResult()));
  resized[getDim()] = true;
  ShardingRule rule = resizingRule(getInputs(), getResult(), resized);
  rule.linearIn.push_back(
      llvm::to_vector<2>(llvm::seq(0u, unsigned(getInputs().size()))));
  return rule;
}

ShardingRule PadOp::getShardingRule() {
  SmallVector<bool> resized;
  for (auto [low, high] : llvm::zip(getLow(), getHigh()))
    resized.push_back(low + high > 0);
  ShardingRule rule = resizingRule({getInput()}, getResult(), resized);
  if (isZero(getValue())) // other margins would be counted once a rank
    rule.linearIn = {{0}};
  return rule;
}

ShardingRule BroadcastOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors factors = newFactors(rule, shapeOf(getResult()));
  rule.operands = {
      broadcastFactors(factors, shapeOf(getInput()), shapeOf(getResult()))};
  rule.results = {factors};
  rule.linearIn = {{0}};
  return rule;
}

//===----------------------------------------------------------------------===//
// Reductions and products
//===----------------------------------------------------------------------===//

ShardingRule ReduceOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input = newFactors(rule, shapeOf(getInput()));
  TensorFactors result = input;
  for (int64_t dim : getDims()) {
    for (unsigned factor : input[dim]) {
      rule.factors[factor].kind = FactorKind::Reduced;
      rule.factors[factor].reduction = getKind();
    }
    result[dim].clear();
  }
  rule.operands = {input};
  rule.results = {result};
  if (getKind() == ReductionKind::Sum)
    rule.linearIn = {{0}};
  return rule;
}

ShardingRule ContractOp::getShardingRule() {
  ShardingRule rule;
  llvm::DenseMap<char, unsigned> factorOf;
  auto [lhs, rhs, result] = getLetters();
  auto factorsOf = [&](StringRef letters, Value tensor) {
    TensorFactors factors;
    for (auto [letter, size] : llvm::zip(letters, shapeOf(tensor))) {
      auto [it, isNew] = factorOf.try_emplace(letter, 0);
      if (isNew)
        it->second =
            rule.addFactor(size, result.contains(letter) ? FactorKind::Parallel
                                                         : FactorKind::Reduced);
      factors.push_back({it->second});
    }
    return factors;
  };
  rule.operands = {factorsOf(lhs, getLhs()), factorsOf(rhs, getRhs())};
  rule.results = {factorsOf(result, getResult())};
  rule.linearIn = {{0}, {1}};
  return rule;
}
