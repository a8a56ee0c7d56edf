//===- Graph.cpp - The model as a flat list of nodes -*- C++ -*-===//

#include "Graph.h"

#include "llvm/ADT/ScopeExit.h"

#include <deque>

#include "Checks.h"

using namespace llvm;

namespace espalier::onnx {

namespace {

using AttributeList =
    SmallVector<std::pair<StringRef, const proto::AttributeProto *>, 4>;

/// A list of nodes on its way into the graph: the main graph, or one call of a
/// function.
struct Frame {
  const google::protobuf::RepeatedPtrField<proto::NodeProto> *nodes;
  int next = 0;
  StringMap<ValueId> names;
  const proto::FunctionProto *function = nullptr;
  AttributeList bindings;          // of the call
  SmallVector<ValueId, 2> outputs; // of the call, by function output
  std::string scope;
};

/// Flattens with an explicit stack of frames: depth costs no machine stack.
class Flattener {
public:
  Flattener(const ModelFile &file, ExternalFiles &files,
            const ImportLimits &limits, ErrorList &errors)
      : file(file), files(files), limits(limits), errors(errors) {}

  Graph run();

private:
  ValueId newValue(StringRef name);
  void define(Frame &frame, StringRef name, ValueId value);
  void readInitializers(Frame &frame);
  void readInputs(Frame &frame);
  void readDeclared(Frame &frame);
  void readOutputs(Frame &frame);
  void step();
  bool readNode(const proto::NodeProto &proto, Node &node);
  void resolveAttributes(const proto::NodeProto &proto, Node &node);
  void enterCall(const proto::FunctionProto &function, Node &node);
  void leaveCall();
  void checkFunctionOpsets();

  const ModelFile &file;
  ExternalFiles &files;
  const ImportLimits &limits;
  ErrorList &errors;
  OpsetMap opsets;
  FunctionMap functions;
  std::deque<Frame> frames;
  Graph graph;
  uint64_t work = 0;
};

} // namespace

ValueId Flattener::newValue(StringRef name) {
  graph.valueNames.push_back(name);
  graph.declared.push_back(nullptr);
  return graph.valueNames.size() - 1;
}

void Flattener::define(Frame &frame, StringRef name, ValueId value) {
  std::string problem = checkName(name);
  if (!problem.empty())
    errors.add("value " + quoted(name) + " " + problem);
  else if (!frame.names.try_emplace(name, value).second)
    errors.add("value " + quoted(name) + " is defined twice");
}

void Flattener::readInitializers(Frame &frame) {
  const proto::GraphProto &proto = file.model->graph();
  if (proto.sparse_initializer_size())
    errors.add("not supported: sparse initializers");
  for (int i = 0; i < proto.initializer_size(); ++i) {
    const proto::TensorProto &tensor = proto.initializer(i);
    StringRef name = tensor.name();
    if (name.empty()) {
      errors.add("initializer " + Twine(i) + " has no name");
      continue;
    }
    Expected<TensorInfo> info = checkTensor(tensor, files);
    if (!info) {
      errors.add("initializer " + quoted(name) + " " +
                 toString(info.takeError()));
      continue;
    }
    ValueId value = newValue(name);
    define(frame, name, value);
    graph.initializers.push_back({name, value, std::move(*info), i});
  }
}

void Flattener::readInputs(Frame &frame) {
  for (const auto &input : file.model->graph().input()) {
    StringRef name = input.name();
    // An input of an initializer's name is that initializer; it may not be fed.
    if (frame.names.contains(name)) {
      graph.declared[frame.names.lookup(name)] = &input;
      continue;
    }
    if (name.empty()) {
      errors.add("an input has no name");
      continue;
    }
    ValueId value = newValue(name);
    define(frame, name, value);
    graph.declared[value] = &input;
    graph.inputs.push_back({name, value, &input});
  }
}

void Flattener::readDeclared(Frame &frame) {
  StringMap<bool> seen;
  for (const auto &info : file.model->graph().value_info()) {
    auto value = frame.names.find(info.name());
    if (value == frame.names.end())
      continue; // about a value that is not there: of no consequence
    if (!seen.try_emplace(info.name(), true).second)
      errors.add("value " + quoted(info.name()) + " is described twice");
    graph.declared[value->second] = &info;
  }
}

void Flattener::readOutputs(Frame &frame) {
  if (file.model->graph().output_size() == 0)
    errors.add("the graph has no output");
  StringMap<bool> seen;
  for (const auto &output : file.model->graph().output()) {
    auto value = frame.names.find(output.name());
    if (value == frame.names.end()) {
      errors.add("output " + quoted(output.name()) + " is not defined");
      continue;
    }
    if (!seen.try_emplace(output.name(), true).second)
      errors.add("output " + quoted(output.name()) + " is given twice");
    if (!graph.declared[value->second])
      graph.declared[value->second] = &output;
    graph.outputs.push_back({output.name(), value->second, &output});
  }
}

void Flattener::resolveAttributes(const proto::NodeProto &proto, Node &node) {
  StringMap<bool> seen;
  for (const auto &attribute : proto.attribute()) {
    StringRef name = attribute.name();
    if (!seen.try_emplace(name, true).second) {
      errors.add(nodeText(node) + ": attribute " + quoted(name) +
                 " is given twice");
      continue;
    }
    if (attribute.ref_attr_name().empty()) {
      std::string problem = checkAttribute(attribute);
      if (problem.empty())
        node.attributes.push_back({name, &attribute});
      else
        errors.add(nodeText(node) + ": attribute " + quoted(name) + " " +
                   problem);
      continue;
    }
    if (!frames.back().function) {
      errors.add(nodeText(node) + ": attribute " + quoted(name) +
                 " refers to a function's, but is in none");
      continue;
    }
    for (auto [bound, value] : frames.back().bindings)
      if (bound == attribute.ref_attr_name())
        node.attributes.push_back({name, value});
  }
}

/// The exporter's module path of a node, the innermost last, or "".
static std::string moduleScope(const proto::NodeProto &proto) {
  StringRef scopes = metadata(proto, "pkg.torch.onnx.name_scopes");
  // "['', 'transformer', 'transformer.h.0', 'view_3']": the last is the op.
  SmallVector<StringRef> parts;
  scopes.trim("[]").split(parts, ", ");
  if (parts.size() < 2)
    return "";
  return parts[parts.size() - 2].trim("'").str();
}

bool Flattener::readNode(const proto::NodeProto &proto, Node &node) {
  Frame &frame = frames.back();
  node.proto = &proto;
  node.name = proto.name();
  for (const std::string &output : proto.output())
    if (node.name.empty())
      node.name = output;
  node.scope = frame.function ? frame.scope : moduleScope(proto);
  auto version = opsets.find(canonicalDomain(proto.domain()).str());
  node.version = version == opsets.end() ? 0 : version->second;
  bool isFine = true;
  for (const std::string &input : proto.input()) {
    ValueId value = noValue;
    if (!input.empty()) {
      auto found = frame.names.find(input);
      if (found == frame.names.end()) {
        errors.add(nodeText(node) + ": input " + quoted(input) +
                   " is not defined before it");
        isFine = false;
      } else {
        value = found->second;
      }
    }
    node.inputs.push_back(value);
  }
  for (const std::string &output : proto.output()) {
    ValueId value = newValue(output);
    node.outputs.push_back(value);
    if (!output.empty())
      define(frame, output, value);
  }
  resolveAttributes(proto, node);
  return isFine;
}

void Flattener::enterCall(const proto::FunctionProto &function, Node &node) {
  if (frames.size() > limits.callDepth) {
    errors.add(nodeText(node) + ": functions are nested more than " +
               Twine(limits.callDepth) + " deep");
    return;
  }
  if (int(node.inputs.size()) > function.input_size() ||
      int(node.outputs.size()) > function.output_size()) {
    errors.add(nodeText(node) + ": has more inputs or outputs than function " +
               quoted(function.name()));
    return;
  }
  Frame frame;
  frame.nodes = &function.node();
  frame.function = &function;
  frame.outputs.assign(node.outputs.begin(), node.outputs.end());
  frame.scope = node.scope.empty() ? node.name : node.scope + "/" + node.name;
  frame.bindings = node.attributes;
  for (const auto &fallback : function.attribute_proto()) {
    bool isGiven = llvm::any_of(node.attributes, [&](const auto &given) {
      return given.first == StringRef(fallback.name());
    });
    if (!isGiven)
      frame.bindings.push_back({fallback.name(), &fallback});
  }
  for (int i = 0; i < function.input_size(); ++i)
    define(frame, function.input(i),
           i < int(node.inputs.size()) ? node.inputs[i] : noValue);
  frames.push_back(std::move(frame));
}

/// A call's outputs are other names of the values that its function returns;
/// an Identity of no text stands for each.
void Flattener::leaveCall() {
  Frame frame = std::move(frames.back());
  frames.pop_back();
  for (size_t i = 0; i < frame.outputs.size(); ++i) {
    const std::string &name = frame.function->output(i);
    auto value = frame.names.find(name);
    if (value == frame.names.end() || value->second == noValue) {
      errors.add("function " + quoted(frame.function->name()) +
                 " does not define its output " + quoted(name));
      continue;
    }
    static const proto::NodeProto *identity = [] {
      auto *proto = new proto::NodeProto;
      proto->set_op_type("Identity");
      return proto;
    }();
    Node node;
    node.proto = identity;
    node.version = minOpset;
    node.op = findOp("Identity", minOpset);
    node.inputs = {value->second};
    node.outputs = {frame.outputs[i]};
    node.name = frame.scope;
    graph.nodes.push_back(std::move(node));
  }
}

void Flattener::step() {
  Frame &frame = frames.back();
  if (frame.next == frame.nodes->size()) {
    if (frame.function)
      leaveCall();
    else
      frames.pop_back();
    return;
  }
  const proto::NodeProto &proto = (*frame.nodes)[frame.next++];
  Node node;
  if (!readNode(proto, node))
    return;
  auto function = functions.find(functionKey(proto));
  if (function != functions.end()) {
    enterCall(*function->second, node);
    return;
  }
  if (canonicalDomain(proto.domain()).empty())
    node.op = findOp(proto.op_type(), node.version);
  graph.nodes.push_back(std::move(node));
}

void Flattener::checkFunctionOpsets() {
  for (const auto &[key, function] : functions) {
    OpsetMap own = readOpsets(function->opset_import(),
                              "function " + quoted(function->name()), errors);
    auto version = own.find("");
    if (version != own.end() && version->second != opsets[""])
      errors.add("function " + quoted(function->name()) + " is of opset " +
                 Twine(version->second) + ", the model of " +
                 Twine(opsets[""]));
  }
}

Graph Flattener::run() {
  const proto::ModelProto &model = *file.model;
  opsets = readOpsets(model.opset_import(), "the model", errors);
  int64_t version = opsets.count("") ? opsets[""] : 0;
  if (version < minOpset || version > maxOpset)
    errors.add("not supported: opset " + Twine(version) + "; supported are " +
               Twine(minOpset) + " to " + Twine(maxOpset));
  functions = readFunctions(model, errors);
  checkFunctionOpsets();
  remarkIgnored(model, graph.remarks);
  if (!errors.empty())
    return std::move(graph);

  frames.emplace_back();
  frames.back().nodes = &model.graph().node();
  readInitializers(frames.back());
  readInputs(frames.back());
  // The main frame's names are needed after its nodes are done.
  Frame &main = frames.front();
  while (frames.size() > 1 || main.next < main.nodes->size()) {
    if (++work > limits.nodes) {
      errors.add("has more than " + Twine(limits.nodes) +
                 " nodes after functions are inlined");
      return std::move(graph);
    }
    step();
  }
  readDeclared(main);
  readOutputs(main);
  return std::move(graph);
}

Graph buildGraph(const ModelFile &file, ExternalFiles &files,
                 const ImportLimits &limits, ErrorList &errors) {
  return Flattener(file, files, limits, errors).run();
}

std::vector<bool> liveNodes(const Graph &graph) {
  std::vector<bool> liveNode(graph.nodes.size());
  std::vector<bool> liveValue(graph.valueNames.size());
  for (const GraphInput &output : graph.outputs)
    liveValue[output.value] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node &node = graph.nodes[i];
    liveNode[i] = llvm::any_of(node.outputs,
                               [&](ValueId value) { return liveValue[value]; });
    if (!liveNode[i])
      continue;
    for (ValueId input : node.inputs)
      if (input != noValue)
        liveValue[input] = true;
  }
  return liveNode;
}

} // namespace espalier::onnx
