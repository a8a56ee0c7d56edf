//===- espalier-lsp-server.cpp - Editor support for our dialects ----------===//

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, espalier::nn::NnDialect,
                  espalier::dist::DistDialect>();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
