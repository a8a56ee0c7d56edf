//===- Inputs.h - Types of values with sizes bound -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_INPUTS_H
#define ESPALIER_LIB_IMPORT_ONNX_INPUTS_H

#include <map>
#include <string>

#include "Graph.h"
#include "NodeContext.h"

namespace espalier::onnx {

/// Sizes of symbolic dimensions, and what the model's inputs look like with
/// them.
struct Binding {
  std::map<std::string, int64_t> sizes; // by the model's own names
  std::vector<Shape> shapes;            // of the inputs
  std::vector<Dtype> dtypes;
  int64_t batch = 1; // dimension 0 of the inputs
};

/// Binds every symbolic dimension of the inputs. Errors: dimensions without a
/// size, sizes without a dimension, types that are not supported, inputs that
/// disagree on the batch.
Binding bindInputs(const Graph &graph, const ImportOptions &options,
                   ErrorList &errors);

/// What contradicts the file's own description of a value, or "". Symbolic
/// dimensions that are not bound (exporters write expressions) say nothing.
std::string contradiction(const proto::ValueInfoProto &declared,
                          const ImportedValue &value, const Binding &binding);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_INPUTS_H
