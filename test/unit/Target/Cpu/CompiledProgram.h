//===- CompiledProgram.h - A compiled program in the test's process -*- C++
//-*-===//
//
// Compiles a module's text, loads the object with a runtime of its own (naive
// products, collectives of one rank), and runs its functions on tensors by
// name.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_TEST_UNIT_TARGET_CPU_COMPILEDPROGRAM_H
#define ESPALIER_TEST_UNIT_TARGET_CPU_COMPILEDPROGRAM_H

#include "espalier/Target/Cpu.h"
#include "espalier/runtime/abi.h"

#include "gtest/gtest.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string>
#include <vector>

#include "TestRuntime.h"

namespace espalier::test {

class CompiledProgram {
public:
  /// `text` is a module with @first and @update. Test failures say what went
  /// wrong; the object is then unusable (ok() is false).
  explicit CompiledProgram(const std::string &text,
                           cpu::CompileOptions options = {});
  /// A program whose @first is a function of `arguments` (role input), named
  /// a0, a1, ..., with results (role output) r0, r1, ...: `signature` as in
  /// "(%x: tensor<4xf32>) -> tensor<4xf32>", `body` with its return.
  static CompiledProgram ofBody(const std::vector<std::string> &argumentTypes,
                                const std::vector<std::string> &resultTypes,
                                const std::string &body);

  bool ok() const { return program != nullptr; }
  void run(const std::string &function);

  template <typename T>
  T *data(const std::string &name, const std::string &role, int32_t rank = 0) {
    return reinterpret_cast<T *>(world->arena(rank) + offsetOf(name, role));
  }
  int64_t elements(const std::string &name, const std::string &role) const;

  mlir::ModuleOp module() { return *source; }
  int32_t rankCount() const { return world->rankCount(); }

  cpu::CompiledObject object;

private:
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  mlir::OwningOpRef<mlir::ModuleOp> source;
  uint64_t offsetOf(const std::string &name, const std::string &role) const;

  std::unique_ptr<llvm::orc::LLJIT> jit;
  const EspalierProgram *program = nullptr;
  std::unique_ptr<World> world;
};

/// Numbers in [-1, 1), the same each time.
void fillRandom(float *data, int64_t count, unsigned seed);

} // namespace espalier::test

#endif // ESPALIER_TEST_UNIT_TARGET_CPU_COMPILEDPROGRAM_H
