//===- FiniteDifferences.cpp - Derivatives against differences ------------===//

#include "test/unit/Autodiff/FiniteDifferences.h"

#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"
#include "espalier/Autodiff/Autodiff.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"

#include <random>

#include "test/unit/TestProgram.h"

using namespace mlir;
using namespace espalier;

static std::mt19937_64 generator(7);

static Tensor drawTensor(RankedTensorType type, const DerivativeCase &row) {
  Tensor tensor(type);
  std::uniform_real_distribution<double> real(row.low, row.high);
  std::uniform_int_distribution<int64_t> integer(0, row.count - 1);
  for (double &x : tensor.floats)
    x = real(generator);
  for (int64_t &x : tensor.integers)
    x = type.getElementType().isInteger(1) ? integer(generator) % 2
                                           : integer(generator);
  return tensor;
}

static Tensor argumentTensor(RankedTensorType type, unsigned i,
                             const DerivativeCase &row) {
  auto it = row.given.find(i);
  if (it == row.given.end())
    return drawTensor(type, row);
  if (isa<FloatType>(type.getElementType()))
    return Tensor(type, it->second);
  return Tensor(type,
                std::vector<int64_t>(it->second.begin(), it->second.end()));
}

/// Adds @g: from the arguments of @f and gradients of its results to gradients
/// of the arguments `wanted`. Null where that fails.
static func::FuncOp buildReverse(func::FuncOp f, ArrayRef<unsigned> wanted) {
  OpBuilder builder(f);
  SmallVector<Type> types(f.getArgumentTypes());
  llvm::append_range(types, f.getResultTypes());
  auto g = func::FuncOp::create(builder, f.getLoc(), "g",
                                builder.getFunctionType(types, {}));
  Block &block = *g.addEntryBlock();
  builder.setInsertionPointToEnd(&block);
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(f.getArguments(), g.getArguments()))
    mapping.map(from, to);
  Block &body = f.getBody().front();
  for (Operation &op : body.without_terminator())
    builder.clone(op, mapping);
  SmallVector<std::pair<Value, Value>> seeds;
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    seeds.push_back(
        {mapping.lookup(value), g.getArgument(f.getNumArguments() + i)});
  SmallVector<Value> targets;
  for (unsigned i : wanted)
    targets.push_back(g.getArgument(i));
  auto gradients = buildGradients(builder, block, seeds, targets);
  if (failed(gradients))
    return {};
  for (auto [target, gradient] : llvm::zip(targets, *gradients)) {
    if (!gradient)
      gradient =
          nn::buildSplat(builder, f.getLoc(), nn::tensorTypeOf(target), 0);
    EXPECT_EQ(gradient.getType(), target.getType());
  }
  func::ReturnOp::create(builder, f.getLoc(), *gradients);
  g.setFunctionType(
      builder.getFunctionType(types, ValueRange(*gradients).getTypes()));
  EXPECT_TRUE(succeeded(verify(g)));
  return g;
}

/// The sum of products of @f's results with `weights`.
static double weighted(func::FuncOp f, const Tensors &arguments,
                       ArrayRef<Tensor> weights) {
  auto results = interpret(f, arguments, Precision::Double);
  if (failed(results))
    return NAN;
  double sum = 0;
  for (auto [result, weight] : llvm::zip(*results, weights))
    for (auto [x, w] : llvm::zip(result.floats, weight.floats))
      sum += x * w;
  return sum;
}

static void compareGradient(func::FuncOp f, Tensors arguments, unsigned at,
                            ArrayRef<Tensor> weights, const Tensor &gradient) {
  for (size_t i = 0; i < arguments[at].floats.size(); ++i) {
    double x = arguments[at].floats[i], h = 1e-5;
    if (!std::isfinite(x))
      continue;
    arguments[at].floats[i] = x + h;
    double above = weighted(f, arguments, weights);
    arguments[at].floats[i] = x - h;
    double below = weighted(f, arguments, weights);
    arguments[at].floats[i] = x;
    double difference = (above - below) / (2 * h);
    EXPECT_NEAR(gradient.floats[i], difference,
                2e-6 * (1 + std::fabs(difference)))
        << "argument " << at << ", element " << i << ", at " << x;
  }
}

static std::set<std::string> opsOf(func::FuncOp f) {
  std::set<std::string> names;
  f.walk(
      [&](Operation *op) { names.insert(op->getName().getStringRef().str()); });
  return names;
}

std::set<std::string> espalier::checkDerivative(const DerivativeCase &row) {
  SCOPED_TRACE(row.text);
  TestProgram program(row.text);
  if (!program.module)
    return {};
  auto f = program.function("f");
  Tensors arguments;
  SmallVector<unsigned> wanted;
  for (unsigned i = 0; i < f.getNumArguments(); ++i) {
    arguments.push_back(argumentTensor(program.argumentType(f, i), i, row));
    if (arguments[i].isFloat() && !row.constant.count(i))
      wanted.push_back(i);
  }
  auto g = buildReverse(f, wanted);
  if (!row.error.empty()) {
    EXPECT_FALSE(g);
    EXPECT_NE(program.messages.find(row.error), std::string::npos)
        << program.messages;
    return opsOf(f);
  }
  if (!g) {
    ADD_FAILURE() << program.messages;
    return {};
  }
  Tensors reverseArguments = arguments;
  DerivativeCase unit;
  for (Type type : f.getResultTypes())
    reverseArguments.push_back(drawTensor(cast<RankedTensorType>(type), unit));
  ArrayRef<Tensor> weights =
      ArrayRef<Tensor>(reverseArguments).drop_front(arguments.size());
  auto gradients = interpret(g, reverseArguments, Precision::Double);
  if (failed(gradients)) {
    ADD_FAILURE() << program.messages;
    return {};
  }
  for (auto [i, gradient] : llvm::zip(wanted, *gradients))
    compareGradient(f, arguments, i, weights, gradient);
  return opsOf(f);
}
