//===- NodesTest.cpp - Values of single ops -*- C++ -*-===//

#include "gtest/gtest.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "TestModel.h"
#include "lib/Import/Onnx/OpTable.h"

using namespace espalier;
using namespace espalier::onnx;
using Values = std::vector<double>;

namespace {

void expectNear(const Values &found, const Values &expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-6) << "element " << i;
}

/// One node on x.
TestModel onInput(const std::string &op, std::vector<int64_t> shape,
                  std::vector<std::string> inputs = {"x"}) {
  TestModel model;
  model.input("x", shape);
  model.output("y");
  model.node(op, inputs, {"y"});
  return model;
}

} // namespace

TEST(Nodes, Activations) {
  auto at = [](const std::string &op, double x) {
    return evaluate(onInput(op, {1}), {{x}}).at(0);
  };
  EXPECT_NEAR(at("Relu", -2), 0, 1e-9);
  EXPECT_NEAR(at("Relu", 2), 2, 1e-9);
  EXPECT_TRUE(std::isnan(at("Relu", NAN)));
  EXPECT_NEAR(at("Gelu", 1), 0.8413447, 1e-6);
  EXPECT_NEAR(at("Softplus", 800), 800, 1e-9);
  EXPECT_NEAR(at("Softplus", -800), 0, 1e-9);
  EXPECT_NEAR(at("Elu", -1), std::expm1(-1.0), 1e-7);
  EXPECT_NEAR(at("Sign", -3), -1, 1e-9);
  EXPECT_NEAR(at("Mish", 1), std::tanh(std::log1p(std::exp(1.0))), 1e-7);
}

TEST(Nodes, IntegerDivisionTruncates) {
  TestModel model;
  model.input("x", {1}, 7);
  model.output("y");
  model.ints("two", {}, {2});
  model.node("Div", {"x", "two"}, {"y"});
  EXPECT_EQ(evaluate(model, {{-7}}), Values{-3});
}

// [0, 1, 2; 3, 4, 5] backwards along columns, every second.
TEST(Nodes, SliceBackwards) {
  TestModel model = onInput("Slice", {2, 3}, {"x", "s", "e", "a", "t"});
  model.ints("s", {1}, {INT64_MAX});
  model.ints("e", {1}, {INT64_MIN});
  model.ints("a", {1}, {-1});
  model.ints("t", {1}, {-2});
  EXPECT_EQ(evaluate(model, {{0, 1, 2, 3, 4, 5}}), (Values{2, 0, 5, 3}));
}

TEST(Nodes, SplitToSequence) {
  TestModel model;
  model.input("x", {1, 4});
  model.output("y");
  model.ints("sizes", {2}, {1, 3});
  model.ints("last", {}, {-1});
  attribute(model.node("SplitToSequence", {"x", "sizes"}, {"parts"}), "axis",
            int64_t(1));
  model.node("SequenceAt", {"parts", "last"}, {"y"});
  EXPECT_EQ(evaluate(model, {{1, 2, 3, 4}}), (Values{2, 3, 4}));
}

// x[b, t] with whole ranges of b and t is x, whatever rank the ranges have.
TEST(Nodes, GatherNdByRangesIsNoLookup) {
  TestModel model = onInput("GatherND", {2, 3}, {"x", "i"});
  model.ints("i", {2, 1, 3, 2}, {0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2});
  EXPECT_EQ(evaluate(model, {{1, 2, 3, 4, 5, 6}}), (Values{1, 2, 3, 4, 5, 6}));
  TestModel mixed = onInput("GatherND", {2, 3}, {"x", "i"});
  mixed.ints("i", {2, 2}, {0, -1, 1, 0});
  EXPECT_EQ(evaluate(mixed, {{1, 2, 3, 4, 5, 6}}), (Values{3, 4}));
}

TEST(Nodes, GatherOfOtherAxes) {
  TestModel model = onInput("Gather", {2, 3}, {"x", "i"});
  model.ints("i", {2}, {2, 0});
  attribute(*model.graph.mutable_node(0), "axis", int64_t(1));
  EXPECT_EQ(evaluate(model, {{1, 2, 3, 4, 5, 6}}), (Values{3, 1, 6, 4}));
}

TEST(Nodes, MatMulOfAllRanks) {
  TestModel vector = onInput("MatMul", {2}, {"x", "w"});
  vector.floats("w", {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(evaluate(vector, {{1, 1}}), (Values{4, 6}));
  // [2, 1, 1, 2] x [2, 2, 1]: batch dimensions [2, 2].
  TestModel batched = onInput("MatMul", {2, 1, 1, 2}, {"x", "w"});
  batched.floats("w", {2, 2, 1}, {1, 2, 3, 4});
  EXPECT_EQ(evaluate(batched, {{1, 1, 1, 0}}), (Values{3, 7, 1, 3}));
}

TEST(Nodes, Einsum) {
  TestModel model = onInput("Einsum", {2, 2}, {"x", "w"});
  model.floats("w", {2, 2}, {1, 2, 3, 4});
  attribute(*model.graph.mutable_node(0), "equation", std::string("ij,kj->ik"));
  EXPECT_EQ(evaluate(model, {{1, 0, 0, 1}}), (Values{1, 3, 2, 4}));
}

// A window of 2 at stride 2 over 3, with a last window that begins inside.
TEST(Nodes, PoolingWithCeiling) {
  TestModel model = onInput("MaxPool", {1, 1, 3});
  auto &node = *model.graph.mutable_node(0);
  attribute(node, "kernel_shape", std::vector<int64_t>{2});
  attribute(node, "strides", std::vector<int64_t>{2});
  attribute(node, "ceil_mode", int64_t(1));
  EXPECT_EQ(evaluate(model, {{1, 2, 3}}), (Values{2, 3}));
}

TEST(Nodes, LogSoftmaxOfAnyAxis) {
  TestModel model = onInput("LogSoftmax", {2, 1});
  attribute(*model.graph.mutable_node(0), "axis", int64_t(0));
  expectNear(evaluate(model, {{0, 0}}), {-std::log(2.0), -std::log(2.0)});
}

// Two valid samples of the three that a file's batch holds: mean 2, biased
// variance 1, unbiased 2; running = running * 0.9 + batch * 0.1.
TEST(Nodes, BatchNormalizationOfValidSamples) {
  TestModel model;
  model.input("x", {3, 1});
  model.output("y");
  model.floats("scale", {1}, {1});
  model.floats("bias", {1}, {0});
  model.floats("mean", {1}, {0});
  model.floats("variance", {1}, {1});
  model.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"},
             {"y"});
  EXPECT_NE(refusal(model).find("batch_norm"), std::string::npos);

  TemporaryFolder folder;
  folder.write("model.onnx", model.bytes());
  ImportOptions options;
  options.batchNorm = BatchNormMode::Train;
  options.trained = {"scale", "bias"}; // of one element
  mlir::MLIRContext context;
  auto imported = importOnnx(context, folder.path("model.onnx"), options);
  ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
  auto function = *imported->module->getOps<mlir::func::FuncOp>().begin();
  Tensors arguments;
  auto add = [&](Values values) {
    auto type = llvm::cast<mlir::RankedTensorType>(
        function.getArgumentTypes()[arguments.size()]);
    if (llvm::isa<mlir::FloatType>(type.getElementType()))
      arguments.push_back(Tensor(type, values));
    else
      arguments.push_back(
          Tensor(type, std::vector<int64_t>(values.begin(), values.end())));
  };
  for (Values values : {Values{1}, Values{0}, Values{0}, Values{1},
                        Values{1, 3, 100}, Values{1, 1, 0}, Values{0, 0, 0}})
    add(values);
  auto results = interpret(function, arguments, Precision::Double);
  ASSERT_TRUE(mlir::succeeded(results));
  EXPECT_NEAR((*results)[0].floats[0], -1, 1e-4);
  EXPECT_NEAR((*results)[0].floats[1], 1, 1e-4);
  EXPECT_NEAR((*results)[1].floats[0], 0.2, 1e-6);
  EXPECT_NEAR((*results)[2].floats[0], 0.9 + 0.2, 1e-6);
}

TEST(Nodes, ConstantsFoldWithoutTheBatch) {
  // Equal rows of a batch are one row: nothing of size 5 is left.
  TestModel model;
  model.input("x", {5, 2});
  model.output("y");
  model.ints("shape", {2}, {5, 2});
  model.floats("row", {2}, {1, 2});
  model.node("Expand", {"row", "shape"}, {"rows"});
  model.node("Sin", {"rows"}, {"sines"});
  model.node("Add", {"x", "sines"}, {"y"});
  ImportOptions options;
  options.frozen = {"row"};
  TemporaryFolder folder;
  folder.write("model.onnx", model.bytes());
  mlir::MLIRContext context;
  auto imported = importOnnx(context, folder.path("model.onnx"), options);
  ASSERT_TRUE(bool(imported)) << llvm::toString(imported.takeError());
  std::string text;
  llvm::raw_string_ostream stream(text);
  imported->module->print(stream);
  EXPECT_NE(text.find("-> tensor<1x2xf32>"), std::string::npos) << text;
}

TEST(Nodes, AreAllInTheReadme) {
  std::ifstream file(ESPALIER_IMPORT_README);
  std::stringstream text;
  text << file.rdbuf();
  for (const OpRow &row : allOps()) {
    std::string name = row.name;
    bool isListed = false;
    for (const char *end : {",", " |", " "})
      for (const char *begin : {" ", "| "})
        isListed |= text.str().find(begin + name + end) != std::string::npos;
    EXPECT_TRUE(isListed) << name;
  }
}
