//===- TestModel.h - Small ONNX files for tests -*- C++ -*-===//

#ifndef ESPALIER_TEST_UNIT_IMPORT_TESTMODEL_H
#define ESPALIER_TEST_UNIT_IMPORT_TESTMODEL_H

#include "espalier/Import/Onnx.h"
#include "espalier/Interpreter/Interpreter.h"

#include <string>
#include <vector>

#include "lib/Import/Onnx/onnx.pb.h"

namespace espalier::onnx {

/// A folder that goes when this goes.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string &name) const {
    return folder + "/" + name;
  }
  void write(const std::string &name, const std::string &content) const;

private:
  std::string folder;
};

/// Builds a model in a few lines: opset 20, tensors of floats.
class TestModel {
public:
  TestModel();
  proto::NodeProto &node(const std::string &op,
                         const std::vector<std::string> &inputs,
                         const std::vector<std::string> &outputs);
  proto::ValueInfoProto &input(const std::string &name,
                               std::vector<int64_t> shape, int type = 1);
  void output(const std::string &name);
  proto::TensorProto &floats(const std::string &name,
                             std::vector<int64_t> shape,
                             const std::vector<float> &values);
  proto::TensorProto &ints(const std::string &name, std::vector<int64_t> shape,
                           const std::vector<int64_t> &values);
  std::string bytes() const { return model.SerializeAsString(); }

  proto::ModelProto model;
  proto::GraphProto &graph;
};

void attribute(proto::NodeProto &node, const std::string &name, int64_t value);
void attribute(proto::NodeProto &node, const std::string &name,
               const std::string &value);
void attribute(proto::NodeProto &node, const std::string &name,
               const std::vector<int64_t> &values);

/// The message of a refused import; "" if it was not refused.
std::string refusal(const std::string &bytes,
                    const ImportOptions &options = {});
std::string refusal(const TestModel &model, const ImportOptions &options = {});

/// Runs @forward of an imported model in fp64, with initializers from where
/// the import says they are, all samples valid, and these inputs.
std::vector<Tensor> run(ImportedModel &model,
                        const std::vector<std::vector<double>> &inputs);

/// Imports and runs a model of one output.
std::vector<double> evaluate(const TestModel &model,
                             const std::vector<std::vector<double>> &inputs,
                             const ImportOptions &options = {});

} // namespace espalier::onnx

#endif // ESPALIER_TEST_UNIT_IMPORT_TESTMODEL_H
