//===- MemoryTest.cpp - Layouts of arenas ---------------------------------===//

#include "espalier/Memory/ArenaLayout.h"
#include "espalier/Memory/MemoryPlan.h"

#include "gtest/gtest.h"
#include "mlir/Parser/Parser.h"

#include <random>

using namespace espalier::memory;

/// Blocks that live at one time do not overlap, none leaves the arena, and
/// every offset is aligned.
static void expectValid(llvm::ArrayRef<Block> blocks,
                        const ArenaLayout &layout) {
  ASSERT_EQ(layout.offsets.size(), blocks.size());
  EXPECT_GE(layout.bytes, layout.bound);
  for (size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(layout.offsets[i] % arenaAlignment, 0);
    if (blocks[i].bytes == 0)
      continue;
    EXPECT_LE(layout.offsets[i] + blocks[i].bytes, layout.bytes);
    for (size_t j = 0; j < i; ++j) {
      bool together = blocks[i].first <= blocks[j].last &&
                      blocks[j].first <= blocks[i].last;
      bool apart = layout.offsets[i] + blocks[i].bytes <= layout.offsets[j] ||
                   layout.offsets[j] + blocks[j].bytes <= layout.offsets[i];
      EXPECT_TRUE(!together || apart || blocks[j].bytes == 0) << i << " " << j;
    }
  }
}

TEST(ArenaLayout, ReusesWhatHasDied) {
  const Block blocks[] = {{64, 0, 1}, {64, 2, 3}, {60, 1, 2}};
  ArenaLayout layout = layOutArena(blocks);
  expectValid(blocks, layout);
  EXPECT_EQ(layout.offsets[0], layout.offsets[1]);
  EXPECT_EQ(layout.bytes, 128); // the first and the third live at event 1
  EXPECT_EQ(layout.bound, 128);
}

TEST(ArenaLayout, NeedsMoreThanOneOrder) {
  // Alive at events 1, 2, 4 are {128, 192}, {192, 64}, {64, 128, 128}: 320
  // bytes at most, and they fit into 320.
  const Block blocks[] = {
      {128, 0, 1}, {192, 1, 2}, {64, 2, 4}, {128, 3, 5}, {128, 4, 6}};
  ArenaLayout layout = layOutArena(blocks);
  expectValid(blocks, layout);
  EXPECT_EQ(layout.bytes, 320);
}

TEST(ArenaLayout, IsEmptyForNothing) {
  EXPECT_EQ(layOutArena({}).bytes, 0);
  const Block blocks[] = {{0, 0, 5}, {0, 2, 3}};
  EXPECT_EQ(layOutArena(blocks).bytes, 0);
}

TEST(ArenaLayout, IsCloseToTheBoundOnRandomBlocks) {
  std::mt19937 random(3);
  double worst = 1;
  for (int round = 0; round < 20; ++round) {
    llvm::SmallVector<Block> blocks;
    for (int i = 0; i < 60; ++i) {
      int64_t first = random() % 50, length = random() % 12;
      blocks.push_back({int64_t(random() % 5000), first, first + length});
    }
    ArenaLayout layout = layOutArena(blocks);
    expectValid(blocks, layout);
    worst = std::max(worst, double(layout.bytes) / layout.bound);
  }
  EXPECT_LT(worst, 1.1);
}

TEST(MemoryPlan, SharesByNameAndRole) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"mlir(
func.func @first(
    %x: tensor<3xf32> {espalier.name = "x", espalier.role = "input"},
    %w: tensor<20xf32> {espalier.name = "w", espalier.role = "parameter"})
    -> (tensor<20xf32> {espalier.name = "w", espalier.role = "grad"}) {
  return %w : tensor<20xf32>
}
func.func @update(
    %w: tensor<20xf32> {espalier.name = "w", espalier.role = "parameter"},
    %g: tensor<20xf32> {espalier.name = "w", espalier.role = "grad"},
    %step: tensor<i64> {espalier.name = "step", espalier.role = "step"})
    -> (tensor<20xf32> {espalier.name = "w", espalier.role = "parameter"}) {
  return %w : tensor<20xf32>
}
)mlir",
      &context);
  ASSERT_TRUE(module);
  auto plan =
      planPersistent({module->lookupSymbol<mlir::func::FuncOp>("first"),
                      module->lookupSymbol<mlir::func::FuncOp>("update")});
  ASSERT_TRUE(mlir::succeeded(plan));
  ASSERT_EQ(plan->tensors.size(), 4u);
  // Parameters, then gradients, then the rest; 80 bytes take two lines.
  EXPECT_EQ(plan->tensors[plan->find("w", "parameter")].offset, 0);
  EXPECT_EQ(plan->tensors[plan->find("w", "grad")].offset, 128);
  EXPECT_EQ(plan->tensors[plan->find("x", "input")].offset, 256);
  EXPECT_EQ(plan->tensors[plan->find("step", "step")].bytes, 8);
  EXPECT_EQ(plan->persistentBytes, 384);
  EXPECT_EQ(plan->find("w", "state"), -1);
}
