//===- GenerateObject.cpp - LLVM IR to machine code -----------------------===//

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <chrono>
#include <mutex>

#include "CodeGen.h"

using namespace llvm;
using namespace espalier;
using namespace espalier::cpu;

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

struct Cpu {
  std::string name, features;
};

} // namespace

static Cpu resolveCpu(const CompileOptions &options) {
  if (options.cpu != "host")
    return {options.cpu, options.features};
  std::string features;
  for (auto &[feature, has] : sys::getHostCPUFeatures())
    features += (features.empty() ? "" : ",") + std::string(has ? "+" : "-") +
                feature.str();
  if (!options.features.empty())
    features += "," + options.features;
  return {sys::getHostCPUName().str(), features};
}

static Expected<std::unique_ptr<TargetMachine>>
makeTarget(Module &module, const CompileOptions &options, const Cpu &cpu) {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
  });
  Triple triple = module.getTargetTriple();
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError(error);
  TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = FPOpFusion::Standard;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, cpu.name, cpu.features, targetOptions, Reloc::PIC_, std::nullopt,
      options.optimization == 0 ? CodeGenOptLevel::None
                                : CodeGenOptLevel::Aggressive));
  if (!machine)
    return createStringError("LLVM does not know the cpu '" + cpu.name + "'");
  return machine;
}

/// All functions for one CPU. Vectors are as wide as it has them.
static void setFunctionAttributes(Module &module, const Cpu &cpu) {
  bool wide = StringRef(cpu.features).contains("+avx512f");
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", cpu.name);
    function.addFnAttr("target-features", cpu.features);
    function.addFnAttr("prefer-vector-width", wide ? "512" : "256");
    function.addFnAttr(Attribute::NoUnwind);
  }
}

static void optimize(Module &module, TargetMachine &machine, unsigned level) {
  PassBuilder builder(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  static const OptimizationLevel levels[] = {
      OptimizationLevel::O0, OptimizationLevel::O1, OptimizationLevel::O2,
      OptimizationLevel::O3};
  OptimizationLevel chosen = levels[std::min(level, 3u)];
  ModulePassManager passes =
      chosen == OptimizationLevel::O0
          ? builder.buildO0DefaultPipeline(chosen)
          : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, modules);
}

static Error emitFile(Module &module, TargetMachine &machine,
                      CodeGenFileType type, std::string &bytes) {
  SmallVector<char> buffer;
  raw_svector_ostream stream(buffer);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return createStringError("LLVM cannot write object files for this cpu");
  passes.run(module);
  bytes.assign(buffer.begin(), buffer.end());
  return Error::success();
}

/// Collects what the optimizer says of loops that it was told to vectorize and
/// could not; else it would be printed.
static void collectScalarLoops(const DiagnosticInfo *info, void *object) {
  if (info->getKind() == DK_OptimizationFailure) {
    auto *failure = cast<DiagnosticInfoOptimizationFailure>(info);
    static_cast<CompiledObject *>(object)->scalarLoops.push_back(
        failure->getFunction().getName().str() + ": " + failure->getMsg());
  } else if (info->getSeverity() == DS_Error) {
    DiagnosticPrinterRawOStream printer(errs());
    info->print(printer);
    errs() << "\n";
  }
}

Error cpu::generateObject(Module &module, const CompileOptions &options,
                          CompiledObject &object) {
  double start = now();
  module.getContext().setDiagnosticHandlerCallBack(collectScalarLoops, &object);
  Cpu cpu = resolveCpu(options);
  auto machine = makeTarget(module, options, cpu);
  if (!machine)
    return machine.takeError();
  module.setDataLayout((*machine)->createDataLayout());
  module.setPICLevel(PICLevel::BigPIC);
  module.setPIELevel(PIELevel::Large);
  setFunctionAttributes(module, cpu);
  optimize(module, **machine, options.optimization);
  object.optimizeSeconds = now() - start;
  if (options.keepLlvm)
    raw_string_ostream(object.llvm) << module;
  if (options.keepAssembly) {
    auto copy = CloneModule(module);
    if (Error error = emitFile(*copy, **machine, CodeGenFileType::AssemblyFile,
                               object.assembly))
      return error;
  }
  start = now();
  Error error =
      emitFile(module, **machine, CodeGenFileType::ObjectFile, object.object);
  object.codegenSeconds = now() - start;
  return error;
}
