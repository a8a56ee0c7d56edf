//===- espalier-translate.cpp - What a scheduled program compiles to ------===//

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"
#include "espalier/Target/Cpu.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace mlir;
using namespace espalier;

static void registerDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, func::FuncDialect, math::MathDialect,
                  nn::NnDialect, dist::DistDialect>();
}

/// Registers a translation that writes one of the texts of a compiled object.
static void registerText(StringRef name, StringRef description,
                         bool cpu::CompileOptions::*keep,
                         std::string cpu::CompiledObject::*text) {
  TranslateFromMLIRRegistration registration(
      name, description,
      [=](ModuleOp module, raw_ostream &output) -> LogicalResult {
        cpu::CompileOptions options;
        if (keep)
          options.*keep = true;
        auto object = cpu::compileToObject(module, options);
        if (failed(object))
          return failure();
        output << (*object).*text;
        return success();
      },
      registerDialects);
}

int main(int argc, char **argv) {
  using Options = cpu::CompileOptions;
  using Object = cpu::CompiledObject;
  registerText("scheduled-to-rt", "buffers, kernels and calls of the runtime",
               &Options::keepRt, &Object::rt);
  registerText("scheduled-to-llvm", "optimized LLVM IR for this machine",
               &Options::keepLlvm, &Object::llvm);
  registerText("scheduled-to-assembly", "assembly for this machine",
               &Options::keepAssembly, &Object::assembly);
  registerText("scheduled-to-object", "an object file for this machine",
               nullptr, &Object::object);
  return failed(mlirTranslateMain(argc, argv, "espalier translation")) ? 1 : 0;
}
