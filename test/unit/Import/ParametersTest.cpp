//===- ParametersTest.cpp - What is trained, what is tied -*- C++ -*-===//

#include "gtest/gtest.h"

#include "TestModel.h"
#include "gmock/gmock.h"

using namespace espalier;
using namespace espalier::onnx;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// y = (x * w + b) * half, with an unused initializer on demand.
TestModel linear() {
  TestModel model;
  model.input("x", {2, 2});
  model.output("y");
  model.floats("w", {2, 2}, {1, 2, 3, 4});
  model.floats("b", {2}, {5, 6});
  model.floats("half", {}, {0.5});
  model.node("MatMul", {"x", "w"}, {"p"});
  model.node("Add", {"p", "b"}, {"s"});
  model.node("Mul", {"s", "half"}, {"y"});
  return model;
}

struct Imported {
  mlir::MLIRContext context;
  TemporaryFolder folder;
  std::optional<ImportedModel> model;
};

void importInto(Imported &into, const TestModel &model,
                const ImportOptions &options) {
  into.folder.write("model.onnx", model.bytes());
  auto result =
      importOnnx(into.context, into.folder.path("model.onnx"), options);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  into.model = std::move(*result);
}

std::vector<std::string> trained(const TestModel &model,
                                 const ImportOptions &options = {}) {
  Imported imported;
  importInto(imported, model, options);
  std::vector<std::string> names;
  if (imported.model)
    for (const auto &initializer : imported.model->initializers)
      if (initializer.role == "parameter")
        names.push_back(initializer.name);
  return names;
}

void setMetadata(TestModel &model, const std::string &name,
                 const std::string &key, const std::string &value) {
  auto &info = *model.graph.add_value_info();
  info.set_name(name);
  auto &entry = *info.add_metadata_props();
  entry.set_key(key);
  entry.set_value(value);
}

constexpr const char *kindKey =
    "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr const char *signatureKey =
    "pkg.torch.export.ExportedProgram.graph_signature";

} // namespace

TEST(Parameters, WithoutMetadataByGradientAndSize) {
  EXPECT_THAT(trained(linear()), ElementsAre("w", "b"));
  ImportOptions options;
  options.frozen = {"b*"};
  options.trained = {"half"};
  EXPECT_THAT(trained(linear(), options), ElementsAre("w", "half"));
}

TEST(Parameters, ByMetadata) {
  TestModel model = linear();
  setMetadata(model, "w", kindKey, "PARAMETER");
  setMetadata(model, "b", kindKey, "BUFFER");
  EXPECT_THAT(trained(model), ElementsAre("w"));
}

TEST(Parameters, GlobsMatchSomething) {
  ImportOptions options;
  options.frozen = {"nothing*"};
  EXPECT_THAT(refusal(linear(), options),
              HasSubstr("frozen: 'nothing*' matches no initializer"));
  options.frozen = {};
  options.trained = {"w"};
  TestModel model = linear();
  model.graph.mutable_node(2)->set_op_type("Greater");
  model.graph.mutable_node(2)->set_input(1, "s");
  model.graph.mutable_initializer()->RemoveLast();
  EXPECT_THAT(refusal(model, options), HasSubstr("has no gradient"));
}

TEST(Parameters, UnusedIsAnError) {
  TestModel model = linear();
  model.floats("spare", {2}, {1, 2});
  EXPECT_THAT(refusal(model), HasSubstr("'spare' is not used"));
  ImportOptions options;
  options.allowUnused = true;
  EXPECT_EQ(refusal(model, options), "");
}

TEST(Parameters, TiedAlsoTransposed) {
  TestModel model = linear();
  model.floats("wt", {2, 2}, {1, 3, 2, 4});
  model.node("MatMul", {"y", "wt"}, {"z"});
  model.output("z");
  ImportOptions options;
  options.tied = {{"w", "wt"}};
  Imported imported;
  importInto(imported, model, options);
  ASSERT_TRUE(imported.model);
  EXPECT_EQ(imported.model->initializers[0].alias, "wt");
  EXPECT_TRUE(imported.model->initializers[0].aliasTransposed);
  EXPECT_THAT(trained(model, options), ElementsAre("w", "b"));

  Imported apart;
  importInto(apart, model, {});
  EXPECT_THAT(apart.model->remarks,
              testing::Contains(HasSubstr("'w' and 'wt' hold the same")));
  options.tied = {{"w", "b"}};
  EXPECT_THAT(refusal(model, options), HasSubstr("cannot be one parameter"));
  options.tied = {{"w", "none"}};
  EXPECT_THAT(refusal(model, options), HasSubstr("no initializer 'none'"));
}

TEST(Parameters, BytesAreWhereTheImportSays) {
  TestModel model = linear();
  auto &typed = *model.graph.mutable_initializer(1);
  typed.clear_raw_data();
  typed.add_float_data(5);
  typed.add_float_data(6);
  EXPECT_EQ(evaluate(model, {{1, 0, 0, 1}}), (std::vector<double>{3, 4, 4, 5}));
}

TEST(Parameters, ExportersMarksAreErrors) {
  TestModel model = linear();
  setMetadata(model, "w", kindKey, "PARAMETER");
  setMetadata(model, "b", kindKey, "PARAMETER");
  auto &entry = *model.graph.add_metadata_props();
  entry.set_key(signatureKey);
  entry.set_value("p_w: PARAMETER target='w'\np_b: PARAMETER target='b'\n"
                  "p_n: PARAMETER target='norm.weight'\n"
                  "b_n: BUFFER target='norm.running_mean' persistent=True\n");
  EXPECT_THAT(refusal(model),
              HasSubstr("'norm.weight' of the exported program is not in the "
                        "file: its batch normalization was folded"));
  ImportOptions options;
  options.acceptExportRewrites = true;
  EXPECT_EQ(refusal(model, options), "");

  // A node of module `other` that uses module w's small weight: merged.
  entry.set_value("p_w: PARAMETER target='w'\np_b: PARAMETER target='b'\n"
                  "p_o: PARAMETER target='other.bias'\n");
  auto &scope = *model.graph.mutable_node(1)->add_metadata_props();
  scope.set_key("pkg.torch.onnx.name_scopes");
  scope.set_value("['', 'other', 'add']");
  EXPECT_THAT(refusal(model), HasSubstr("it was merged with 'b'"));
}
