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

#include <cstdlib>
#include <cstring>
#include <random>

using namespace espalier;
using namespace espalier::test;

//===----------------------------------------------------------------------===//
// The runtime of these tests
//===----------------------------------------------------------------------===//

static void testGemm(EspalierContext *, int32_t transposeA, int32_t transposeB,
                     int64_t m, int64_t n, int64_t k, float alpha,
                     const float *a, int64_t lda, const float *b, int64_t ldb,
                     float beta, float *c, int64_t ldc, int64_t batch,
                     int64_t strideA, int64_t strideB, int64_t strideC) {
  EXPECT_GE(lda, transposeA ? m : k);
  EXPECT_GE(ldb, transposeB ? k : n);
  EXPECT_GE(ldc, n);
  for (int64_t s = 0; s < batch; ++s)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum +=
              double(
                  a[s * strideA + (transposeA ? p * lda + i : i * lda + p)]) *
              b[s * strideB + (transposeB ? j * ldb + p : p * ldb + j)];
        float &out = c[s * strideC + i * ldc + j];
        out = float(alpha * sum + (beta == 0 ? 0 : beta * out));
      }
}

static void testAllReduce(EspalierContext *, int32_t, int32_t,
                          EspalierReduction, EspalierDtype, int32_t,
                          const uint64_t *, const uint64_t *) {}
static void testMark(EspalierContext *, int32_t) {}

static void testBlocks(EspalierContext *context, int32_t, int32_t,
                       EspalierDtype dtype, uint64_t outer, uint64_t count,
                       uint64_t input, uint64_t output) {
  std::memmove(context->arena + output, context->arena + input,
               outer * count * (dtype == EspalierF64 ? 8 : 4));
}

template <typename Function>
static llvm::orc::ExecutorSymbolDef symbol(Function *function) {
  return {llvm::orc::ExecutorAddr::fromPtr(function),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
}

static llvm::Error defineRuntime(llvm::orc::LLJIT &jit) {
  auto name = [&](llvm::StringRef text) { return jit.mangleAndIntern(text); };
  return jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(
      {{name("espalierRtGemm"), symbol(&testGemm)},
       {name("espalierRtAllReduce"), symbol(&testAllReduce)},
       {name("espalierRtAllGather"), symbol(&testBlocks)},
       {name("espalierRtAllToAll"), symbol(&testBlocks)},
       {name("espalierRtMark"), symbol(&testMark)}}));
}

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
  size_t bytes = program->classes[0].arenaBytes + 64;
  context.arena =
      static_cast<uint8_t *>(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  std::memset(context.arena, 0xFF, bytes); // NaN: what is read was written
  context.ranks = program->ranks;
}

CompiledProgram::CompiledProgram(CompiledProgram &&other)
    : object(std::move(other.object)), jit(std::move(other.jit)),
      program(std::exchange(other.program, nullptr)),
      context(std::exchange(other.context, {})),
      mlirContext(std::move(other.mlirContext)),
      source(std::move(other.source)) {}

CompiledProgram::~CompiledProgram() { std::free(context.arena); }

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
  (function == "first"  ? entry.first
   : function == "next" ? entry.next
                        : entry.update)(&context);
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
