//===- EquivalenceTest.cpp - Right plans pass, broken ones do not ---------===//

#include "espalier/Verify/Equivalence.h"

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"
#include "espalier/Verify/Shrink.h"
#include "passes/Partition/Passes.h"
#include "passes/Sharding/Passes.h"

#include "gtest/gtest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace espalier;

// A layer with a norm over the batch (whose mean is reduced inside @grad), a
// summed loss, and an update by the averaged gradient.
static const char *const kProgram = R"mlir(
dist.mesh @mesh [#dist.mesh_axis<"dp" = 2, "node">]

func.func @grad(
    %w: tensor<5x3xf32> {espalier.name = "w", espalier.role = "parameter"},
    %x: tensor<4x5xf32> {espalier.name = "x", espalier.role = "input"},
    %labels: tensor<4xi64> {espalier.name = "labels", espalier.role = "label"})
    -> (tensor<1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<5x3xf32> {espalier.name = "w", espalier.role = "grad"}) {
  %y = nn.contract "mk,kn->mn" %x, %w : tensor<4x5xf32>, tensor<5x3xf32> -> tensor<4x3xf32>
  %sum = nn.reduce sum %y dims = [0] : tensor<4x3xf32> -> tensor<1x3xf32>
  %centred = nn.map %y, %sum : (tensor<4x3xf32>, tensor<1x3xf32>) -> tensor<4x3xf32> {
  ^bb0(%a: f32, %s: f32):
    %quarter = arith.constant 0.25 : f32
    %mean = arith.mulf %s, %quarter : f32
    %d = arith.subf %a, %mean : f32
    nn.yield %d : f32
  }
  %loss, %lse = nn.cross_entropy %centred, %labels ignore_index = -1
      : tensor<4x3xf32>, tensor<4xi64> -> tensor<4xf32>, tensor<4xf32>
  %total = nn.reduce sum %loss dims = [0] : tensor<4xf32> -> tensor<1xf32>
  %dw = nn.contract "mk,mn->kn" %x, %centred : tensor<4x5xf32>, tensor<4x3xf32> -> tensor<5x3xf32>
  return %total, %dw : tensor<1xf32>, tensor<5x3xf32>
}

func.func @update(
    %w: tensor<5x3xf32> {espalier.name = "w", espalier.role = "parameter"},
    %dw: tensor<5x3xf32> {espalier.name = "w", espalier.role = "grad"})
    -> (tensor<5x3xf32> {espalier.name = "w", espalier.role = "parameter"}) {
  %new = nn.map %w, %dw : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32> {
  ^bb0(%p: f32, %g: f32):
    %square = arith.mulf %g, %g : f32
    %0 = arith.subf %p, %square : f32
    nn.yield %0 : f32
  }
  return %new : tensor<5x3xf32>
}
)mlir";

namespace {

class Equivalence : public testing::Test {
protected:
  Equivalence() {
    context.loadDialect<nn::NnDialect, dist::DistDialect, func::FuncDialect,
                        arith::ArithDialect, math::MathDialect>();
    whole = parseSourceString<ModuleOp>(kProgram, &context);
    numberOps(*whole);
    planned = whole->clone();
    PassManager shard(&context);
    shard.addPass(createShardTrainingProgramPass());
    shard.addPass(createVerifyPlannedPass());
    EXPECT_TRUE(succeeded(shard.run(*planned)));
    partitioned = planned->clone();
    PassManager partition(&context);
    partition.addPass(createPartitionPass());
    EXPECT_TRUE(succeeded(partition.run(*partitioned)));
  }

  EquivalenceResult compare() {
    auto result = compareWithSingleDevice(*whole, *planned, *partitioned);
    EXPECT_TRUE(succeeded(result));
    return *result;
  }

  /// The all-reduces of a function.
  SmallVector<dist::AllReduceOp> allReduces(StringRef function) {
    auto ops = partitioned->lookupSymbol<func::FuncOp>(function)
                   .front()
                   .getOps<dist::AllReduceOp>();
    return SmallVector<dist::AllReduceOp>(ops.begin(), ops.end());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> whole, planned, partitioned;
};

} // namespace

TEST_F(Equivalence, HoldsForARightPlan) {
  EquivalenceResult result = compare();
  EXPECT_TRUE(result.equivalent) << result.difference;
  EXPECT_GT(result.comparedValues, 5);
  EXPECT_EQ(allReduces("grad").size(), 1u);   // the mean
  EXPECT_EQ(allReduces("update").size(), 1u); // the gradient
}

TEST_F(Equivalence, FailsWhereACollectiveIsMissingInTheGradient) {
  dist::AllReduceOp op = allReduces("grad").front();
  op.getResult(0).replaceAllUsesWith(op.getInputs()[0]);
  EXPECT_FALSE(compare().equivalent);
}

TEST_F(Equivalence, FailsWhereACollectiveIsMissingInTheUpdate) {
  dist::AllReduceOp op = allReduces("update").front();
  op.getResult(0).replaceAllUsesWith(op.getInputs()[0]);
  EXPECT_FALSE(compare().equivalent);
}

TEST_F(Equivalence, FailsWhereACollectiveIsDoubled) {
  dist::AllReduceOp op = allReduces("update").front();
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op);
  auto second = cast<dist::AllReduceOp>(builder.clone(*op));
  second->setOperand(0, op.getResult(0));
  op.getResult(0).replaceAllUsesExcept(second.getResult(0), second);
  EXPECT_FALSE(compare().equivalent);
}

TEST_F(Equivalence, FailsWhereTheReductionIsAnother) {
  allReduces("grad").front().setKind(ReductionKind::Max);
  EquivalenceResult result = compare();
  EXPECT_FALSE(result.equivalent);
  EXPECT_NE(result.difference.find("nn.map"), std::string::npos)
      << "the first op after the collective is named: " << result.difference;
}
