//===- Equivalence.cpp - Do all ranks compute what one device would -------===//

#include "espalier/Verify/Equivalence.h"

#include "espalier/Sharding/ShardFunction.h"
#include "espalier/Verify/DistInterpreter.h"

#include "llvm/Support/Format.h"

#include <cmath>

#include "RandomArguments.h"

using namespace mlir;
using namespace espalier;

static constexpr llvm::StringLiteral kNumberAttr = "espalier.number";

void espalier::numberOps(ModuleOp module) {
  Builder builder(module.getContext());
  int64_t next = 0;
  for (auto function : module.getOps<func::FuncOp>())
    for (Operation &op : function.front().without_terminator())
      op.setAttr(kNumberAttr, builder.getI64IntegerAttr(next++));
}

namespace {

/// The number of an op's result; of none that was numbered, nothing.
using ResultKey = std::pair<int64_t, unsigned>;

std::optional<ResultKey> keyOf(Value value) {
  auto result = dyn_cast<OpResult>(value);
  auto number = result
                    ? result.getOwner()->getAttrOfType<IntegerAttr>(kNumberAttr)
                    : IntegerAttr();
  if (!number)
    return std::nullopt;
  return ResultKey{number.getInt(), result.getResultNumber()};
}

/// Compares one function of the three modules.
class FunctionComparison {
public:
  FunctionComparison(const Mesh &mesh, func::FuncOp whole, func::FuncOp planned,
                     func::FuncOp partitioned, EquivalenceResult &result)
      : mesh(mesh), whole(whole), planned(planned), partitioned(partitioned),
        result(result) {}

  /// Runs both sides. `blocks[rank]` are the partitioned function's arguments.
  /// Returns the results of both.
  FailureOr<std::pair<Tensors, std::vector<Tensors>>>
  run(const Tensors &arguments, std::vector<Tensors> blocks);

private:
  void collectShardings();
  void compareValue(ResultKey key, Value value);
  void compareElements(Value value, const Tensor &expected,
                       const Tensor &actual,
                       std::optional<int64_t> disagreeing);
  std::string describe(Value value);

  const Mesh &mesh;
  func::FuncOp whole, planned, partitioned;
  EquivalenceResult &result;
  std::map<ResultKey, Sharding> shardings;
  std::map<ResultKey, Tensor> expected;
  std::map<ResultKey, std::vector<Tensor>> actual; // by rank
  double scale = 1;                                // of the largest value
  double terms = 1;                                // elements of all tensors
};

} // namespace

void FunctionComparison::collectShardings() {
  for (Operation &op : planned.front())
    for (Value value : op.getResults()) {
      std::optional<ResultKey> key = keyOf(value);
      dist::ShardingAttr attr = dist::shardingOf(value.getType());
      if (!key || !attr)
        continue;
      if (auto sharding = Sharding::from(attr, mesh); succeeded(sharding))
        shardings[*key] = *sharding;
    }
}

std::string FunctionComparison::describe(Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "result " << cast<OpResult>(value).getResultNumber() << " of '"
     << value.getDefiningOp()->getName() << "' at " << value.getLoc() << " in @"
     << whole.getName();
  return text;
}

void FunctionComparison::compareElements(Value value, const Tensor &want,
                                         const Tensor &has,
                                         std::optional<int64_t> disagreeing) {
  ++result.comparedValues;
  result.comparedElements += want.size();
  llvm::raw_string_ostream os(result.difference);
  if (disagreeing) {
    result.equivalent = false;
    os << describe(value) << ": rank " << *disagreeing
       << " has another value than the ranks that it should agree with";
    return;
  }
  if (want.integers != has.integers) {
    result.equivalent = false;
    os << describe(value) << ": integers differ";
    return;
  }
  double bound = std::ldexp(terms * scale, -53);
  for (size_t i = 0; i < want.floats.size(); ++i) {
    double a = want.floats[i], b = has.floats[i];
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    double part = std::abs(a - b) / bound;
    if (!(part <= 1)) {
      result.equivalent = false;
      os << describe(value) << ": element " << i << " is "
         << llvm::format("%.17g", b) << " on the ranks together, "
         << llvm::format("%.17g", a) << " on one device";
      return;
    }
    result.worst = std::max(result.worst, part);
  }
}

void FunctionComparison::compareValue(ResultKey key, Value value) {
  auto sharding = shardings.find(key);
  auto blocks = actual.find(key);
  if (sharding == shardings.end() || blocks == actual.end())
    return; // folded away on one side: what uses it is compared
  SmallVector<const Tensor *> parts;
  for (const Tensor &block : blocks->second)
    parts.push_back(&block);
  std::optional<int64_t> disagreeing;
  const Tensor &want = expected[key];
  Tensor has =
      composeTensor(mesh, sharding->second, want.shape, parts, disagreeing);
  compareElements(value, want, has, disagreeing);
}

FailureOr<std::pair<Tensors, std::vector<Tensors>>>
FunctionComparison::run(const Tensors &arguments, std::vector<Tensors> blocks) {
  collectShardings();
  RankedInterpreter single(1, Precision::Double);
  single.onValue = [&](Value value, unsigned, const Tensor &tensor) {
    terms += tensor.size();
    for (double element : tensor.floats)
      if (std::isfinite(element))
        scale = std::max(scale, std::abs(element));
    if (std::optional<ResultKey> key = keyOf(value))
      expected[*key] = tensor;
  };
  auto wholeResults = single.run(whole, {arguments});
  DistInterpreter ranks(mesh, Precision::Double);
  ranks.onValue = [&](Value value, unsigned rank, const Tensor &tensor) {
    if (std::optional<ResultKey> key = keyOf(value)) {
      actual[*key].resize(mesh.deviceCount());
      actual[*key][rank] = tensor;
    }
  };
  auto rankResults = ranks.run(partitioned, std::move(blocks));
  if (failed(wholeResults) || failed(rankResults))
    return failure();
  for (Operation &op : whole.front().without_terminator())
    for (Value value : op.getResults())
      if (std::optional<ResultKey> key = keyOf(value); key && result.equivalent)
        compareValue(*key, value);
  return std::pair(std::move(wholeResults->front()), std::move(*rankResults));
}

//===----------------------------------------------------------------------===//
// Both functions
//===----------------------------------------------------------------------===//

namespace {

/// Compares @grad, then @update on what it gives.
class ProgramComparison {
public:
  ProgramComparison(ModuleOp whole, ModuleOp planned, ModuleOp partitioned,
                    const EquivalenceOptions &options)
      : whole(whole), planned(planned), partitioned(partitioned),
        mesh(Mesh::from(dist::meshOf(planned))), options(options) {}

  FailureOr<EquivalenceResult> run() {
    for (StringRef name : {"grad", "update"})
      if (failed(compare(name)))
        return failure();
    if (failed(comparePadding()))
      return failure();
    return std::move(result);
  }

private:
  LogicalResult compare(StringRef name);
  LogicalResult comparePadding();
  std::string keyOf(func::FuncOp function, unsigned argument) const;
  Sharding argumentSharding(func::FuncOp function, unsigned number) const;
  void remember(func::FuncOp function, const Tensors &wholeResults,
                const std::vector<Tensors> &rankResults);
  void compareResults(func::FuncOp function, func::FuncOp plannedFunction,
                      const Tensors &wholeResults,
                      const std::vector<Tensors> &rankResults);

  ModuleOp whole, planned, partitioned;
  Mesh mesh;
  const EquivalenceOptions &options;
  EquivalenceResult result;
  Tensors gradArguments;
  // What @grad leaves to @update, by role and name.
  std::map<std::string, Tensor> wholeState;
  std::map<std::string, std::vector<Tensor>> rankState;
};

} // namespace

std::string ProgramComparison::keyOf(func::FuncOp function,
                                     unsigned argument) const {
  return (argumentString(function, argument, kRoleAttr) + ":" +
          argumentString(function, argument, kNameAttr))
      .str();
}

Sharding ProgramComparison::argumentSharding(func::FuncOp function,
                                             unsigned number) const {
  auto attr = dist::shardingOf(function.getArgument(number).getType());
  auto sharding = Sharding::from(attr, mesh);
  assert(succeeded(sharding) && "a planned argument carries a sharding");
  return *sharding;
}

void ProgramComparison::remember(func::FuncOp function,
                                 const Tensors &wholeResults,
                                 const std::vector<Tensors> &rankResults) {
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    std::string key = (resultString(function, i, kRoleAttr) + ":" +
                       resultString(function, i, kNameAttr))
                          .str();
    wholeState[key] = wholeResults[i];
    std::vector<Tensor> &blocks = rankState[key];
    blocks.clear();
    for (const Tensors &results : rankResults)
      blocks.push_back(results[i]);
  }
}

LogicalResult ProgramComparison::compare(StringRef name) {
  auto wholeFunction = whole.lookupSymbol<func::FuncOp>(name);
  auto plannedFunction = planned.lookupSymbol<func::FuncOp>(name);
  auto local = partitioned.lookupSymbol<func::FuncOp>(name);
  if (!wholeFunction || !plannedFunction || !local ||
      wholeFunction.getNumArguments() != local.getNumArguments())
    return whole.emitError("has no function @") << name << " in all its forms";
  Tensors arguments = randomArguments(wholeFunction, options);
  std::vector<Tensors> blocks(mesh.deviceCount());
  for (unsigned i = 0; i < arguments.size(); ++i) {
    std::string key = keyOf(wholeFunction, i);
    if (auto known = wholeState.find(key); known != wholeState.end())
      arguments[i] = known->second;
    auto state = rankState.find(key);
    for (int64_t rank = 0; rank < mesh.deviceCount(); ++rank)
      blocks[rank].push_back(
          state != rankState.end()
              ? state->second[rank]
              : blockOfTensor(mesh, rank, argumentSharding(plannedFunction, i),
                              arguments[i]));
  }
  if (name == "grad")
    gradArguments = arguments;
  FunctionComparison comparison(mesh, wholeFunction, plannedFunction, local,
                                result);
  auto results = comparison.run(arguments, std::move(blocks));
  if (failed(results))
    return failure();
  compareResults(wholeFunction, plannedFunction, results->first,
                 results->second);
  remember(wholeFunction, results->first, results->second);
  return success();
}

/// Gives the padded samples of a tensor other contents, made from the first
/// sample's.
static void replacePadding(Tensor &tensor, int64_t padded) {
  int64_t row = tensor.size() / std::max<int64_t>(1, tensor.shape.front());
  int64_t begin = (tensor.shape.front() - padded) * row;
  for (int64_t i = begin; i < tensor.size(); ++i) {
    if (tensor.isFloat())
      tensor.floats[i] = 1 - 3 * tensor.floats[(i - begin) % row];
    else
      tensor.integers[i] = tensor.integers[(i - begin) % row];
  }
}

/// Whatever padded samples hold, @grad gives the same.
LogicalResult ProgramComparison::comparePadding() {
  auto function = whole.lookupSymbol<func::FuncOp>("grad");
  bool isPadded = false;
  Tensors arguments = gradArguments;
  for (unsigned i = 0; i < arguments.size(); ++i) {
    StringRef role = argumentString(function, i, kRoleAttr);
    isPadded |= role == "valid" &&
                llvm::is_contained(arguments[i].integers, int64_t(0));
    if (role == "input" || role == "label")
      replacePadding(arguments[i],
                     std::min(options.padded, arguments[i].shape.front() - 1));
  }
  if (!isPadded || !result.equivalent ||
      function->hasAttr("espalier.counts_invalid_samples"))
    return success();
  auto results = interpret(function, arguments, Precision::Double);
  if (failed(results))
    return failure();
  for (unsigned i = 0; i < results->size() && result.equivalent; ++i) {
    StringRef role = resultString(function, i, kRoleAttr);
    StringRef name = resultString(function, i, kNameAttr);
    const Tensor &before = wholeState[(role + ":" + name).str()];
    auto same = [](double a, double b) {
      return a == b || (std::isnan(a) && std::isnan(b));
    };
    if (llvm::equal((*results)[i].floats, before.floats, same) &&
        (*results)[i].integers == before.integers)
      continue;
    result.equivalent = false;
    result.difference = ("result '" + name + "' (" + role +
                         ") of @grad hangs on what padded samples hold")
                            .str();
  }
  return success();
}

/// What a function returns is compared again, in the shardings of its type: a
/// value can be right in its op and wrong after the last reshard.
void ProgramComparison::compareResults(
    func::FuncOp function, func::FuncOp plannedFunction,
    const Tensors &wholeResults, const std::vector<Tensors> &rankResults) {
  for (unsigned i = 0; i < wholeResults.size() && result.equivalent; ++i) {
    auto attr = dist::shardingOf(plannedFunction.getResultTypes()[i]);
    auto sharding = Sharding::from(attr, mesh);
    if (failed(sharding))
      continue;
    SmallVector<const Tensor *> parts;
    for (const Tensors &results : rankResults)
      parts.push_back(&results[i]);
    std::optional<int64_t> disagreeing;
    Tensor has = composeTensor(mesh, *sharding, wholeResults[i].shape, parts,
                               disagreeing);
    double scale = 1;
    for (double element : wholeResults[i].floats)
      scale = std::max(scale, std::abs(element));
    // The terms of all sums before it are not known here: 2^20 of them.
    double bound = std::ldexp(scale, -33);
    bool same = !disagreeing && has.integers == wholeResults[i].integers;
    for (size_t e = 0; same && e < has.floats.size(); ++e) {
      double a = wholeResults[i].floats[e], b = has.floats[e];
      same = a == b || std::abs(a - b) <= bound ||
             (std::isnan(a) && std::isnan(b));
    }
    if (same)
      continue;
    result.equivalent = false;
    result.difference =
        ("result '" + resultString(function, i, kNameAttr) + "' (" +
         resultString(function, i, kRoleAttr) + ") of @" + function.getName() +
         (disagreeing ? ": rank " + std::to_string(*disagreeing) +
                            " has another value than the ranks that it should "
                            "agree with"
                      : std::string(": differs from the single device's")))
            .str();
  }
}

FailureOr<EquivalenceResult>
espalier::compareWithSingleDevice(ModuleOp whole, ModuleOp planned,
                                  ModuleOp partitioned,
                                  const EquivalenceOptions &options) {
  if (!dist::meshOf(planned))
    return planned.emitError("has no dist.mesh"), failure();
  return ProgramComparison(whole, planned, partitioned, options).run();
}
