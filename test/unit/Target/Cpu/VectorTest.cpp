//===- VectorTest.cpp - Inner loops are vector code -----------------------===//
//
// Asks the optimizer and reads the assembly; measures no time.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include "CompiledProgram.h"

using namespace espalier::test;
using llvm::formatv;

namespace {

espalier::cpu::CompileOptions avx2() {
  espalier::cpu::CompileOptions options;
  options.cpu = "x86-64-v3";
  options.keepAssembly = true;
  return options;
}

std::string program(const std::string &argument, const std::string &result,
                    const std::string &body) {
  return formatv(
      "func.func @first(%a0: {0} {{espalier.name = \"x\", espalier.role = "
      "\"input\"}) -> ({1} {{espalier.name = \"y\", espalier.role = "
      "\"output\"}) {{\n{2}\n}\nfunc.func @update() {{\n  return\n}\n",
      argument, result, body);
}

void expectVectors(const std::string &text, const std::string &what) {
  CompiledProgram compiled(text, avx2());
  ASSERT_TRUE(compiled.ok());
  EXPECT_TRUE(compiled.object.scalarLoops.empty())
      << what << ": " << llvm::join(compiled.object.scalarLoops, "\n");
  EXPECT_NE(compiled.object.assembly.find("%ymm"), std::string::npos) << what;
  for (const char *function : {"expf", "tanhf", "erff", "logf", "sinf", "cosf"})
    EXPECT_EQ(compiled.object.assembly.find(std::string("\t") + function + "@"),
              std::string::npos)
        << what;
}

} // namespace

TEST(Vector, Maps) {
  for (const char *name : {"exp", "tanh", "erf", "log", "sin", "cos", "sqrt",
                           "absf", "expm1", "log1p", "exp2", "log2"})
    for (const char *type : {"f32", "bf16"})
      expectVectors(
          program(formatv("tensor<3x65x{0}>", type),
                  formatv("tensor<3x65x{0}>", type),
                  formatv("%r = nn.map %a0 : (tensor<3x65x{0}>) -> "
                          "tensor<3x65x{0}> {{\n^bb0(%u: {0}):\n"
                          "  %1 = math.{1} %u : {0}\n  nn.yield %1 : {0}\n}\n"
                          "return %r : tensor<3x65x{0}>",
                          type, name)),
          std::string(name) + " " + type);
}

TEST(Vector, Reductions) {
  for (const char *kind : {"sum", "max"})
    for (int dim : {0, 1}) {
      const char *result = dim == 0 ? "tensor<1x128xf32>" : "tensor<64x1xf32>";
      expectVectors(
          program("tensor<64x128xf32>", result,
                  formatv("%r = nn.reduce {0} %a0 dims = [{1}] : "
                          "tensor<64x128xf32> -> {2}\nreturn %r : {2}",
                          kind, dim, result)),
          formatv("{0} {1}", kind, dim));
    }
}

TEST(Vector, Kernels) {
  std::string x = "tensor<8x100xf32>";
  expectVectors(program(x, x,
                        formatv("%r = nn.softmax %a0 : {0} -> {0}\n"
                                "return %r : {0}",
                                x)),
                "softmax");
  expectVectors(program(x, x,
                        formatv("%r = nn.layer_norm %a0 epsilon = 1.0e-05 : "
                                "({0}) -> {0}\nreturn %r : {0}",
                                x)),
                "layer_norm");
  std::string q = "tensor<1x2x64x32xf32>";
  expectVectors(
      program(
          q, q,
          formatv("%r, %l = nn.attention %a0, %a0, %a0 causal scale = 0.5 : "
                  "({0}, {0}, {0}) -> ({0}, tensor<1x2x64xf32>)\n"
                  "return %r : {0}",
                  q)),
      "attention");
}
