//===- ModelsTest.cpp - The example models -*- C++ -*-===//
//
// How they train is tested end to end; here: what the importer makes of them,
// and that recognition computes what the pieces compute.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"

#include "gtest/gtest.h"

#include <random>

#include "TestModel.h"

using namespace espalier;
using namespace espalier::onnx;

namespace {

struct Expected {
  const char *name;
  size_t parameters, attentions, norms, rotaries;
  std::vector<std::string> frozen; // as in the model's job
};

class Models : public testing::TestWithParam<Expected> {};

ImportOptions optionsFor(const Expected &expected, bool recognize) {
  ImportOptions options;
  options.dims["batch"] = 3;
  if (expected.attentions)
    options.dims["sequence"] = 7;
  options.batchNorm = BatchNormMode::Train;
  options.frozen = expected.frozen;
  options.recognize = recognize;
  return options;
}

std::string pathOf(const Expected &expected) {
  return std::string(ESPALIER_TEST_MODELS) + "/" + expected.name +
         "/model.onnx";
}

/// Numbers that the inputs may hold; a mask has a one in each row.
std::vector<std::vector<double>> drawInputs(const ImportedModel &model) {
  std::mt19937 random(1);
  std::vector<std::vector<double>> inputs;
  for (const ImportedInput &input : model.inputs) {
    std::vector<double> values(input.type.getNumElements());
    bool isFloat = llvm::isa<mlir::FloatType>(input.type.getElementType());
    for (size_t i = 0; i < values.size(); ++i) {
      double uniform = std::uniform_real_distribution<>(-1, 1)(random);
      int64_t limit = input.range ? input.range->second : 2;
      values[i] = isFloat ? uniform : double(random() % limit);
      bool isMask = !isFloat && !input.range;
      if (isMask && i % input.type.getShape().back() == 0)
        values[i] = 1;
    }
    inputs.push_back(values);
  }
  return inputs;
}

template <typename Op>
size_t count(const ImportedModel &model) {
  size_t number = 0;
  mlir::ModuleOp module = *model.module;
  module.walk([&](Op) { ++number; });
  return number;
}

} // namespace

TEST_P(Models, AreRecognized) {
  mlir::MLIRContext context;
  auto model =
      importOnnx(context, pathOf(GetParam()), optionsFor(GetParam(), true));
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(count<nn::AttentionOp>(*model), GetParam().attentions);
  EXPECT_EQ(count<nn::SoftmaxOp>(*model), 0u);
  EXPECT_EQ(count<nn::LayerNormOp>(*model) + count<nn::RmsNormOp>(*model),
            GetParam().norms);
  EXPECT_EQ(count<nn::RopeOp>(*model), GetParam().rotaries);
  EXPECT_FALSE(model->weightsAbsent);
  EXPECT_EQ(model->batch, 3);
  size_t parameters = 0;
  for (const ImportedInitializer &initializer : model->initializers)
    parameters += initializer.role == "parameter";
  EXPECT_EQ(parameters, GetParam().parameters);
}

TEST_P(Models, ComputeTheSameInPieces) {
  mlir::MLIRContext context;
  auto pieces =
      importOnnx(context, pathOf(GetParam()), optionsFor(GetParam(), false));
  auto layers =
      importOnnx(context, pathOf(GetParam()), optionsFor(GetParam(), true));
  ASSERT_TRUE(bool(pieces)) << llvm::toString(pieces.takeError());
  ASSERT_TRUE(bool(layers)) << llvm::toString(layers.takeError());
  EXPECT_EQ(pieces->fingerprint, layers->fingerprint);
  Tensors expected = run(*pieces, drawInputs(*pieces));
  Tensors found = run(*layers, drawInputs(*layers));
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(expected[i].floats.size(), found[i].floats.size());
    for (size_t k = 0; k < found[i].floats.size(); ++k)
      // Both in fp64; a scale is rounded to fp32 once or twice.
      EXPECT_NEAR(expected[i].floats[k], found[i].floats[k], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Examples, Models,
    testing::Values(Expected{"mlp", 6, 0, 0, 0, {}},
                    Expected{
                        "cnn", 12, 0, 0, 0, {"*running_mean", "*running_var"}},
                    Expected{"gpt2",
                             28,
                             2,
                             5,
                             0,
                             {"val_196", "val_9", "val_200", "val_201",
                              "val_240", "val_241", "val_242"}},
                    Expected{"bert", 41, 2, 5, 0, {}},
                    Expected{"llama",
                             21,
                             2,
                             5,
                             4,
                             {"*inv_freq*", "val_219", "val_71", "val_74",
                              "val_223", "val_224"}}),
    [](const auto &info) { return std::string(info.param.name); });
