//===- Graph.h - The model as a flat list of nodes -*- C++ -*-===//
//
// What the structural checker leaves: names resolved to numbers, functions
// inlined, every rule of form checked. Order is that of the file, in which
// every value is defined before its uses.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_GRAPH_H
#define ESPALIER_LIB_IMPORT_ONNX_GRAPH_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

#include "Errors.h"
#include "ModelFile.h"
#include "OpTable.h"
#include "Tensors.h"

namespace espalier::onnx {

using ValueId = int32_t;
constexpr ValueId noValue = -1; // an argument that is left out

struct Node {
  const proto::NodeProto *proto = nullptr;
  const OpRow *op = nullptr; // null: not in the table
  int64_t version = 0;       // of the opset that the node is written in
  llvm::SmallVector<ValueId, 4> inputs;
  llvm::SmallVector<ValueId, 2> outputs;
  /// With references to a function's attributes resolved.
  llvm::SmallVector<std::pair<llvm::StringRef, const proto::AttributeProto *>,
                    4>
      attributes;
  std::string name;  // of the node, or of its first output
  std::string scope; // path through functions, or the exporter's module path
};

struct GraphInput {
  llvm::StringRef name;
  ValueId value;
  const proto::ValueInfoProto *info;
};

struct Initializer {
  llvm::StringRef name;
  ValueId value;
  TensorInfo tensor;
  int index; // in the file
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<GraphInput> inputs; // without those that are initializers
  std::vector<GraphInput> outputs;
  std::vector<Initializer> initializers;
  std::vector<llvm::StringRef> valueNames; // by ValueId
  /// What the file says about a value's type, by ValueId; null if nothing.
  std::vector<const proto::ValueInfoProto *> declared;
  std::vector<std::string> remarks;
};

/// Checks the file's structure and flattens it. Errors go to `errors`; the
/// graph is usable only if there are none.
Graph buildGraph(const ModelFile &file, ExternalFiles &files,
                 const ImportLimits &limits, ErrorList &errors);

/// Marks the nodes that some output needs.
std::vector<bool> liveNodes(const Graph &graph);

/// Value of a metadata key, or "".
template <typename Proto>
llvm::StringRef metadata(const Proto &proto, llvm::StringRef key) {
  for (const auto &entry : proto.metadata_props())
    if (llvm::StringRef(entry.key()) == key)
      return entry.value();
  return "";
}

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_GRAPH_H
