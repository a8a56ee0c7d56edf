//===- RuleBuilders.cpp - What sharding rules are made of -----------------===//

#include "dialects/Nn/RuleBuilders.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

TensorFactors nn::newFactors(ShardingRule &rule, ArrayRef<int64_t> shape,
                             FactorKind kind) {
  TensorFactors factors;
  for (int64_t size : shape)
    factors.push_back({rule.addFactor(size, kind)});
  return factors;
}

TensorFactors nn::broadcastFactors(const TensorFactors &factors,
                                   ArrayRef<int64_t> from,
                                   ArrayRef<int64_t> to) {
  size_t missing = to.size() - from.size();
  TensorFactors own;
  for (size_t dim = 0; dim < from.size(); ++dim)
    own.push_back(from[dim] == to[missing + dim] ? factors[missing + dim]
                                                 : DimFactors());
  return own;
}

namespace {

/// One side of a reshape, read from the left.
struct Side {
  ArrayRef<int64_t> shape;
  TensorFactors factors;
  size_t dim = 0;   // the current dimension
  int64_t rest = 0; // of its size, what has no factor yet

  explicit Side(ArrayRef<int64_t> shape) : shape(shape), factors(shape.size()) {
    enter();
  }
  bool atEnd() const { return dim == shape.size(); }
  /// Passes over dimensions of size 1, which need no factor.
  void enter() {
    while (!atEnd() && shape[dim] == 1)
      ++dim;
    rest = atEnd() ? 1 : shape[dim];
  }
  void take(unsigned factor, int64_t size) {
    factors[dim].push_back(factor);
    rest /= size;
    if (rest == 1) {
      ++dim;
      enter();
    }
  }
};

} // namespace

/// Makes whole what is left of the current dimensions, up to the next place
/// where both sides have the same number of elements.
static void takeWhole(ShardingRule &rule, Side &input, Side &result) {
  int64_t left = 1, right = 1; // elements taken on each side
  auto takeOne = [&](Side &side, int64_t &taken) {
    int64_t size = side.rest;
    side.take(rule.addFactor(size, FactorKind::Whole), size);
    taken *= size;
  };
  takeOne(input, left);
  takeOne(result, right);
  while (left != right)
    left < right ? takeOne(input, left) : takeOne(result, right);
}

ReshapeFactors nn::reshapeFactors(ShardingRule &rule, ArrayRef<int64_t> input,
                                  ArrayRef<int64_t> result) {
  if (llvm::is_contained(input, 0)) // nothing to cut, and products are all 0
    return {newFactors(rule, input, FactorKind::Whole),
            newFactors(rule, result, FactorKind::Whole)};
  Side from(input), to(result);
  while (!from.atEnd() && !to.atEnd()) {
    int64_t small = std::min(from.rest, to.rest);
    if (std::max(from.rest, to.rest) % small != 0) {
      takeWhole(rule, from, to);
      continue;
    }
    unsigned factor = rule.addFactor(small);
    from.take(factor, small);
    to.take(factor, small);
  }
  return {from.factors, to.factors};
}

bool nn::isZero(Attribute number) {
  if (auto value = dyn_cast<FloatAttr>(number))
    return value.getValue().isZero();
  if (auto value = dyn_cast<IntegerAttr>(number))
    return value.getValue().isZero();
  return false;
}
