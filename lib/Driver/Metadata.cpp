//===- Metadata.cpp - What a binary knows about itself --------------------===//

#include "Metadata.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::driver;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// First values
//===----------------------------------------------------------------------===//

static const ImportedInitializer *findInitializer(const ImportedModel &model,
                                                  StringRef name) {
  for (const ImportedInitializer &initializer : model.initializers)
    if (initializer.name == name)
      return &initializer;
  return nullptr;
}

/// The first rule of the job that matches, or null.
static const InitJob *findRule(const Job &job, StringRef name) {
  for (const InitJob &rule : job.train.init)
    if (auto glob = llvm::GlobPattern::create(rule.match);
        glob ? glob->match(name)
             : (llvm::consumeError(glob.takeError()), false))
      return &rule;
  return nullptr;
}

static json::Object initByRule(const InitJob &rule) {
  switch (rule.kind) {
  case InitJob::Kind::Zeros:
    return json::Object{{"kind", "zeros"}};
  case InitJob::Kind::Ones:
    return json::Object{{"kind", "ones"}};
  case InitJob::Kind::Normal:
    return json::Object{
        {"kind", "normal"}, {"std", rule.deviation}, {"mean", 0.0}};
  }
  llvm_unreachable("all kinds are handled");
}

static json::Object initOf(const Session &session, StringRef role,
                           StringRef name) {
  if (role == "state")
    return json::Object{{"kind", "zeros"}};
  if (role == "parameter")
    if (const InitJob *rule = findRule(session.job, name))
      return initByRule(*rule);
  const ImportedInitializer *initializer = findInitializer(session.model, name);
  assert(initializer && "every stored tensor is an initializer");
  const WeightSource &source = initializer->source;
  return json::Object{{"kind", "file"},
                      {"path", source.file},
                      {"offset", int64_t(source.offset)},
                      {"bytes", int64_t(source.bytes)}};
}

static bool isTokens(const Session &session) {
  return session.job.data && session.job.data->kind == DataJob::Kind::Tokens;
}

/// What fills an input that token data does not have, or "".
static StringRef fillFor(StringRef input) {
  if (input.contains("position"))
    return "positions";
  if (input.contains("mask"))
    return "ones";
  if (input.contains("type"))
    return "zeros";
  return "";
}

void driver::checkSources(const Session &session, Messages &messages) {
  const std::string &path = session.job.path;
  for (const ImportedInitializer &initializer : session.model.initializers) {
    bool hasRule = initializer.role == "parameter" &&
                   findRule(session.job, initializer.name);
    if (hasRule || initializer.source.kind == WeightSource::Kind::File)
      continue;
    messages.add(path + ": '" + initializer.name +
                 (initializer.source.kind == WeightSource::Kind::Absent
                      ? "': its values are not there; give train.init a rule "
                        "that matches it, or the model its weights"
                      : "': not supported: values in a typed field of the "
                        "model's file; save it with raw or external data"));
  }
  for (const InitJob &rule : session.job.train.init)
    if (auto glob = llvm::GlobPattern::create(rule.match); !glob)
      messages.add(path + ": key 'train.init': '" + rule.match +
                   "': " + llvm::toString(glob.takeError()));
  if (!isTokens(session))
    return;
  const DataJob &data = *session.job.data;
  bool hasInput = false;
  for (const ImportedInput &input : session.model.inputs) {
    hasInput |= input.name == data.input;
    if (input.name != data.input && fillFor(input.name).empty())
      messages.add(path +
                   ": data of kind tokens has no values for the model's "
                   "input '" +
                   input.name + "'");
  }
  if (!hasInput)
    messages.add(path + ": key 'data.input': the model has no input '" +
                 data.input + "'");
  if (data.labels != session.job.train.loss.target)
    messages.add(path + ": key 'data.labels': expects the loss's '" +
                 session.job.train.loss.target + "', but got '" + data.labels +
                 "'");
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {

/// A tensor of the planned program: its type says its logical shape and
/// sharding.
struct PlannedValue {
  RankedTensorType type;
  Value argument; // of a function, or null
};

/// The tensors of both planned functions by role and name.
class PlannedTensors {
public:
  explicit PlannedTensors(ModuleOp planned) {
    for (auto function : planned.getOps<func::FuncOp>()) {
      for (BlockArgument argument : function.getArguments())
        add(argumentString(function, argument.getArgNumber(), kRoleAttr),
            argumentString(function, argument.getArgNumber(), kNameAttr),
            {cast<RankedTensorType>(argument.getType()), argument});
      for (unsigned i = 0; i < function.getNumResults(); ++i)
        add(resultString(function, i, kRoleAttr),
            resultString(function, i, kNameAttr),
            {cast<RankedTensorType>(function.getResultTypes()[i]), Value()});
    }
  }
  const PlannedValue &find(StringRef role, StringRef name) const {
    auto found = values.find((role + ":" + name).str());
    assert(found != values.end() && "an arena's tensor is a planned one");
    return found->second;
  }

private:
  void add(StringRef role, StringRef name, PlannedValue value) {
    values.try_emplace((role + ":" + name).str(), value);
  }
  std::map<std::string, PlannedValue> values;
};

} // namespace

static StringRef dtypeName(Type type) {
  if (type.isF32())
    return "f32";
  if (type.isF64())
    return "f64";
  if (type.isBF16())
    return "bf16";
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return "i1";
  case 32:
    return "i32";
  default:
    return "i64";
  }
}

static json::Array shardingOf(const Mesh &mesh, const Sharding &sharding) {
  SmallVector<int64_t> strides(mesh.axes.size(), 1);
  for (size_t i = mesh.axes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * mesh.axes[i].size;
  json::Array dims;
  for (const AxisList &list : sharding.dims) {
    json::Array axes;
    for (Axis axis : list)
      axes.push_back(json::Object{{"axis", mesh.axes[axis].name},
                                  {"size", mesh.axes[axis].size},
                                  {"stride", strides[axis]}});
    dims.push_back(std::move(axes));
  }
  return dims;
}

/// The number of classes that a cross-entropy takes from the labels, which may
/// be masked on the way.
static std::optional<int64_t> classesOf(Value labels) {
  SmallVector<Value> pending = {labels};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (Operation *user : value.getUsers()) {
      if (auto loss = dyn_cast<nn::CrossEntropyOp>(user);
          loss && loss.getLabels() == value)
        return nn::shapeOf(loss.getLogits()).back();
      if (isa<nn::MapOp, nn::ReshapeOp, dist::ReshardOp>(user) &&
          isa<IntegerType>(getElementTypeOrSelf(user->getResult(0))))
        llvm::append_range(pending, user->getResults());
    }
  }
  return std::nullopt;
}

static void addRange(const Session &session, StringRef role, StringRef name,
                     const PlannedValue &value, json::Object &tensor) {
  if (role == "label" && value.argument) {
    if (std::optional<int64_t> classes = classesOf(value.argument)) {
      tensor["range"] = json::Array{0, *classes};
      tensor["ignore"] = session.job.train.loss.ignoreIndex;
    }
    return;
  }
  for (const ImportedInput &input : session.model.inputs)
    if (input.name == name && input.range)
      tensor["range"] = json::Array{input.range->first, input.range->second};
}

/// Roles of which the runtime knows nothing: sums between functions.
static bool isInternal(StringRef role) {
  return role == "grad" || role == "loss_sum" || role == "weight_sum";
}

/// The planned tensor that an arena's tensor is: the weight that the schedule
/// adds for the log is the sum of weights, reduced.
static const PlannedValue &plannedOf(const PlannedTensors &planned,
                                     const memory::PlannedTensor &entry) {
  return entry.role == "weight" ? planned.find("weight_sum", "weight_sum")
                                : planned.find(entry.role, entry.name);
}

static json::Array buildTensors(const Session &session,
                                const memory::MemoryPlan &plan) {
  PlannedTensors planned(*session.program.planned);
  json::Array tensors;
  for (const memory::PlannedTensor &entry : plan.tensors) {
    if (isInternal(entry.role))
      continue;
    const PlannedValue &value = plannedOf(planned, entry);
    auto sharding =
        Sharding::from(dist::shardingOf(value.type), session.layout.mesh);
    assert(succeeded(sharding) && "a planned tensor carries a sharding");
    json::Object tensor{
        {"name", entry.name},
        {"role", entry.role == "weight" ? "weight_sum" : entry.role},
        {"dtype", dtypeName(value.type.getElementType())},
        {"shape", json::Array(value.type.getShape())},
        {"offset", entry.offset},
        {"sharding", shardingOf(session.layout.mesh, *sharding)}};
    bool isStored = entry.role == "parameter" || entry.role == "frozen" ||
                    entry.role == "buffer" || entry.role == "state";
    if (isStored) {
      tensor["init"] = initOf(session, entry.role, entry.name);
      tensor["checkpoint"] = entry.role != "frozen";
    }
    if (const ImportedInitializer *initializer =
            findInitializer(session.model, entry.name);
        isStored && initializer && !initializer->alias.empty()) {
      tensor["alias"] = initializer->alias;
      tensor["alias_transposed"] = initializer->aliasTransposed;
    }
    addRange(session, entry.role, entry.name, value, tensor);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

static json::Object buildJob(const Session &session) {
  const Job &job = session.job;
  json::Object object{{"name", llvm::sys::path::stem(job.model).str()},
                      {"global_batch", job.train.globalBatch},
                      {"micro_batch", session.layout.microBatch},
                      {"micro_batches", session.layout.microBatches},
                      {"seed", int64_t(job.train.seed)},
                      {"precision", job.train.precision}};
  if (job.train.schedule.totalSteps)
    object["steps"] = *job.train.schedule.totalSteps;
  return object;
}

static json::Value buildData(const Job &job) {
  if (!job.data)
    return nullptr;
  if (job.data->kind == DataJob::Kind::Samples)
    return json::Object{{"kind", "samples"},
                        {"file", job.data->file},
                        {"shuffle", job.data->shuffle}};
  return json::Object{
      {"kind", "tokens"},           {"file", job.data->file},
      {"dtype", job.data->dtype},   {"input", job.data->input},
      {"labels", job.data->labels}, {"sequence", job.dims.at("sequence")}};
}

static std::string absolutePath(StringRef path) {
  SmallString<128> absolute(path);
  llvm::sys::fs::make_absolute(absolute);
  llvm::sys::path::remove_dots(absolute, /*remove_dot_dot=*/true);
  return absolute.str().str();
}

static int64_t productFlops(Operation &op) {
  if (auto contract = dyn_cast<nn::ContractOp>(op)) {
    auto [lhs, rhs, result] = contract.getLetters();
    int64_t flops = 2 * nn::elementCount(contract.getResult());
    for (auto [letter, size] : llvm::zip(lhs, nn::shapeOf(contract.getLhs())))
      if (!result.contains(letter))
        flops *= size;
    return flops;
  }
  // 2 * batch * queries * keys * (size of a key + size of a value) per head.
  if (auto attention = dyn_cast<nn::AttentionOp>(op))
    return 2 * nn::elementCount(attention.getLse()) *
           nn::shapeOf(attention.getKey())[2] *
           (nn::shapeOf(attention.getKey())[3] +
            nn::shapeOf(attention.getValue())[3]);
  if (auto gradient = dyn_cast<nn::AttentionGradOp>(op)) // scores again, 4 more
    return 2 * nn::elementCount(gradient.getLse()) *
           nn::shapeOf(gradient.getKey())[2] *
           (3 * nn::shapeOf(gradient.getKey())[3] +
            2 * nn::shapeOf(gradient.getValue())[3]);
  auto conv = [](Value output, Value filter) {
    return 2 * nn::elementCount(output) * nn::elementCount(filter) /
           nn::shapeOf(filter)[0];
  };
  if (auto forward = dyn_cast<nn::ConvOp>(op))
    return conv(forward.getResult(), forward.getFilter());
  if (auto input = dyn_cast<nn::ConvInputGradOp>(op))
    return conv(input.getDy(), input.getFilter());
  if (auto filter = dyn_cast<nn::ConvFilterGradOp>(op))
    return conv(filter.getDy(), filter.getResult());
  return 0;
}

double driver::countStepFlops(const Session &session) {
  auto grad =
      ModuleOp(session.program.whole.get()).lookupSymbol<func::FuncOp>("grad");
  double flops = 0;
  for (Operation &op : grad.front())
    flops += double(productFlops(op));
  return flops * double(session.layout.microBatches);
}

std::string driver::buildMetadata(const Session &session,
                                  const cpu::ProgramLayout &layout) {
  json::Array mesh, groups, ops, libraries, fill;
  for (const MeshAxis &axis : session.layout.mesh.axes)
    mesh.push_back(json::Object{{"axis", axis.name}, {"size", axis.size}});
  for (const std::vector<int32_t> &group : layout.groups)
    groups.push_back(json::Array(group));
  for (const std::string &op : layout.ops)
    ops.push_back(json::fixUTF8(op));
  if (layout.callsGemm)
    libraries.push_back(json::Object{{"name", "oneDNN"},
                                     {"file", "libdnnl.so.2"},
                                     {"why", "matrix products"}});
  if (isTokens(session))
    for (const ImportedInput &input : session.model.inputs)
      if (input.name != session.job.data->input)
        fill.push_back(
            json::Object{{"input", input.name}, {"with", fillFor(input.name)}});
  json::Object root{
      {"version", 1},
      {"tool", "espalier 0.1"},
      {"job", buildJob(session)},
      {"mesh", std::move(mesh)},
      {"groups", std::move(groups)},
      {"ops", std::move(ops)},
      {"libraries", std::move(libraries)},
      {"fingerprints", json::Object{{"model", session.model.fingerprint}}},
      {"tensors", buildTensors(session, layout.memory)},
      {"data", buildData(session.job)},
      {"job_directory", absolutePath(session.job.directory)},
      {"model_directory", absolutePath(session.model.directory)},
      {"fill", std::move(fill)},
      {"predicted", json::Object{{"flops_per_step", countStepFlops(session)}}}};
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(root));
  return text;
}
