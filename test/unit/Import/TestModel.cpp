//===- TestModel.cpp - Small ONNX files for tests -*- C++ -*-===//

#include "TestModel.h"

#include "gtest/gtest.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdlib.h>

namespace espalier::onnx {

TemporaryFolder::TemporaryFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "espalier-XXXXXX").string();
  folder = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(folder); }

void TemporaryFolder::write(const std::string &name,
                            const std::string &content) const {
  std::filesystem::create_directories(
      std::filesystem::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << content;
}

TestModel::TestModel() : graph(*model.mutable_graph()) {
  model.set_ir_version(10);
  model.add_opset_import()->set_version(20);
}

proto::NodeProto &TestModel::node(const std::string &op,
                                  const std::vector<std::string> &inputs,
                                  const std::vector<std::string> &outputs) {
  proto::NodeProto &node = *graph.add_node();
  node.set_op_type(op);
  for (const std::string &input : inputs)
    node.add_input(input);
  for (const std::string &output : outputs)
    node.add_output(output);
  return node;
}

proto::ValueInfoProto &TestModel::input(const std::string &name,
                                        std::vector<int64_t> shape, int type) {
  proto::ValueInfoProto &info = *graph.add_input();
  info.set_name(name);
  auto &tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape();
  for (int64_t size : shape)
    tensor.mutable_shape()->add_dim()->set_dim_value(size);
  return info;
}

void TestModel::output(const std::string &name) {
  graph.add_output()->set_name(name);
}

proto::TensorProto &TestModel::floats(const std::string &name,
                                      std::vector<int64_t> shape,
                                      const std::vector<float> &values) {
  proto::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(1);
  for (int64_t size : shape)
    tensor.add_dims(size);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

proto::TensorProto &TestModel::ints(const std::string &name,
                                    std::vector<int64_t> shape,
                                    const std::vector<int64_t> &values) {
  proto::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(7);
  for (int64_t size : shape)
    tensor.add_dims(size);
  for (int64_t value : values)
    tensor.add_int64_data(value);
  return tensor;
}

void attribute(proto::NodeProto &node, const std::string &name, int64_t value) {
  proto::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(2);
  attribute.set_i(value);
}

void attribute(proto::NodeProto &node, const std::string &name,
               const std::string &value) {
  proto::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(3);
  attribute.set_s(value);
}

void attribute(proto::NodeProto &node, const std::string &name,
               const std::vector<int64_t> &values) {
  proto::AttributeProto &attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(7);
  for (int64_t value : values)
    attribute.add_ints(value);
}

std::string refusal(const std::string &bytes, const ImportOptions &options) {
  TemporaryFolder folder;
  folder.write("model.onnx", bytes);
  mlir::MLIRContext context;
  auto model = importOnnx(context, folder.path("model.onnx"), options);
  return model ? "" : llvm::toString(model.takeError());
}

std::string refusal(const TestModel &model, const ImportOptions &options) {
  return refusal(model.bytes(), options);
}

static std::vector<double> readFloats(const ImportedModel &model,
                                      const ImportedInitializer &initializer) {
  std::string bytes = initializer.source.content;
  if (initializer.source.kind == WeightSource::Kind::File) {
    bytes.resize(initializer.source.bytes);
    std::ifstream file(model.directory + "/" + initializer.source.file,
                       std::ios::binary);
    file.seekg(initializer.source.offset);
    file.read(bytes.data(), bytes.size());
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return {values.begin(), values.end()};
}

static Tensor makeTensor(mlir::RankedTensorType type,
                         const std::vector<double> &values) {
  if (llvm::isa<mlir::FloatType>(type.getElementType()))
    return Tensor(type, values);
  return Tensor(type, std::vector<int64_t>(values.begin(), values.end()));
}

std::vector<Tensor> run(ImportedModel &model,
                        const std::vector<std::vector<double>> &inputs) {
  auto function = *model.module->getOps<mlir::func::FuncOp>().begin();
  Tensors arguments;
  size_t input = 0;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = llvm::cast<mlir::RankedTensorType>(type);
    auto role = function.getArgAttrOfType<mlir::StringAttr>(i, "espalier.role");
    if (role == "input")
      arguments.push_back(makeTensor(tensor, inputs.at(input++)));
    else if (role == "valid" || role == "rng")
      arguments.push_back(
          makeTensor(tensor, std::vector<double>(tensor.getNumElements(), 1)));
    else
      arguments.push_back(
          makeTensor(tensor, readFloats(model, model.initializers[i])));
  }
  auto results = interpret(function, arguments, Precision::Double);
  EXPECT_TRUE(mlir::succeeded(results));
  return mlir::succeeded(results) ? *results : Tensors();
}

std::vector<double> evaluate(const TestModel &model,
                             const std::vector<std::vector<double>> &inputs,
                             const ImportOptions &options) {
  TemporaryFolder folder;
  folder.write("model.onnx", model.bytes());
  mlir::MLIRContext context;
  auto imported = importOnnx(context, folder.path("model.onnx"), options);
  if (!imported) {
    ADD_FAILURE() << llvm::toString(imported.takeError());
    return {};
  }
  Tensors results = run(*imported, inputs);
  if (results.empty())
    return {};
  return results[0].isFloat() ? results[0].floats
                              : std::vector<double>(results[0].integers.begin(),
                                                    results[0].integers.end());
}

} // namespace espalier::onnx
