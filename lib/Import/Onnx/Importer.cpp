//===- Importer.cpp - From an ONNX file to a module -*- C++ -*-===//

#include "dialects/Nn/Nn.h"
#include "espalier/Import/Onnx.h"
#include "espalier/Import/Recognize.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Errc.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

#include "Checks.h"
#include "Graph.h"
#include "Inputs.h"
#include "NodeContext.h"
#include "Parameters.h"
#include "Weights.h"

using namespace llvm;
using mlir::RankedTensorType;

namespace espalier {
namespace onnx {
namespace {

using Role = InitializerPlan::Role;

/// The steps of an import, in order; each leaves its findings in members.
class Importer {
public:
  Importer(mlir::MLIRContext &context, const ModelFile &file,
           const ImportOptions &options)
      : context(context), file(file), options(options),
        files(file.directory, options.allowHardLinks),
        state(context, options, errors, result.remarks, files) {}

  Expected<ImportedModel> run();

private:
  void analyze();
  void tie();
  void makeFunction();
  void addArgument(mlir::Type type, StringRef name, StringRef role);
  void addInitializers(Role role, StringRef roleName);
  void addInputs();
  void defineConstants();
  void defineAliases();
  void emitNodes();
  void emitNode(const Node &node);
  void checkDeclared(const Node &node);
  void finishFunction();
  void eraseUnused();
  void recognize();
  void collectInputs();
  Error verify();
  mlir::Location locationOf(const Node &node);
  RankedTensorType typeOf(ArrayRef<int64_t> shape, Dtype dtype);
  mlir::DictionaryAttr attributes(StringRef name, StringRef role);
  void setTensor(ValueId id, mlir::Value value, Dtype dtype, int input = -1);
  Error failure() { return errors.take(file.path); }

  mlir::MLIRContext &context;
  const ModelFile &file;
  const ImportOptions &options;
  ExternalFiles files;
  ErrorList errors;
  ImportedModel result;
  ImportState state;
  Graph graph;
  std::vector<bool> live;
  ExportMetadata exported;
  std::vector<InitializerPlan> plans;
  std::vector<Digest> digests;
  std::vector<TiedPair> tiedPairs;
  Binding binding;
  mlir::func::FuncOp function;
  SmallVector<mlir::DictionaryAttr> argumentAttrs;
};

} // namespace

RankedTensorType Importer::typeOf(ArrayRef<int64_t> shape, Dtype dtype) {
  return RankedTensorType::get(shape, elementType(&context, dtype));
}

mlir::DictionaryAttr Importer::attributes(StringRef name, StringRef role) {
  mlir::Builder &b = state.builder;
  return b.getDictionaryAttr(
      {b.getNamedAttr("espalier.name", b.getStringAttr(name)),
       b.getNamedAttr("espalier.role", b.getStringAttr(role))});
}

mlir::Location Importer::locationOf(const Node &node) {
  mlir::Location child = mlir::UnknownLoc::get(&context);
  if (!node.scope.empty())
    child = mlir::NameLoc::get(mlir::StringAttr::get(&context, node.scope));
  return mlir::NameLoc::get(mlir::StringAttr::get(&context, node.name), child);
}

void Importer::setTensor(ValueId id, mlir::Value value, Dtype dtype,
                         int input) {
  ImportedValue &entry = state.values[id];
  entry.kind = ImportedValue::Kind::Tensor;
  entry.dtype = dtype;
  entry.shape = Shape(NnBuilder::shapeOf(value));
  entry.value = value;
  entry.input = input;
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

void Importer::analyze() {
  graph = buildGraph(file, files, options.limits, errors);
  if (!errors.empty())
    return;
  result.remarks = graph.remarks;
  live = liveNodes(graph);
  checkOps(graph, live, errors);
  binding = bindInputs(graph, options, errors);
  exported = readExportMetadata(graph, file.model->graph());
  checkExportRewrites(graph, live, exported, options, errors, result.remarks);
  plans =
      planInitializers(graph, live, exported, options, errors, result.remarks);
  Expected<std::vector<Digest>> found = digestWeights(graph, files);
  if (!found) {
    errors.add(toString(found.takeError()));
    return;
  }
  digests = std::move(*found);
  for (const Initializer &initializer : graph.initializers) {
    result.weightsAbsent |=
        initializer.tensor.carrier == TensorInfo::Carrier::Absent;
    if (initializer.tensor.dtype == Dtype::String)
      errors.add("not supported: initializer " + quoted(initializer.name) +
                 " of strings");
  }
  tie();
  remarkCopies(graph, digests, plans, result.remarks);
}

void Importer::tie() {
  tiedPairs = findTiedPairs(graph, digests, options, errors);
  for (const TiedPair &pair : tiedPairs) {
    for (size_t i : {pair.kept, pair.other})
      if (plans[i].role != Role::Parameter)
        errors.add("tied: " + quoted(graph.initializers[i].name) +
                   (plans[i].role == Role::Alias
                        ? " is tied twice"
                        : " is not trained: " + plans[i].reason));
    plans[pair.other].role = Role::Alias;
    plans[pair.other].aliasOf = pair.kept;
  }
}

//===----------------------------------------------------------------------===//
// The function and its arguments
//===----------------------------------------------------------------------===//

void Importer::addArgument(mlir::Type type, StringRef name, StringRef role) {
  mlir::Location location =
      mlir::NameLoc::get(mlir::StringAttr::get(&context, name));
  state.body->addArgument(type, location);
  argumentAttrs.push_back(attributes(name, role));
}

void Importer::addInitializers(Role role, StringRef roleName) {
  for (size_t i = 0; i < plans.size(); ++i) {
    const Initializer &initializer = graph.initializers[i];
    if (plans[i].role != role)
      continue;
    Dtype dtype = initializer.tensor.dtype;
    RankedTensorType type = typeOf(initializer.tensor.shape, dtype);
    addArgument(type, initializer.name, roleName);
    setTensor(initializer.value, state.body->getArguments().back(), dtype);
    ImportedInitializer entry;
    entry.name = initializer.name.str();
    entry.role = roleName.str();
    entry.type = type;
    entry.source = weightSource(file, initializer, files);
    for (const TiedPair &pair : tiedPairs)
      if (pair.kept == i) {
        entry.alias = graph.initializers[pair.other].name.str();
        entry.aliasTransposed = pair.isTransposed;
      }
    result.initializers.push_back(std::move(entry));
  }
}

void Importer::addInputs() {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    Dtype dtype = binding.dtypes[i];
    addArgument(typeOf(binding.shapes[i], dtype), graph.inputs[i].name,
                "input");
    setTensor(graph.inputs[i].value, state.body->getArguments().back(), dtype,
              isFloating(dtype) ? -1 : int(i));
  }
  state.tableSizes.assign(graph.inputs.size(), -1);
  result.batch = binding.batch;
  addArgument(typeOf({binding.batch}, Dtype::Bool), "valid", "valid");
  state.valid = state.body->getArguments().back();
  addArgument(typeOf({3}, Dtype::Int64), "rng", "rng");
  state.rng = state.body->getArguments().back();
}

void Importer::defineConstants() {
  for (size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].role != Role::Constant)
      continue;
    const Initializer &initializer = graph.initializers[i];
    Expected<std::string> bytes = tensorBytes(initializer.tensor, files);
    if (!bytes) {
      errors.add("initializer " + quoted(initializer.name) + " " +
                 toString(bytes.takeError()));
      continue;
    }
    ImportedValue &entry = state.values[initializer.value];
    entry.kind = ImportedValue::Kind::Tensor;
    entry.dtype = initializer.tensor.dtype;
    entry.shape = initializer.tensor.shape;
    entry.constant = Constant::fromBytes(entry.dtype, entry.shape, *bytes);
  }
}

void Importer::defineAliases() {
  for (const TiedPair &pair : tiedPairs) {
    const Initializer &kept = graph.initializers[pair.kept];
    const Initializer &other = graph.initializers[pair.other];
    mlir::Value value = state.values[kept.value].value;
    if (!value)
      continue; // reported
    mlir::Location location =
        mlir::NameLoc::get(mlir::StringAttr::get(&context, other.name));
    NnBuilder nn(state.builder, location);
    if (pair.isTransposed)
      value = nn.transpose(value, {1, 0});
    setTensor(other.value, value, other.tensor.dtype);
  }
}

void Importer::makeFunction() {
  mlir::Location location =
      mlir::NameLoc::get(mlir::StringAttr::get(&context, file.name));
  result.module = mlir::ModuleOp::create(location);
  state.builder.setInsertionPointToEnd(result.module->getBody());
  function =
      mlir::func::FuncOp::create(state.builder, location, "forward",
                                 mlir::FunctionType::get(&context, {}, {}));
  state.body = new mlir::Block;
  function.getBody().push_back(state.body);
  state.values.resize(graph.valueNames.size());
  state.builder.setInsertionPointToEnd(state.body);
  addInitializers(Role::Parameter, "parameter");
  addInitializers(Role::Frozen, "frozen");
  addInitializers(Role::Buffer, "buffer");
  addInputs();
  defineConstants();
  defineAliases();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void Importer::checkDeclared(const Node &node) {
  for (ValueId output : node.outputs) {
    const proto::ValueInfoProto *declared = graph.declared[output];
    if (!declared)
      continue;
    std::string problem =
        contradiction(*declared, state.values[output], binding);
    if (!problem.empty())
      errors.add(nodeText(node) + ": result " +
                 quoted(graph.valueNames[output]) + " " + problem);
  }
}

void Importer::emitNode(const Node &node) {
  for (ValueId input : node.inputs)
    if (input != noValue &&
        state.values[input].kind == ImportedValue::Kind::Unknown)
      return; // what made it was reported
  bool takesSequence = StringRef(node.proto->op_type()).contains("Sequence") ||
                       node.proto->op_type() == "Identity";
  for (ValueId input : node.inputs)
    if (!takesSequence && input != noValue &&
        state.values[input].kind == ImportedValue::Kind::Sequence) {
      errors.add(nodeText(node) + ": expects a tensor, but got a sequence");
      return;
    }
  NodeContext node_(state, node, locationOf(node));
  node.op->handle(node_);
  if (!node_.failed())
    checkDeclared(node);
}

void Importer::emitNodes() {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (live[i])
      emitNode(graph.nodes[i]);
}

void Importer::eraseUnused() {
  for (mlir::Operation &op :
       llvm::make_early_inc_range(llvm::reverse(*state.body)))
    if (op.use_empty() && !op.hasTrait<mlir::OpTrait::IsTerminator>())
      op.erase();
}

void Importer::finishFunction() {
  SmallVector<mlir::Value> values;
  SmallVector<mlir::DictionaryAttr> resultAttrs;
  state.builder.setInsertionPointToEnd(state.body);
  for (const GraphInput &output : graph.outputs) {
    const ImportedValue &value = state.values[output.value];
    if (value.kind != ImportedValue::Kind::Tensor) {
      errors.add("output " + quoted(output.name) + " is no tensor");
      return;
    }
    std::string problem = contradiction(*output.info, value, binding);
    if (!problem.empty())
      errors.add("output " + quoted(output.name) + " " + problem);
    mlir::Location location =
        mlir::NameLoc::get(mlir::StringAttr::get(&context, output.name));
    Node none;
    NodeContext context(state, none, location);
    values.push_back(context.materialize(value));
    resultAttrs.push_back(attributes(output.name, "output"));
    result.outputs.push_back(output.name.str());
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    const Initializer &initializer = graph.initializers[i];
    if (plans[i].role != Role::Buffer)
      continue;
    mlir::Value updated = state.updatedBuffers.lookup(initializer.value);
    values.push_back(updated ? updated : state.values[initializer.value].value);
    resultAttrs.push_back(attributes(initializer.name, "buffer"));
  }
  mlir::func::ReturnOp::create(state.builder, function.getLoc(), values);
  function.setType(mlir::FunctionType::get(
      &context, state.body->getArgumentTypes(), mlir::TypeRange(values)));
  function.setAllArgAttrs(argumentAttrs);
  function.setAllResultAttrs(resultAttrs);
  eraseUnused();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void Importer::collectInputs() {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    ImportedInput input;
    input.name = graph.inputs[i].name.str();
    input.type = typeOf(binding.shapes[i], binding.dtypes[i]);
    if (state.tableSizes[i] >= 0)
      input.range = {0, state.tableSizes[i]};
    result.inputs.push_back(std::move(input));
  }
  for (size_t i = 0; i < plans.size(); ++i)
    if (!plans[i].reason.empty())
      result.untrained.push_back(
          {graph.initializers[i].name.str(), plans[i].reason});
}

/// Name of the ONNX node that a location is of.
static std::string nodeName(mlir::Location location) {
  if (auto name = dyn_cast<mlir::NameLoc>(location))
    return quoted(name.getName().getValue());
  return "?";
}

void Importer::recognize() {
  auto found = tidyImported(function);
  if (mlir::failed(found)) {
    result.remarks.push_back("recognition of layers did not come to an end");
    return;
  }
  for (const MissedAttention &missed : found->missed)
    result.remarks.push_back("node " + nodeName(missed.location) +
                             ": not recognized as attention: " + missed.reason);
}

/// What importing made must be valid; anything else is a fault of this library,
/// which is said as such instead of being compiled.
Error Importer::verify() {
  std::string text;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        raw_string_ostream(text)
            << diagnostic.getLocation() << ": " << diagnostic.str() << "; ";
        return mlir::success();
      });
  if (mlir::succeeded(mlir::verify(*result.module)))
    return Error::success();
  return createStringError(errc::invalid_argument,
                           "%s: internal error of the importer: %s",
                           file.path.c_str(), text.c_str());
}

Expected<ImportedModel> Importer::run() {
  analyze();
  if (!errors.empty())
    return failure();
  makeFunction();
  emitNodes();
  if (!errors.empty())
    return failure();
  finishFunction();
  if (!errors.empty())
    return failure();
  if (Error error = verify())
    return std::move(error);
  if (options.recognize)
    recognize();
  collectInputs();
  result.directory = file.directory;
  result.fingerprint = fingerprint(file, digests);
  if (Error error = verify())
    return std::move(error);
  return std::move(result);
}

} // namespace onnx

Expected<ImportedModel> importOnnx(mlir::MLIRContext &context, StringRef path,
                                   const ImportOptions &options) {
  context.loadDialect<nn::NnDialect, mlir::func::FuncDialect,
                      mlir::arith::ArithDialect, mlir::math::MathDialect>();
  Expected<onnx::ModelFile> file = onnx::readModelFile(path, options.limits);
  if (!file)
    return file.takeError();
  return onnx::Importer(context, *file, options).run();
}

} // namespace espalier
