//===- RandomArguments.cpp - Numbers to run a program on ------------------===//

#include "RandomArguments.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"
#include "espalier/Sharding/ShardFunction.h"

#include <random>

using namespace mlir;
using namespace espalier;

namespace {

/// What the integers of an argument may be.
struct IndexRange {
  int64_t count = 2; // 0 .. count-1; a mask's, where nothing indexes with it
  std::optional<int64_t> ignored;
};

/// The range that the ops on the way from `value` allow.
IndexRange rangeOf(Value value) {
  IndexRange range;
  bool found = false;
  auto narrow = [&](int64_t count) {
    range.count = found ? std::min(range.count, count) : count;
    found = true;
  };
  SmallVector<Value> pending = {value};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    for (OpOperand &use : next.getUses()) {
      Operation *user = use.getOwner();
      if (auto gather = dyn_cast<nn::GatherOp>(user);
          gather && use.getOperandNumber() == 1)
        narrow(nn::shapeOf(gather.getTable()).front());
      else if (auto scatter = dyn_cast<nn::ScatterAddOp>(user);
               scatter && use.getOperandNumber() == 0)
        narrow(nn::shapeOf(scatter.getResult()).front());
      else if (auto loss = dyn_cast<nn::CrossEntropyOp>(user);
               loss && use.getOperandNumber() == 1) {
        narrow(nn::shapeOf(loss.getLogits()).back());
        range.ignored = loss.getIgnoreIndex();
      } else if (isa<nn::ReshapeOp, nn::SliceOp, nn::TransposeOp, nn::MapOp,
                     nn::BroadcastOp>(user))
        llvm::append_range(pending, user->getResults());
    }
  }
  return range;
}

class ArgumentMaker {
public:
  ArgumentMaker(func::FuncOp function, const EquivalenceOptions &options)
      : function(function), options(options), random(options.seed) {}

  Tensor make(BlockArgument argument) {
    Tensor tensor(cast<RankedTensorType>(argument.getType()));
    StringRef role =
        argumentString(function, argument.getArgNumber(), kRoleAttr);
    StringRef name =
        argumentString(function, argument.getArgNumber(), kNameAttr);
    if (role == "valid")
      fillValid(tensor);
    else if (role == "rng")
      tensor.integers = {int64_t(options.seed), 3, 1};
    else if (role == "step")
      tensor.integers = {3};
    else if (tensor.isFloat())
      fillFloats(tensor, role == "buffer" || name.starts_with("exp_avg_sq/"));
    else
      fillIndices(tensor, rangeOf(argument));
    return tensor;
  }

private:
  void fillValid(Tensor &tensor) {
    llvm::fill(tensor.integers, 1);
    int64_t padded = std::min(options.padded, tensor.size() - 1);
    for (int64_t i = 0; i < padded; ++i)
      tensor.integers[tensor.size() - 1 - i] = 0;
  }
  void fillFloats(Tensor &tensor, bool positive) {
    std::normal_distribution<double> normal;
    for (double &element : tensor.floats) {
      element = 0.5 * normal(random);
      if (positive)
        element = 0.1 + std::abs(element);
    }
  }
  void fillIndices(Tensor &tensor, const IndexRange &range) {
    std::uniform_int_distribution<int64_t> index(0, range.count - 1);
    std::bernoulli_distribution ignores(0.2);
    for (int64_t &element : tensor.integers)
      element =
          range.ignored && ignores(random) ? *range.ignored : index(random);
  }

  func::FuncOp function;
  const EquivalenceOptions &options;
  std::mt19937_64 random;
};

} // namespace

Tensors espalier::randomArguments(func::FuncOp function,
                                  const EquivalenceOptions &options) {
  ArgumentMaker maker(function, options);
  Tensors arguments;
  for (BlockArgument argument : function.getArguments())
    arguments.push_back(maker.make(argument));
  return arguments;
}
