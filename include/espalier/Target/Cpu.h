//===- Cpu.h - Scheduled programs to object files and binaries --*- C++ -*-===//
//
// The cpu target. Takes a `scheduled` module: functions @first, @next and
// @update of nn ops on local shapes and dist collectives, whose arguments and
// results have names and roles. Gives an object file that defines
// `espalierProgram` (espalier/runtime/abi.h), and links it with the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_TARGET_CPU_H
#define ESPALIER_TARGET_CPU_H

#include "espalier/Memory/MemoryPlan.h"

#include "llvm/Support/Error.h"
#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>
#include <vector>

namespace espalier::cpu {

/// What the program's metadata must say of the compiled code.
struct ProgramLayout {
  memory::MemoryPlan memory;
  /// Descriptions of the ops that marks and collectives name.
  std::vector<std::string> ops;
  /// Lists of ranks.
  std::vector<std::vector<int32_t>> groups;
  /// Whether the program calls espalierRtGemm, and so needs its library.
  bool callsGemm = false;
};

struct CompileOptions {
  /// LLVM's name of the CPU, or "host", whose features are then the host's.
  std::string cpu = "host";
  /// LLVM's list of features ("+avx2,-avx512f"), added to the CPU's own.
  std::string features;
  /// 0 to 3.
  unsigned optimization = 3;
  /// The metadata of the program, a JSON text.
  std::function<std::string(const ProgramLayout &)> metadata;
  /// Keep texts for inspection in CompiledObject.
  bool keepRt = false, keepLlvm = false, keepAssembly = false;
};

struct CompiledObject {
  std::string object; // the bytes of an ELF file
  ProgramLayout layout;
  std::string rt, llvm, assembly; // where asked for
  /// Contiguous loops that did not become vector code, with the reason.
  std::vector<std::string> scalarLoops;
  /// Seconds in fusing and lowering, emitting LLVM IR, optimizing, and
  /// generating machine code.
  double lowerSeconds = 0, emitSeconds = 0, optimizeSeconds = 0,
         codegenSeconds = 0;
};

/// Compiles a scheduled module, which it leaves as it is. The module's mesh
/// (dist.mesh), if it has one, says how many ranks there are. Diagnostics on
/// the module's ops say what cannot be compiled.
mlir::FailureOr<CompiledObject> compileToObject(mlir::ModuleOp scheduled,
                                                const CompileOptions &options);

/// Fuses and lowers to the rt dialect: a new module with the same functions
/// without arguments, and what the layout is. compileToObject does this first.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
lowerToRt(mlir::ModuleOp scheduled, ProgramLayout &layout);

/// Merges elementwise ops where that saves passes over memory, folds them into
/// products and reductions; from nn to nn.
void fuseElementwise(mlir::func::FuncOp function);

struct LinkOptions {
  /// The folder of libEspalierRuntimeMain.a; empty: beside the running tool
  /// (../lib, ../runtime), or where the build put it.
  std::string runtimeDirectory;
  std::vector<std::string> libraries; // more archives, with their paths
};

/// Links an object with the runtime into the executable `path`. Errors name
/// what is missing, or hold the linker's output.
llvm::Error linkBinary(const CompiledObject &object, llvm::StringRef path,
                       const LinkOptions &options = {});

} // namespace espalier::cpu

#endif // ESPALIER_TARGET_CPU_H
