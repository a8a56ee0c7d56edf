//===- Session.cpp - From a job to a program, step by step ----------------===//

#include "Session.h"

#include "dialects/Dist/Dist.h"
#include "espalier/Autodiff/Autodiff.h"
#include "espalier/Partition/PartitionModule.h"
#include "espalier/Verify/PlanChecker.h"
#include "espalier/Verify/Shrink.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::driver;

/// Where an op comes from, in the model's terms.
static std::string describeLocation(Location location) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto name = dyn_cast<NameLoc>(location))
    os << "node '" << name.getName().getValue() << "'";
  else if (auto fused = dyn_cast<FusedLoc>(location);
           fused && !fused.getLocations().empty())
    return describeLocation(fused.getLocations().front());
  else
    os << location;
  return text;
}

Session::Session(const Streams &streams) : streams(streams) {
  handler.emplace(&context, [this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      diagnostics.add(describeLocation(diagnostic.getLocation()) + ": " +
                      diagnostic.str());
    return success();
  });
}

bool Session::fail(ExitStatus failure, const std::string &message) {
  status = failure;
  streams.err << message << "\n";
  return false;
}

bool Session::failWithDiagnostics(ExitStatus failure, const std::string &what) {
  std::string text = what;
  for (const std::string &line : diagnostics.all())
    text += "\n  " + line;
  return fail(failure, text);
}

void Session::failCompilation() {
  failWithDiagnostics(InputAtFault, job.resolve(job.model) +
                                        ": the program cannot be compiled:");
}

bool Session::load(const std::string &jobPath) {
  Messages messages;
  std::optional<Job> read = readJob(jobPath, messages);
  if (!read)
    return fail(InputAtFault, messages.text());
  job = std::move(*read);
  switch (resolveLayout(job, layout, messages)) {
  case LayoutFault::None:
    return true;
  case LayoutFault::NotSupported:
    return fail(InputAtFault, messages.text());
  case LayoutFault::Infeasible:
    return fail(Infeasible, messages.text());
  }
  llvm_unreachable("all faults are handled");
}

ImportOptions Session::importOptions() const {
  ImportOptions options;
  options.dims = job.dims;
  options.dims["batch"] = layout.logicalMicroBatch();
  options.frozen = job.train.frozen;
  options.trained = job.train.trained;
  options.tied = job.train.tied;
  if (job.train.batchNormTrains)
    options.batchNorm = *job.train.batchNormTrains ? BatchNormMode::Train
                                                   : BatchNormMode::Frozen;
  options.acceptExportRewrites = job.train.acceptExportRewrites;
  return options;
}

void driver::printRemarks(const ImportedModel &model, const Streams &streams) {
  for (const std::string &remark : model.remarks)
    streams.out << "remark: " << remark << "\n";
  llvm::MapVector<StringRef, SmallVector<StringRef>> byReason;
  for (const Untrained &tensor : model.untrained)
    byReason[tensor.reason].push_back(tensor.name);
  for (const auto &[reason, names] : byReason)
    streams.out << "not trained: " << llvm::join(names, ", ") << ": " << reason
                << "\n";
}

bool Session::import() {
  auto imported = importOnnx(context, job.resolve(job.model), importOptions());
  if (!imported)
    return fail(InputAtFault, llvm::toString(imported.takeError()));
  model = std::move(*imported);
  printRemarks(model, streams);
  bool trains = llvm::any_of(model.initializers,
                             [](const ImportedInitializer &initializer) {
                               return initializer.role == "parameter";
                             });
  if (!trains)
    return fail(InputAtFault, job.path +
                                  ": key 'train': nothing is trained: all "
                                  "initializers are frozen");
  context.loadDialect<dist::DistDialect>();
  return true;
}

/// The job's section `train` in the words of lib/Autodiff.
static TrainingOptions trainingOptions(const TrainJob &train) {
  TrainingOptions options;
  options.loss.kind = LossOptions::Kind(int(train.loss.kind));
  options.loss.output = train.loss.prediction;
  options.loss.target = train.loss.target;
  options.loss.weight = train.loss.weight;
  options.loss.ignoreIndex = train.loss.ignoreIndex;
  options.optimizer.kind = OptimizerOptions::Kind(int(train.optimizer.kind));
  options.optimizer.learningRate = train.optimizer.learningRate;
  options.optimizer.weightDecay = train.optimizer.weightDecay;
  options.optimizer.beta1 = train.optimizer.beta1;
  options.optimizer.beta2 = train.optimizer.beta2;
  options.optimizer.epsilon = train.optimizer.epsilon;
  options.optimizer.momentum = train.optimizer.momentum;
  options.optimizer.dampening = train.optimizer.dampening;
  options.optimizer.nesterov = train.optimizer.nesterov;
  options.schedule.kind = ScheduleOptions::Kind(int(train.schedule.kind));
  options.schedule.warmupSteps = train.schedule.warmupSteps;
  options.schedule.totalSteps = train.schedule.totalSteps.value_or(0);
  options.schedule.minLearningRate = train.schedule.minimumLearningRate;
  options.gradientClip = train.gradientClip.value_or(0);
  return options;
}

static void addMesh(ModuleOp module, const Mesh &mesh) {
  OpBuilder builder(module.getBodyRegion());
  SmallVector<Attribute> axes;
  for (const MeshAxis &axis : mesh.axes)
    axes.push_back(dist::MeshAxisAttr::get(module.getContext(), axis.name,
                                           axis.size, axis.link));
  dist::MeshOp::create(builder, module.getLoc(), "mesh",
                       builder.getArrayAttr(axes));
}

LogicalResult Session::buildProgram(ModuleOp forward,
                                    const ResolvedLayout &sizes,
                                    Program &result, bool number) {
  result.whole = forward.clone();
  if (failed(buildTrainingStep(*result.whole, trainingOptions(job.train))))
    return failure();
  if (number)
    numberOps(*result.whole);
  result.planned = result.whole->clone();
  addMesh(*result.planned, sizes.mesh);
  if (failed(shardTrainingProgram(*result.planned, sizes.training)) ||
      failed(checkPlan(*result.planned)))
    return failure();
  result.partitioned = result.planned->clone();
  return partitionModule(*result.partitioned);
}

bool Session::build() {
  if (failed(buildProgram(*model.module, layout, program, /*number=*/false)))
    return failWithDiagnostics(InputAtFault,
                               job.resolve(job.model) +
                                   ": the model cannot be trained so:");
  auto grad = ModuleOp(program.whole.get()).lookupSymbol<func::FuncOp>("grad");
  int64_t slots = layout.microBatches * layout.logicalMicroBatch();
  if (grad->hasAttr(countsInvalidAttribute) && slots > job.train.globalBatch)
    return fail(
        InputAtFault,
        job.path +
            ": key 'train.loss': not supported: the model sums its loss "
            "itself, padding included, and a step of " +
            std::to_string(job.train.globalBatch) + " samples has " +
            std::to_string(slots - job.train.globalBatch) +
            " of it; choose dims.batch and devices that divide the "
            "global batch, or an output with a value per sample");
  return true;
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Builds the program at small sizes: fewer devices, two samples for each, and
/// every other dimension shrunk.
bool Session::buildShrunk(Program &shrunk, ResolvedLayout &small, bool shrink) {
  small = layout;
  constexpr int64_t mostDevices = 4;
  if (small.replicas > mostDevices)
    small.replicas = small.mesh.axes[0].size = 3;
  small.microBatch = std::min<int64_t>(2, layout.microBatch);
  OwningOpRef<ModuleOp> forward = model.module->clone();
  if (shrink) {
    ShrinkOptions options{small.logicalMicroBatch()};
    auto function = forward->lookupSymbol<func::FuncOp>("forward");
    if (failed(shrinkFunction(function, options)))
      return false;
  } else {
    small = layout;
  }
  return succeeded(buildProgram(*forward, small, shrunk, /*number=*/true));
}

bool Session::verify() {
  Clock clock;
  Program shrunk;
  ResolvedLayout small;
  if (!buildShrunk(shrunk, small, /*shrink=*/true)) {
    streams.out << "remark: the program is verified at its own sizes, since it "
                   "could not be shrunk: "
                << (diagnostics.empty() ? "" : diagnostics.all().front())
                << "\n";
    proof.shrunk = false;
    shrunk = {};
    if (!buildShrunk(shrunk, small, /*shrink=*/false))
      return failWithDiagnostics(InputAtFault, "the program cannot be built:");
  }
  auto result = compareWithSingleDevice(*shrunk.whole, *shrunk.planned,
                                        *shrunk.partitioned);
  if (failed(result))
    return failWithDiagnostics(InputAtFault, "the program cannot be verified:");
  proof.result = *result;
  proof.devices = small.mesh.deviceCount();
  proof.seconds = clock.seconds();
  if (!proof.result.equivalent)
    return fail(NotEquivalent,
                "not equivalent to one device: " + proof.result.difference);
  return true;
}

bool Session::verifyProgram(const std::string &path) {
  auto given = parseSourceFile<ModuleOp>(path, &context);
  if (!given)
    return failWithDiagnostics(InputAtFault, path + ": not a program:");
  Program own;
  if (failed(buildProgram(*model.module, layout, own, /*number=*/false)))
    return failWithDiagnostics(InputAtFault, "the program cannot be built:");
  auto result = compareWithSingleDevice(*own.whole, *own.planned, *given);
  if (failed(result))
    return failWithDiagnostics(InputAtFault, path + ": cannot be run:");
  proof.result = *result;
  proof.shrunk = false;
  proof.devices = layout.mesh.deviceCount();
  if (!proof.result.equivalent)
    return fail(NotEquivalent, path + ": not equivalent to one device: " +
                                   proof.result.difference);
  return true;
}
