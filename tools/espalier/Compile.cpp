//===- Compile.cpp - espalier import, plan, verify, compile
//---------------------===//

#include "espalier/Driver/Driver.h"

#include "CommandLine.h"
#include "Commands.h"

using namespace llvm;
using namespace espalier;

static driver::Streams streams() { return {outs(), errs()}; }

/// Reads `batch=8` into `dims`.
static bool readDim(StringRef text, std::map<std::string, int64_t> &dims) {
  auto [name, size] = text.split('=');
  int64_t value;
  if (name.empty() || size.getAsInteger(10, value) || value < 1)
    return false;
  dims[name.str()] = value;
  return true;
}

int espalier::runImport(ArrayRef<StringRef> words) {
  std::vector<std::string> models, dims;
  std::optional<std::string> output;
  driver::ImportCommand command;
  CommandLine line(
      "import", "model.onnx [--dim batch=8 ...] [-o model.mlir]",
      "Reads an ONNX model into the compiler's form, and lists what "
      "is not supported");
  line.arguments(models, 1, 1, "a model");
  line.repeated("--dim", dims, "NAME=SIZE", "binds a symbolic dimension");
  line.option("-o", output, "F",
              "writes the program as text; - for the terminal");
  line.flag("--allow-unused", command.allowUnused,
            "accepts initializers that nothing uses");
  if (std::optional<int> status = line.parse(words))
    return *status;
  for (const std::string &dim : dims)
    if (!readDim(dim, command.dims)) {
      errs() << "espalier import: option '--dim' expects NAME=SIZE, but got '"
             << dim << "'\n";
      return WrongUsage;
    }
  command.model = models.front();
  command.output = output.value_or("");
  return driver::runImport(command, streams());
}

int espalier::runPlan(ArrayRef<StringRef> words) {
  std::vector<std::string> jobs;
  std::optional<std::string> output;
  CommandLine line("plan", "job.yaml [-o plan.yaml]",
                   "Says how a job is laid out on its devices");
  line.arguments(jobs, 1, 1, "a job");
  line.option("-o", output, "F", "writes the plan; - for the terminal");
  if (std::optional<int> status = line.parse(words))
    return *status;
  return driver::runPlan({jobs.front(), output.value_or("")}, streams());
}

int espalier::runVerify(ArrayRef<StringRef> words) {
  std::vector<std::string> jobs;
  std::optional<std::string> plan, program;
  CommandLine line(
      "verify", "job.yaml [--plan plan.yaml] [--program F.mlir]",
      "Proves that all ranks together compute what one device would");
  line.arguments(jobs, 1, 1, "a job");
  line.option("--plan", plan, "F", "holds the job to this plan");
  line.option("--program", program, "F",
              "checks this partitioned program in place of the compiler's own");
  if (std::optional<int> status = line.parse(words))
    return *status;
  return driver::runVerify(
      {jobs.front(), plan.value_or(""), program.value_or("")}, streams());
}

int espalier::runCompile(ArrayRef<StringRef> words) {
  std::vector<std::string> jobs;
  std::optional<std::string> output, plan, target, cpu;
  CommandLine line("compile",
                   "job.yaml [--plan plan.yaml] [--target cpu] [--cpu NAME] "
                   "-o train",
                   "Compiles a job into a training binary");
  line.arguments(jobs, 1, 1, "a job");
  line.required("-o", output, "F", "the binary");
  line.option("--plan", plan, "F", "holds the job to this plan");
  line.option("--target", target, "T", "what to run on: cpu (default)");
  line.option("--cpu", cpu, "NAME",
              "the processor, as LLVM names it (default: this machine's)");
  if (std::optional<int> status = line.parse(words))
    return *status;
  return driver::runCompile({jobs.front(), plan.value_or(""), *output,
                             target.value_or("cpu"), cpu.value_or("host")},
                            streams());
}
