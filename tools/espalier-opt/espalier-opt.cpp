//===- espalier-opt.cpp - Run passes on a .mlir file ----------------------===//

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"
#include "passes/Autodiff/Passes.h"
#include "passes/Import/Passes.h"
#include "passes/Partition/Passes.h"
#include "passes/Schedule/Passes.h"
#include "passes/Sharding/Passes.h"
#include "passes/Verify/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::registerTransformsPasses();
  espalier::registerImportPasses();
  espalier::registerImportPipeline();
  espalier::registerAutodiffPasses();
  espalier::registerAutodiffPipelines();
  espalier::registerVerifyPasses();
  espalier::registerShardingPasses();
  espalier::registerPartitionPasses();
  espalier::registerSchedulePasses();

  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::math::MathDialect, espalier::nn::NnDialect,
                  espalier::dist::DistDialect, espalier::rt::RtDialect>();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "espalier pass driver\n", registry));
}
