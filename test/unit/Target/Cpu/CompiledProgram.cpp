//===- CompiledProgram.cpp - A compiled program in the test's process -----===//

#include "CompiledProgram.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

#include <random>

using namespace espalier;
using namespace espalier::test;

//===----------------------------------------------------------------------===//
// CompiledProgram
//===----------------------------------------------------------------------===//

CompiledProgram::CompiledProgram(const std::string &text,
                                 cpu::CompileOptions options) {
  mlir::DialectRegistry registry;
  registry.insert<nn::NnDialect, dist::DistDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect, mlir::func::FuncDialect>();
  mlirContext = std::make_unique<mlir::MLIRContext>(
      registry, mlir::MLIRContext::Threading::DISABLED);
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(text, mlirContext.get());
  if (!module) {
    ADD_FAILURE() << "cannot parse\n" << text;
    return;
  }
  source = std::move(module);
  auto compiled = cpu::compileToObject(*source, options);
  if (mlir::failed(compiled)) {
    ADD_FAILURE() << "cannot compile\n" << text;
    return;
  }
  object = std::move(*compiled);
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  llvm::cantFail(defineRuntime(*jit));
  jit->getMainJITDylib().addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
          jit->getDataLayout().getGlobalPrefix())));
  llvm::cantFail(jit->addObjectFile(
      llvm::MemoryBuffer::getMemBufferCopy(object.object, "object")));
  auto address = jit->lookup("espalierProgram");
  if (!address) {
    ADD_FAILURE() << llvm::toString(address.takeError());
    return;
  }
  program = address->toPtr<const EspalierProgram *>();
  world = std::make_unique<World>(
      program->ranks, program->classes[0].arenaBytes, object.layout.groups);
}

CompiledProgram
CompiledProgram::ofBody(const std::vector<std::string> &argumentTypes,
                        const std::vector<std::string> &resultTypes,
                        const std::string &body) {
  auto attributes = [](const std::string &name, const char *role) {
    return " {espalier.name = \"" + name + "\", espalier.role = \"" + role +
           "\"}";
  };
  std::string text = "func.func @first(";
  for (size_t i = 0; i < argumentTypes.size(); ++i) {
    std::string name = "a" + std::to_string(i);
    text += (i ? ", %" : "%") + name + ": " + argumentTypes[i] +
            attributes(name, "input");
  }
  text += ") -> (";
  for (size_t i = 0; i < resultTypes.size(); ++i)
    text += (i ? ", " : "") + resultTypes[i] +
            attributes("r" + std::to_string(i), "output");
  text += ") {\n" + body + "\n}\nfunc.func @update() {\n  return\n}\n";
  cpu::CompileOptions options;
  options.keepRt = true;
  return CompiledProgram(text, options);
}

void CompiledProgram::run(const std::string &function) {
  const EspalierClass &entry = program->classes[0];
  world->run(function == "first"  ? entry.first
             : function == "next" ? entry.next
                                  : entry.update);
}

uint64_t CompiledProgram::offsetOf(const std::string &name,
                                   const std::string &role) const {
  int64_t index = object.layout.memory.find(name, role);
  EXPECT_GE(index, 0) << name << " " << role;
  return object.layout.memory.tensors[index].offset;
}

int64_t CompiledProgram::elements(const std::string &name,
                                  const std::string &role) const {
  int64_t index = object.layout.memory.find(name, role);
  EXPECT_GE(index, 0) << name << " " << role;
  return object.layout.memory.tensors[index].type.getNumElements();
}

void test::fillRandom(float *data, int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (int64_t i = 0; i < count; ++i)
    data[i] = uniform(random);
}
