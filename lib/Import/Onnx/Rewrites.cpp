//===- Rewrites.cpp - What an exporter did to weights -*- C++ -*-===//
//
// PyTorch's exporter, with its default options, merges equal initializers,
// drops biases that are all zero, folds batch normalization into convolutions,
// and computes what depends on parameters alone. A freshly initialized model
// that went through this is another model to train. The file tells: the
// exported program's signature lists every parameter, also those that are gone.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include "Checks.h"
#include "Parameters.h"

using namespace llvm;

namespace espalier::onnx {

/// Equal initializers of up to so many elements are merged by the exporter;
/// larger ones with two uses were one parameter from the start.
constexpr int64_t mergedElements = 1024;

static StringRef moduleOf(StringRef parameter) {
  return parameter.rsplit('.').first;
}

/// The name that the exporter gives a folded result tells the operation:
/// "mul_3" was computed, "unsqueeze_3" and "val_76" (a transpose) rearranged.
static bool isArithmeticName(StringRef name) {
  StringRef stem = name.rtrim("0123456789").rtrim('_');
  return StringSwitch<bool>(stem)
      .Cases({"add", "sub", "rsub", "mul", "div", "pow"}, true)
      .Cases({"exp", "log", "sqrt", "rsqrt", "neg"}, true)
      .Cases({"matmul", "mm", "bmm", "addmm", "linear"}, true)
      .Cases({"embedding", "softmax", "sigmoid", "tanh"}, true)
      .Cases({"sum", "mean", "cumsum", "norm"}, true)
      .Default(false);
}

namespace {

class RewriteCheck {
public:
  RewriteCheck(const Graph &graph, const std::vector<bool> &live,
               const ExportMetadata &metadata)
      : graph(graph), metadata(metadata) {
    for (size_t i = 0; i < graph.initializers.size(); ++i) {
      const Initializer &initializer = graph.initializers[i];
      byValue[initializer.value] = i;
      present.insert(initializer.name);
      for (const std::string &name : metadata.initializers[i].foldedFrom)
        present.insert(name);
    }
    for (const auto &entry : metadata.parameters)
      if (present.contains(entry.getKey()))
        presentModules.insert(moduleOf(entry.getKey()));
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (live[i] && !graph.nodes[i].scope.empty())
        nodesByScope[graph.nodes[i].scope].push_back(&graph.nodes[i]);
  }

  /// What happened to a parameter that is missing; "" if it is only another
  /// name of one that is there.
  std::string explain(StringRef parameter, bool &isHarmless) {
    StringRef module = moduleOf(parameter);
    isHarmless = false;
    if (metadata.buffers.contains((module + ".running_mean").str()) &&
        !present.contains((module + ".running_mean").str()))
      return "its batch normalization was folded into another weight";
    for (const Node *node : nodesByScope.lookup(module)) {
      for (ValueId input : node->inputs) {
        auto found = byValue.find(input);
        if (found == byValue.end() || !metadata.isParameter(found->second))
          continue;
        const Initializer &other = graph.initializers[found->second];
        if (moduleOf(other.name) == module)
          continue;
        if (other.tensor.elements > mergedElements)
          return ""; // tied
        return "it was merged with " + quoted(other.name);
      }
    }
    if (presentModules.contains(module))
      return "it was removed, as zeros, or merged";
    isHarmless = true;
    return "it is not used, or was folded away";
  }

  const StringSet<> &names() const { return present; }

private:
  const Graph &graph;
  const ExportMetadata &metadata;
  DenseMap<ValueId, size_t> byValue;
  StringSet<> present, presentModules;
  StringMap<SmallVector<const Node *, 2>> nodesByScope;
};

} // namespace

void checkExportRewrites(const Graph &graph, const std::vector<bool> &live,
                         const ExportMetadata &metadata,
                         const ImportOptions &options, ErrorList &errors,
                         std::vector<std::string> &remarks) {
  std::vector<std::string> marks;
  RewriteCheck check(graph, live, metadata);
  std::vector<StringRef> parameters;
  for (const auto &entry : metadata.parameters)
    parameters.push_back(entry.getKey());
  llvm::sort(parameters); // the set has no order
  for (StringRef parameter : parameters) {
    if (check.names().contains(parameter))
      continue;
    bool isHarmless;
    std::string what = check.explain(parameter, isHarmless);
    std::string text = "parameter " + quoted(parameter) +
                       " of the exported program is not in the file: " + what;
    if (isHarmless)
      remarks.push_back(text);
    else if (!what.empty())
      marks.push_back(text);
  }
  for (size_t i = 0; i < graph.initializers.size(); ++i) {
    StringRef name = graph.initializers[i].name;
    if (metadata.initializers[i].kind == ExportInfo::Kind::None &&
        metadata.isParameter(i) && isArithmeticName(name))
      marks.push_back("initializer " + quoted(name) +
                      " was computed by the exporter from a parameter");
  }
  for (const std::string &mark : marks) {
    if (options.acceptExportRewrites)
      remarks.push_back(mark);
    else
      errors.add(mark + "; export with optimize=False, or set "
                        "'accept_export_rewrites: true'");
  }
}

} // namespace espalier::onnx
