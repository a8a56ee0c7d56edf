//===- Commands.cpp - Job in, plan, proof or binary out -------------------===//

#include "espalier/Partition/PartitionModule.h"
#include "espalier/Schedule/Schedule.h"
#include "espalier/Target/Cpu.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#include "Metadata.h"
#include "Session.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::driver;

static std::string seconds(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.2f s", value);
  return text;
}

static std::string bytes(double value) {
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
  unsigned unit = 0;
  for (; value >= 1000 && unit < 4; ++unit)
    value /= 1000;
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format(unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

/// Says what a job was understood to be.
static void printPlan(const Session &session) {
  const ResolvedLayout &layout = session.layout;
  int64_t parameters = 0, tensors = 0;
  for (const ImportedInitializer &initializer : session.model.initializers)
    if (initializer.role == "parameter") {
      parameters += initializer.type.getNumElements();
      ++tensors;
    }
  llvm::raw_ostream &out = session.streams.out;
  out << "model   " << session.job.model << ": " << parameters
      << " trained values in " << tensors << " tensors\n"
      << "layout  dp = " << layout.replicas << " (" << layout.replicas
      << (layout.replicas == 1 ? " device" : " devices") << ")\n"
      << "step    " << session.job.train.globalBatch
      << " samples = " << layout.microBatches << " x " << layout.replicas
      << " x " << layout.microBatch << " (microbatches x replicas x samples)";
  int64_t slots = layout.microBatches * layout.logicalMicroBatch();
  if (slots > session.job.train.globalBatch)
    out << ", " << slots - session.job.train.globalBatch
        << " of them padding, which does not count";
  out << "\n";
}

static void printProof(const Session &session) {
  const Proof &proof = session.proof;
  session.streams.out << "proof   " << proof.devices
                      << " virtual ranks compute what one device does: "
                      << proof.result.comparedValues << " tensors, "
                      << proof.result.comparedElements
                      << " elements, worst difference "
                      << llvm::format("%.2g", proof.result.worst)
                      << " of the rounding bound ("
                      << (proof.shrunk ? "at small sizes, " : "")
                      << seconds(proof.seconds) << ")\n";
}

//===----------------------------------------------------------------------===//
// import
//===----------------------------------------------------------------------===//

int driver::runImport(const ImportCommand &command, const Streams &streams) {
  MLIRContext context;
  ImportOptions options;
  options.dims = command.dims;
  options.allowUnused = command.allowUnused;
  // A file alone does not say how it is trained: it is shown as it is, and what
  // its exporter did to the weights is told, not refused.
  options.batchNorm = BatchNormMode::Frozen;
  options.acceptExportRewrites = true;
  auto model = importOnnx(context, command.model, options);
  if (!model) {
    streams.err << llvm::toString(model.takeError()) << "\n";
    return InputAtFault;
  }
  if (!command.output.empty()) {
    std::error_code error;
    llvm::ToolOutputFile file(command.output, error, llvm::sys::fs::OF_Text);
    if (error) {
      streams.err << command.output << ": " << error.message() << "\n";
      return InputAtFault;
    }
    OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(64);
    model->module->print(file.os(), flags.enableDebugInfo(true));
    file.keep();
    if (command.output == "-")
      return Done;
  }
  printRemarks(*model, streams);
  int64_t ops = 0;
  model->module->walk([&](Operation *) { ++ops; });
  streams.out << command.model << ": " << model->inputs.size() << " inputs, "
              << model->initializers.size() << " initializers, " << ops
              << " ops\n";
  return Done;
}

//===----------------------------------------------------------------------===//
// plan
//===----------------------------------------------------------------------===//

int driver::runPlan(const PlanCommand &command, const Streams &streams) {
  Session session(streams);
  if (!session.load(command.job) || !session.import() || !session.build())
    return session.status;
  printPlan(session);
  if (command.output.empty())
    return Done;
  std::error_code error;
  llvm::ToolOutputFile file(command.output, error, llvm::sys::fs::OF_Text);
  if (error) {
    streams.err << command.output << ": " << error.message() << "\n";
    return InputAtFault;
  }
  writePlan(session.plan(), file.os());
  file.keep();
  return Done;
}

//===----------------------------------------------------------------------===//
// verify
//===----------------------------------------------------------------------===//

int driver::runVerify(const VerifyCommand &command, const Streams &streams) {
  Session session(streams);
  if (!session.load(command.job) || !session.import())
    return session.status;
  printPlan(session);
  if (!command.plan.empty() &&
      (!session.build() || !session.holdTo(command.plan)))
    return session.status;
  bool proven = command.program.empty()
                    ? session.verify()
                    : session.verifyProgram(command.program);
  if (!proven)
    return session.status;
  printProof(session);
  return Done;
}

//===----------------------------------------------------------------------===//
// compile
//===----------------------------------------------------------------------===//

/// Fails where the program does not fit the memory that the job allows.
static bool fits(Session &session, const memory::MemoryPlan &plan) {
  const MemoryJob &memory = session.job.memory;
  if (!memory.limit)
    return true;
  double allowed = *memory.limit * (1 - memory.reserve.value_or(0));
  if (double(plan.arenaBytes) <= allowed)
    return true;
  std::vector<memory::PlannedTensor> largest = plan.tensors;
  llvm::sort(largest,
             [](const auto &a, const auto &b) { return a.bytes > b.bytes; });
  std::string message =
      session.job.path + ": key 'memory.limit': a rank needs " +
      bytes(plan.arenaBytes) + ", but may have " + bytes(allowed) + "; of it " +
      bytes(plan.arenaBytes - plan.persistentBytes) +
      " are activations. The largest tensors:";
  for (const auto &tensor : llvm::ArrayRef(largest).take_front(5))
    message +=
        "\n  " + bytes(tensor.bytes) + "  " + tensor.role + " " + tensor.name;
  return session.fail(Infeasible, message);
}

static FailureOr<cpu::CompiledObject> compileProgram(Session &session,
                                                     const std::string &cpu) {
  OwningOpRef<ModuleOp> scheduled = session.program.partitioned->clone();
  for (auto function : scheduled->getOps<func::FuncOp>())
    combineAllReduces(function);
  if (failed(scheduleModule(*scheduled, session.layout.microBatches)))
    return failure();
  cpu::CompileOptions options;
  options.cpu = cpu;
  options.metadata = [&](const cpu::ProgramLayout &layout) {
    return buildMetadata(session, layout);
  };
  return cpu::compileToObject(*scheduled, options);
}

static void printMemory(const Session &session,
                        const memory::MemoryPlan &plan) {
  double gap = plan.boundBytes
                   ? 100.0 * (double(plan.arenaBytes) / plan.boundBytes - 1)
                   : 0;
  session.streams.out << "memory  " << bytes(plan.arenaBytes)
                      << " a rank: " << bytes(plan.persistentBytes)
                      << " of parameters, state, gradients and inputs, "
                      << bytes(plan.arenaBytes - plan.persistentBytes)
                      << " of activations (" << llvm::format("%.1f", gap)
                      << " % above the bound)\n";
}

/// Links beside the output and renames, so that a failure leaves nothing
/// behind.
static bool writeBinary(Session &session, const cpu::CompiledObject &object,
                        const std::string &output) {
  std::string temporary = output + ".part";
  if (llvm::Error error = cpu::linkBinary(object, temporary)) {
    llvm::sys::fs::remove(temporary);
    return session.fail(InputAtFault, llvm::toString(std::move(error)));
  }
  if (std::error_code error = llvm::sys::fs::rename(temporary, output)) {
    llvm::sys::fs::remove(temporary);
    return session.fail(InputAtFault, output + ": " + error.message());
  }
  return true;
}

int driver::runCompile(const CompileCommand &command, const Streams &streams) {
  Clock clock;
  Session session(streams);
  if (command.target != "cpu") {
    streams.err << "not supported: target '" << command.target
                << "'; supported is 'cpu'\n";
    return InputAtFault;
  }
  if (!session.load(command.job) || !session.import())
    return session.status;
  Messages messages;
  checkSources(session, messages);
  if (!messages.empty()) {
    streams.err << messages.text() << "\n";
    return InputAtFault;
  }
  printPlan(session);
  if (!session.verify())
    return session.status;
  printProof(session);
  if (!session.build() ||
      (!command.plan.empty() && !session.holdTo(command.plan)))
    return session.status;
  auto object = compileProgram(session, command.cpu);
  if (failed(object)) {
    session.failCompilation();
    return session.status;
  }
  printMemory(session, object->layout.memory);
  if (!fits(session, object->layout.memory) ||
      !writeBinary(session, *object, command.output))
    return session.status;
  streams.out << "binary  " << command.output << " ("
              << seconds(clock.seconds()) << ")\n";
  return Done;
}
