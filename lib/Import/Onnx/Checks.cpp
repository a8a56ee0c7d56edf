//===- Checks.cpp - Rules of form for parts of a file -*- C++ -*-===//

#include "Checks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <set>

using namespace llvm;

namespace espalier::onnx {

StringRef canonicalDomain(StringRef domain) {
  return domain == "ai.onnx" ? "" : domain;
}

OpsetMap readOpsets(
    const google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto> &list,
    const Twine &where, ErrorList &errors) {
  OpsetMap versions;
  for (const auto &entry : list) {
    std::string domain = canonicalDomain(entry.domain()).str();
    if (!versions.emplace(domain, entry.version()).second)
      errors.add(where + " imports two versions of domain " + quoted(domain));
  }
  return versions;
}

FunctionKey functionKey(const proto::NodeProto &node) {
  return {canonicalDomain(node.domain()).str(), node.op_type(),
          node.overload()};
}

/// Iterative depth-first search; reports a cycle once.
static void checkCalls(const FunctionMap &functions, ErrorList &errors) {
  using Function = const proto::FunctionProto *;
  std::map<Function, int> state; // 1 = on the path, 2 = done
  for (const auto &[key, start] : functions) {
    std::vector<std::pair<Function, int>> path{{start, 0}};
    if (state[start])
      continue;
    state[start] = 1;
    while (!path.empty()) {
      auto &[function, next] = path.back();
      if (next == function->node_size()) {
        state[function] = 2;
        path.pop_back();
        continue;
      }
      auto callee = functions.find(functionKey(function->node(next++)));
      if (callee == functions.end() || state[callee->second] == 2)
        continue;
      if (state[callee->second] == 1) {
        errors.add("function " + quoted(callee->second->name()) +
                   " calls itself, directly or through others");
        return;
      }
      state[callee->second] = 1;
      path.push_back({callee->second, 0});
    }
  }
}

FunctionMap readFunctions(const proto::ModelProto &model, ErrorList &errors) {
  FunctionMap functions;
  for (const auto &function : model.functions()) {
    FunctionKey key{canonicalDomain(function.domain()).str(), function.name(),
                    function.overload()};
    if (!functions.emplace(key, &function).second)
      errors.add("function " + quoted(function.name()) + " is defined twice");
  }
  checkCalls(functions, errors);
  return functions;
}

std::string checkName(StringRef name) {
  if (name.size() > 4096)
    return "has more than 4096 bytes";
  if (name.contains('\0'))
    return "contains a NUL";
  return "";
}

std::string checkAttribute(const proto::AttributeProto &attribute) {
  struct Payload {
    int type;
    bool filled;
  };
  const Payload payloads[] = {
      {1, attribute.has_f()},
      {2, attribute.has_i()},
      {3, attribute.has_s()},
      {4, attribute.has_t()},
      {5, attribute.has_g()},
      {6, attribute.floats_size() > 0},
      {7, attribute.ints_size() > 0},
      {8, attribute.strings_size() > 0},
      {9, attribute.tensors_size() > 0},
      {10, attribute.graphs_size() > 0},
      {11, attribute.has_sparse_tensor()},
      {12, attribute.sparse_tensors_size() > 0},
      {13, attribute.has_tp()},
      {14, attribute.type_protos_size() > 0},
  };
  int type = attribute.type();
  if (type < 1 || type > 14)
    return "has the unknown type " + std::to_string(type);
  for (const Payload &payload : payloads)
    if (payload.filled && payload.type != type)
      return "has a value that is not of its type";
  // Zero scalars may be written as absent fields; messages may not.
  if ((type == 4 && !attribute.has_t()) || (type == 5 && !attribute.has_g()))
    return "has no value";
  return "";
}

std::string nodeText(const Node &node) {
  std::string text =
      "node " + quoted(node.name) + " (" +
      StringRef(quoted(node.proto->op_type())).drop_front().drop_back().str() +
      ")";
  return text;
}

static void reportUnknownOp(const Node &node, ErrorList &errors) {
  StringRef domain = canonicalDomain(node.proto->domain());
  if (!domain.empty()) {
    errors.add(nodeText(node) + ": not supported: domain " + quoted(domain));
    return;
  }
  std::string versions = supportedVersions(node.proto->op_type());
  std::string detail = versions.empty() ? "" : "; it is in opset " + versions;
  errors.add(nodeText(node) + ": not supported: op " +
             quoted(node.proto->op_type()) + " in opset " +
             Twine(node.version) + detail);
}

static void checkNodeAttributes(const Node &node, ErrorList &errors) {
  for (auto [name, attribute] : node.attributes) {
    std::optional<AttributeType> type = attributeType(*node.op, name);
    if (!type)
      errors.add(nodeText(node) + ": not supported: attribute " + quoted(name));
    else if (int32_t(*type) != attribute->type())
      errors.add(nodeText(node) + ": attribute " + quoted(name) + " has type " +
                 Twine(attribute->type()) + ", expects type " +
                 Twine(int32_t(*type)));
  }
}

void checkOps(const Graph &graph, const std::vector<bool> &live,
              ErrorList &errors) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = graph.nodes[i];
    if (!live[i])
      continue;
    if (!node.op) {
      reportUnknownOp(node, errors);
      continue;
    }
    const OpRow &row = *node.op;
    int inputs = node.inputs.size(), outputs = node.outputs.size();
    if (inputs < row.minInputs ||
        (row.maxInputs >= 0 && inputs > row.maxInputs))
      errors.add(nodeText(node) + ": has " + Twine(inputs) +
                 " inputs, expects " + Twine(row.minInputs) +
                 (row.maxInputs < 0 ? Twine(" or more")
                                    : " to " + Twine(row.maxInputs)));
    for (int k = 0; k < std::min(inputs, row.minInputs); ++k)
      if (node.inputs[k] == noValue)
        errors.add(nodeText(node) + ": input " + Twine(k) + " is left out");
    if (outputs < 1 || (row.maxOutputs >= 0 && outputs > row.maxOutputs))
      errors.add(nodeText(node) + ": has " + Twine(outputs) +
                 " outputs, expects 1 to " + Twine(row.maxOutputs));
    checkNodeAttributes(node, errors);
  }
}

/// Numbers of the fields in a lite message's unknown bytes.
static std::set<int> unknownNumbers(StringRef bytes) {
  std::set<int> numbers;
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  while (uint32_t tag = stream.ReadTag()) {
    numbers.insert(tag >> 3);
    uint64_t number;
    int size;
    bool isFine = false;
    if ((tag & 7) == 0)
      isFine = stream.ReadVarint64(&number);
    else if ((tag & 7) == 1)
      isFine = stream.Skip(8);
    else if ((tag & 7) == 2)
      isFine = stream.ReadVarintSizeAsInt(&size) && stream.Skip(size);
    else if ((tag & 7) == 5)
      isFine = stream.Skip(4);
    if (!isFine)
      break;
  }
  return numbers;
}

void remarkIgnored(const proto::ModelProto &model,
                   std::vector<std::string> &remarks) {
  if (model.training_info_size())
    remarks.push_back("training_info is ignored");
  if (model.graph().quantization_annotation_size())
    remarks.push_back("quantization annotations are ignored");
  for (int number : unknownNumbers(model.unknown_fields()))
    remarks.push_back("unknown field " + std::to_string(number) +
                      " of the model is ignored");
  for (int number : unknownNumbers(model.graph().unknown_fields()))
    remarks.push_back("unknown field " + std::to_string(number) +
                      " of the graph is ignored");
  std::set<int> inNodes;
  for (const auto &node : model.graph().node())
    if (!node.unknown_fields().empty())
      inNodes.merge(unknownNumbers(node.unknown_fields()));
  for (int number : inNodes)
    remarks.push_back("unknown field " + std::to_string(number) +
                      " of nodes is ignored");
}

} // namespace espalier::onnx
