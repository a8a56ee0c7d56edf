//===- HostileFilesTest.cpp - Files that are not what they seem -*- C++ -*-===//

#include "gtest/gtest.h"

#include <chrono>

#include "TestModel.h"
#include "gmock/gmock.h"

using namespace espalier;
using namespace espalier::onnx;
using testing::HasSubstr;

namespace {

TestModel relu() {
  TestModel model;
  model.input("x", {2, 3});
  model.output("y");
  model.node("Relu", {"x"}, {"y"});
  return model;
}

/// A model of one node on x [2, 3].
TestModel single(const std::string &op, std::vector<std::string> inputs) {
  TestModel model;
  model.input("x", {2, 3});
  model.output("y");
  model.node(op, inputs, {"y"});
  return model;
}

} // namespace

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

TEST(HostileFiles, NoProtobuf) {
  EXPECT_THAT(refusal(std::string("")), HasSubstr("has no graph"));
  EXPECT_THAT(refusal(std::string("hello")), HasSubstr("is no ONNX file"));
  std::string bytes = relu().bytes();
  EXPECT_EQ(refusal(bytes), "");
  EXPECT_THAT(refusal(bytes.substr(0, bytes.size() - 1)),
              HasSubstr("parsing stopped at byte"));
  EXPECT_NE(refusal(bytes + "\x01"), "");
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    refusal(bytes.substr(0, cut)); // whatever it says, it says it
    std::string flipped = bytes;
    flipped[cut] = char(flipped[cut] ^ 0x55);
    refusal(flipped);
  }
}

TEST(HostileFiles, TooLarge) {
  ImportOptions options;
  options.limits.fileBytes = 10;
  EXPECT_THAT(refusal(relu(), options), HasSubstr("external data"));
}

TEST(HostileFiles, NestedIfsAreRefusedAtOnce) {
  TestModel model = relu();
  proto::GraphProto *graph = &model.graph;
  for (int depth = 0; depth < 40; ++depth) {
    proto::NodeProto &node = *graph->add_node();
    node.set_op_type("If");
    node.add_input("x");
    node.add_output("if" + std::to_string(depth));
    for (const char *branch : {"then_branch", "else_branch"}) {
      proto::AttributeProto &attribute = *node.add_attribute();
      attribute.set_name(branch);
      attribute.set_type(5);
      graph = attribute.mutable_g();
    }
  }
  model.output("if0");
  auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(refusal(model), HasSubstr("op 'If'"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(HostileFiles, DeepNestingIsAParseError) {
  proto::TypeProto type;
  proto::TypeProto *at = &type;
  for (int depth = 0; depth < 500; ++depth)
    at = at->mutable_sequence_type()->mutable_elem_type();
  TestModel model = relu();
  *model.graph.mutable_input(0)->mutable_type() = type;
  EXPECT_THAT(refusal(model), HasSubstr("parsing stopped"));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

TEST(HostileFiles, TensorsOfWrongSize) {
  auto with = [](std::vector<int64_t> shape, size_t floats, int type = 1) {
    TestModel model = single("Add", {"x", "w"});
    model.floats("w", shape, std::vector<float>(floats, 1)).set_data_type(type);
    return refusal(model);
  };
  EXPECT_EQ(with({2, 3}, 6), "");
  EXPECT_THAT(with({2, 3}, 5), HasSubstr("needs 24"));
  EXPECT_THAT(with({2, 3}, 7), HasSubstr("needs 24"));
  EXPECT_THAT(with({-1, 3}, 6), HasSubstr("negative or too large"));
  EXPECT_THAT(with({1ll << 32, 1ll << 32}, 6), HasSubstr("too large"));
  EXPECT_THAT(with({1ll << 61, 2}, 6), HasSubstr("too large"));
  EXPECT_THAT(with({2, 3}, 6, 99), HasSubstr("data type 99"));
  EXPECT_THAT(with({2, 3}, 6, 22), HasSubstr("data type 22")); // 4 bits
  TestModel twice = single("Add", {"x", "w"});
  twice.floats("w", {2, 3}, std::vector<float>(6, 1)).add_float_data(1);
  EXPECT_THAT(refusal(twice), HasSubstr("two places"));
}

//===----------------------------------------------------------------------===//
// Graph
//===----------------------------------------------------------------------===//

TEST(HostileFiles, Names) {
  TestModel undefined = single("Add", {"x", "z"});
  EXPECT_THAT(refusal(undefined), HasSubstr("'z' is not defined before it"));
  TestModel itself = single("Add", {"x", "y"});
  EXPECT_THAT(refusal(itself), HasSubstr("'y' is not defined before it"));
  TestModel twice = relu();
  twice.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(refusal(twice), HasSubstr("'y' is defined twice"));
  TestModel escaped = single("Add", {"x", "\x1b[31m\xff'"});
  EXPECT_THAT(refusal(escaped), HasSubstr("'\\x1B[31m\\xFF\\''"));
  TestModel tooLong = single("Relu", {"x"});
  tooLong.node("Relu", {"x"}, {std::string(5000, 'n')});
  EXPECT_THAT(refusal(tooLong), HasSubstr("more than 4096 bytes"));
}

TEST(HostileFiles, Opsets) {
  TestModel twice = relu();
  twice.model.add_opset_import()->set_version(19);
  EXPECT_THAT(refusal(twice), HasSubstr("two versions of domain"));
  TestModel newer = relu();
  newer.model.mutable_opset_import(0)->set_version(26);
  EXPECT_THAT(refusal(newer), HasSubstr("opset 26"));
  TestModel early = single("Attention", {"x", "x", "x"});
  EXPECT_THAT(refusal(early),
              HasSubstr("op 'Attention' in opset 20; it is in opset 23 to"));
  TestModel foreign = relu();
  foreign.graph.mutable_node(0)->set_domain("com.example");
  EXPECT_THAT(refusal(foreign), HasSubstr("domain 'com.example'"));
}

TEST(HostileFiles, EverythingUnsupportedIsListed) {
  TestModel model = relu();
  model.node("TopK", {"x"}, {"a"});
  model.node("NonZero", {"x"}, {"b"});
  model.output("a");
  model.output("b");
  std::string text = refusal(model);
  EXPECT_THAT(text, HasSubstr("node 'a' (TopK): not supported: op 'TopK'"));
  EXPECT_THAT(text, HasSubstr("op 'NonZero'"));
}

TEST(HostileFiles, Attributes) {
  TestModel model = single("Flatten", {"x"});
  attribute(*model.graph.mutable_node(0), "axis", std::string("one"));
  EXPECT_THAT(refusal(model), HasSubstr("attribute 'axis' has type 3"));
  TestModel unknown = single("Relu", {"x"});
  attribute(*unknown.graph.mutable_node(0), "slope", int64_t(1));
  EXPECT_THAT(refusal(unknown), HasSubstr("attribute 'slope'"));
  TestModel far = single("Flatten", {"x"});
  attribute(*far.graph.mutable_node(0), "axis", int64_t(1) << 40);
  EXPECT_THAT(refusal(far), HasSubstr("out of range"));
  TestModel both = single("Flatten", {"x"});
  attribute(*both.graph.mutable_node(0), "axis", int64_t(1));
  both.graph.mutable_node(0)->mutable_attribute(0)->set_f(1);
  EXPECT_THAT(refusal(both), HasSubstr("not of its type"));
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {

/// Function `name` of x and y = callee(callee(x)).
void addFunction(TestModel &model, const std::string &name,
                 const std::string &callee, const std::string &domain = "own") {
  proto::FunctionProto &function = *model.model.add_functions();
  function.set_domain("own");
  function.set_name(name);
  function.add_input("x");
  function.add_output("y");
  for (int i = 0; i < 2; ++i) {
    proto::NodeProto &node = *function.add_node();
    node.set_op_type(callee);
    node.set_domain(domain);
    node.add_input(i == 0 ? "x" : "t");
    node.add_output(i == 0 ? "t" : "y");
  }
}

TestModel calling(const std::string &name) {
  TestModel model = single(name, {"x"});
  model.graph.mutable_node(0)->set_domain("own");
  model.model.add_opset_import()->set_domain("own");
  return model;
}

} // namespace

TEST(HostileFiles, FunctionsAreInlined) {
  TestModel model = calling("twice");
  addFunction(model, "twice", "Neg", "");
  EXPECT_EQ(evaluate(model, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(HostileFiles, CyclicFunctions) {
  TestModel self = calling("f");
  addFunction(self, "f", "f");
  EXPECT_THAT(refusal(self), HasSubstr("calls itself"));
  TestModel mutual = calling("f");
  addFunction(mutual, "f", "g");
  addFunction(mutual, "g", "f");
  EXPECT_THAT(refusal(mutual), HasSubstr("calls itself"));
}

TEST(HostileFiles, BillionLaughs) {
  TestModel model = calling("f0");
  for (int i = 0; i < 40; ++i)
    addFunction(model, "f" + std::to_string(i), "f" + std::to_string(i + 1));
  addFunction(model, "f40", "Neg", "");
  EXPECT_THAT(refusal(model), HasSubstr("after functions are inlined"));
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

TEST(HostileFiles, HugeConstantsAreNotMade) {
  TestModel range = single("Range", {"zero", "many", "one"});
  range.ints("zero", {}, {0});
  range.ints("many", {}, {1ll << 38});
  range.ints("one", {}, {1});
  range.graph.mutable_input()->Clear();
  EXPECT_THAT(refusal(range), HasSubstr("a range of 274877906944 elements"));

  TestModel fill = single("ConstantOfShape", {"shape"});
  fill.ints("shape", {2}, {1ll << 31, 1ll << 40});
  EXPECT_THAT(refusal(fill), HasSubstr("too large"));
}

TEST(HostileFiles, Reshape) {
  auto to = [](std::vector<int64_t> shape) {
    TestModel model = single("Reshape", {"x", "shape"});
    model.ints("shape", {int64_t(shape.size())}, shape);
    return refusal(model);
  };
  EXPECT_EQ(to({3, -1}), "");
  EXPECT_EQ(to({0, -1}), "");
  EXPECT_THAT(to({-1, -1}), HasSubstr("two -1"));
  EXPECT_THAT(to({4, -1}), HasSubstr("cannot reshape 2x3"));
  EXPECT_THAT(to({1ll << 62, 1ll << 62}), HasSubstr("cannot reshape"));
  EXPECT_THAT(to({-7}), HasSubstr("size -7"));
}

TEST(HostileFiles, Slice) {
  auto cut = [](int64_t start, int64_t end, int64_t step) {
    TestModel model = single("Slice", {"x", "starts", "ends", "axes", "steps"});
    model.ints("starts", {1}, {start});
    model.ints("ends", {1}, {end});
    model.ints("axes", {1}, {1});
    model.ints("steps", {1}, {step});
    return refusal(model);
  };
  EXPECT_EQ(cut(0, INT64_MAX, 1), "");
  EXPECT_EQ(cut(INT64_MIN, INT64_MAX, INT64_MAX), "");
  EXPECT_EQ(cut(INT64_MAX, INT64_MIN, -1), "");
  EXPECT_EQ(cut(INT64_MAX, INT64_MIN, INT64_MIN), "");
  EXPECT_THAT(cut(0, 1, 0), HasSubstr("step of 0"));
  EXPECT_THAT(cut(2, 1, 1), HasSubstr("empty slice"));
}

TEST(HostileFiles, OtherShapes) {
  TestModel conv = single("Conv", {"x", "w"});
  conv.floats("w", {1, 1, 3, 3, 3}, std::vector<float>(27, 1));
  EXPECT_NE(refusal(conv), "");
  TestModel gather = single("Gather", {"x", "i"});
  gather.ints("i", {1}, {2});
  EXPECT_THAT(refusal(gather), HasSubstr("index 2 is out of range"));
  TestModel oneHot = single("OneHot", {"i", "depth", "values"});
  oneHot.ints("i", {1}, {2});
  oneHot.ints("depth", {0}, {});
  oneHot.floats("values", {2}, {0, 1});
  EXPECT_NE(refusal(oneHot), "");
  TestModel einsum = single("Einsum", {"s"});
  einsum.floats("s", {}, {1});
  attribute(*einsum.graph.mutable_node(0), "equation", std::string("i->i"));
  EXPECT_NE(refusal(einsum), "");
  TestModel tile = single("Tile", {"x", "r"});
  tile.ints("r", {2}, {1ll << 40, 1ll << 40});
  EXPECT_THAT(refusal(tile), HasSubstr("too large"));
  TestModel expand = single("Expand", {"x", "r"});
  expand.ints("r", {2}, {1ll << 40, 3});
  EXPECT_NE(refusal(expand), "");
}

TEST(HostileFiles, ContradictedShapes) {
  TestModel model = relu();
  auto &info = *model.graph.mutable_output(0);
  auto &tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(1);
  tensor.mutable_shape()->add_dim()->set_dim_value(2);
  tensor.mutable_shape()->add_dim()->set_dim_value(4);
  EXPECT_THAT(refusal(model),
              HasSubstr("has shape 2x3, but the file says [2, 4]"));
}

TEST(HostileFiles, Dimensions) {
  TestModel model = relu();
  auto *dim = model.graph.mutable_input(0)
                  ->mutable_type()
                  ->mutable_tensor_type()
                  ->mutable_shape()
                  ->mutable_dim(1);
  dim->clear_dim_value();
  dim->set_dim_param("sequence");
  EXPECT_THAT(refusal(model), HasSubstr("'sequence' and has no size"));
  ImportOptions options;
  options.dims = {{"sequence", 0}};
  EXPECT_THAT(refusal(model, options), HasSubstr("has size 0"));
  options.dims = {{"sequence", 4}, {"sequenze", 4}};
  EXPECT_THAT(refusal(model, options), HasSubstr("called 'sequenze'"));
  options.dims = {{"sequence", 4}, {"batch", 3}};
  EXPECT_THAT(refusal(model, options), HasSubstr("is fixed to 2"));
  options.dims = {{"sequence", 4}, {"batch", 2}};
  EXPECT_EQ(refusal(model, options), "");
}

// A range that a flipped bit makes empty, and what is computed from it.
TEST(HostileFiles, EmptyConstants) {
  TestModel model = single("Concat", {"a", "a"});
  attribute(*model.graph.mutable_node(0), "axis", int64_t(1));
  model.ints("a", {0, 2}, {});
  EXPECT_EQ(refusal(model), "");
}
