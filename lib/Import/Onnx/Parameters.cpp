//===- Parameters.cpp - What becomes of each initializer -*- C++ -*-===//

#include "Parameters.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"

#include "Checks.h"

using namespace llvm;

namespace espalier::onnx {

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

/// Names in "['a', 'b']".
static std::vector<std::string> readNameList(StringRef text) {
  std::vector<std::string> names;
  SmallVector<StringRef> parts;
  text.trim().trim("[]").split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    names.push_back(part.trim().trim("'\"").str());
  return names;
}

/// Lines "p_x: PARAMETER target='x'" of the exported program's signature.
static void readSignature(StringRef text, ExportMetadata &metadata) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    auto [head, rest] = line.split(" target='");
    StringRef target = rest.take_until([](char c) { return c == '\''; });
    if (target.empty())
      continue;
    if (head.ends_with(": PARAMETER"))
      metadata.parameters.insert(target);
    else if (head.ends_with(": BUFFER"))
      metadata.buffers.insert(target);
  }
}

ExportMetadata readExportMetadata(const Graph &graph,
                                  const proto::GraphProto &proto) {
  ExportMetadata result;
  readSignature(
      metadata(proto, "pkg.torch.export.ExportedProgram.graph_signature"),
      result);
  for (const Initializer &initializer : graph.initializers) {
    ExportInfo info;
    if (const proto::ValueInfoProto *value =
            graph.declared[initializer.value]) {
      StringRef kind =
          metadata(*value, "pkg.torch.export.graph_signature.InputSpec.kind");
      if (kind == "PARAMETER")
        info.kind = ExportInfo::Kind::Parameter;
      else if (kind == "BUFFER")
        info.kind = ExportInfo::Kind::Buffer;
      info.foldedFrom = readNameList(
          metadata(*value, "pkg.onnxscript.optimizer.folded_from"));
      result.known |= info.kind != ExportInfo::Kind::None;
    }
    result.initializers.push_back(std::move(info));
  }
  return result;
}

bool ExportMetadata::isParameter(size_t initializer) const {
  const ExportInfo &info = initializers[initializer];
  return info.kind == ExportInfo::Kind::Parameter ||
         llvm::any_of(info.foldedFrom, [&](const std::string &name) {
           return parameters.contains(name);
         });
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static bool passesGradient(const Node &node, size_t input) {
  if (!node.op || !(node.op->differentiable >> std::min<size_t>(input, 31) & 1))
    return false;
  if (node.proto->op_type() != "Cast")
    return true;
  for (auto [name, attribute] : node.attributes)
    if (name == "to" && attribute->i() > 0 && attribute->i() < 64)
      return isFloating(toDtype(attribute->i()));
  return false;
}

std::vector<bool> gradientReaches(const Graph &graph,
                                  const std::vector<bool> &live) {
  std::vector<bool> reached(graph.valueNames.size());
  for (const GraphInput &output : graph.outputs)
    reached[output.value] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node &node = graph.nodes[i];
    if (!live[i] || llvm::none_of(node.outputs, [&](ValueId value) {
          return reached[value];
        }))
      continue;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] != noValue && passesGradient(node, k))
        reached[node.inputs[k]] = true;
  }
  return reached;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

namespace {

/// What the graph does with each value, by ValueId.
struct Uses {
  std::vector<bool> used, reached, runningStatistic;
};

/// Names that some glob of a list matches.
class GlobList {
public:
  GlobList(ArrayRef<std::string> globs, StringRef key, ErrorList &errors)
      : texts(globs), key(key), errors(errors) {
    for (const std::string &text : globs) {
      Expected<GlobPattern> pattern = GlobPattern::create(text);
      if (!pattern) {
        errors.add(key + ": glob " + quoted(text) + ": " +
                   toString(pattern.takeError()));
        pattern = GlobPattern();
      }
      patterns.push_back(std::move(*pattern));
      hits.push_back(false);
    }
  }

  /// The glob that matches, or "".
  StringRef match(StringRef name) {
    StringRef found;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (texts[i] != name && !patterns[i].match(name))
        continue;
      hits[i] = true;
      found = texts[i];
    }
    return found;
  }

  void reportUnmatched() {
    for (size_t i = 0; i < hits.size(); ++i)
      if (!hits[i])
        errors.add(key + ": " + quoted(texts[i]) + " matches no initializer");
  }

private:
  ArrayRef<std::string> texts;
  StringRef key;
  ErrorList &errors;
  std::vector<GlobPattern> patterns;
  std::vector<bool> hits;
};

} // namespace

static Uses findUses(const Graph &graph, const std::vector<bool> &live) {
  Uses uses;
  uses.used.resize(graph.valueNames.size());
  uses.runningStatistic.resize(graph.valueNames.size());
  uses.reached = gradientReaches(graph, live);
  for (const GraphInput &output : graph.outputs)
    uses.used[output.value] = true;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node &node = graph.nodes[i];
    if (!live[i])
      continue;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] == noValue)
        continue;
      uses.used[node.inputs[k]] = true;
      if (k >= 3 && node.proto->op_type() == "BatchNormalization")
        uses.runningStatistic[node.inputs[k]] = true;
    }
  }
  return uses;
}

/// Why an initializer is not trained by default, or "".
static std::string untrainedReason(const Graph &graph, size_t i,
                                   const Uses &uses,
                                   const ExportMetadata &metadata) {
  const Initializer &initializer = graph.initializers[i];
  if (!isFloating(initializer.tensor.dtype))
    return ("it is of type " + dtypeName(initializer.tensor.dtype)).str();
  if (uses.runningStatistic[initializer.value])
    return "it is a running statistic";
  if (!uses.reached[initializer.value])
    return "no gradient reaches it";
  if (metadata.known) {
    if (metadata.isParameter(i))
      return "";
    return metadata.initializers[i].kind == ExportInfo::Kind::Buffer
               ? "the file's metadata calls it a buffer"
               : "the file's metadata does not call it a parameter";
  }
  return initializer.tensor.elements > 1 ? "" : "it has one element";
}

/// Small enough to become a constant, so that what is computed from it folds.
static bool becomesConstant(const Initializer &initializer, bool isParameter,
                            const ExportMetadata &metadata) {
  const TensorInfo &tensor = initializer.tensor;
  if (tensor.carrier == TensorInfo::Carrier::Absent)
    return false;
  if (tensor.elements <= 1)
    return true;
  if (!isFloating(tensor.dtype))
    return tensor.elements <= (1 << 22);
  if (metadata.known)
    return !isParameter && tensor.elements <= (1 << 18);
  return tensor.elements <= 1024;
}

static void checkTrainable(const Initializer &initializer, const Uses &uses,
                           ErrorList &errors) {
  std::string text = "trained: initializer " + quoted(initializer.name);
  if (!isFloating(initializer.tensor.dtype))
    errors.add(text + " is of type " + dtypeName(initializer.tensor.dtype));
  else if (uses.runningStatistic[initializer.value])
    errors.add(text + " is a running statistic, which is updated, not trained");
  else if (!uses.reached[initializer.value])
    errors.add(text + " has no gradient");
}

std::vector<InitializerPlan>
planInitializers(const Graph &graph, const std::vector<bool> &live,
                 const ExportMetadata &metadata, const ImportOptions &options,
                 ErrorList &errors, std::vector<std::string> &remarks) {
  using Role = InitializerPlan::Role;
  Uses uses = findUses(graph, live);
  GlobList frozen(options.frozen, "frozen", errors);
  GlobList trained(options.trained, "trained", errors);
  bool trainsBatchNorm = options.batchNorm == BatchNormMode::Train;
  std::vector<InitializerPlan> plans;
  for (size_t i = 0; i < graph.initializers.size(); ++i) {
    const Initializer &initializer = graph.initializers[i];
    InitializerPlan plan;
    StringRef frozenBy = frozen.match(initializer.name);
    StringRef trainedBy = trained.match(initializer.name);
    plan.reason = untrainedReason(graph, i, uses, metadata);
    if (!trainedBy.empty()) {
      checkTrainable(initializer, uses, errors);
      plan.reason = "";
    } else if (!frozenBy.empty() && plan.reason.empty()) {
      plan.reason = "'frozen' names it by " + quoted(frozenBy);
    }
    if (!uses.used[initializer.value]) {
      plan.reason = "it is not used";
      if (options.allowUnused)
        remarks.push_back("initializer " + quoted(initializer.name) +
                          " is not used");
      else
        errors.add("initializer " + quoted(initializer.name) +
                   " is not used; allow it with --allow-unused");
    } else if (plan.reason.empty()) {
      plan.role = Role::Parameter;
    } else if (uses.runningStatistic[initializer.value]) {
      plan.role = trainsBatchNorm ? Role::Buffer : Role::Frozen;
    } else if (becomesConstant(initializer, metadata.isParameter(i),
                               metadata)) {
      plan.role = Role::Constant;
    } else {
      plan.role = Role::Frozen;
    }
    plans.push_back(std::move(plan));
  }
  frozen.reportUnmatched();
  trained.reportUnmatched();
  return plans;
}

} // namespace espalier::onnx
