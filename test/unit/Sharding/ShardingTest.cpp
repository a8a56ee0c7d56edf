//===- ShardingTest.cpp - Blocks, groups, propagation, reshards -----------===//

#include "espalier/Partition/Reshard.h"
#include "espalier/Sharding/Propagation.h"

#include "gtest/gtest.h"

using namespace espalier;

static Mesh mesh4x2() { return {{{"dp", 4, "network"}, {"tp", 2, "node"}}}; }

TEST(Blocks, AreCutByNestedCeilings) {
  Mesh mesh = mesh4x2();
  // 10 over 4 is 3 3 3 1; each over 2 is 2 1 | 2 1 | 2 1 | 1 0.
  int64_t sizes[] = {2, 1, 2, 1, 2, 1, 1, 0};
  int64_t offsets[] = {0, 2, 3, 5, 6, 8, 9, 10};
  for (int64_t device = 0; device < 8; ++device) {
    ShardBlock block = blockOf(mesh, device, 10, {0, 1});
    EXPECT_EQ(block.size, sizes[device]) << device;
    EXPECT_EQ(block.offset, offsets[device]) << device;
  }
  EXPECT_EQ(blockSize(mesh, 10, {0, 1}), 2);
}

TEST(Blocks, DroppingTheMinorAxisGivesTheMajorSharding) {
  Mesh mesh = mesh4x2();
  for (int64_t size = 0; size <= 17; ++size)
    for (int64_t device = 0; device < 8; device += 2) {
      ShardBlock major = blockOf(mesh, device, size, {0});
      ShardBlock first = blockOf(mesh, device, size, {0, 1});
      ShardBlock second = blockOf(mesh, device + 1, size, {0, 1});
      EXPECT_EQ(first.offset, major.offset);
      EXPECT_EQ(first.size + second.size, major.size);
      EXPECT_EQ(second.offset, first.offset + first.size);
    }
}

TEST(Mesh, GroupsAreInTheOrderOfTheirAxes) {
  Mesh mesh = mesh4x2(); // device = 2 * dp + tp
  EXPECT_EQ(mesh.groupOf(5, {0}), (llvm::SmallVector<int64_t>{1, 3, 5, 7}));
  EXPECT_EQ(mesh.groupOf(5, {1}), (llvm::SmallVector<int64_t>{4, 5}));
  EXPECT_EQ(mesh.groupOf(5, {1, 0}),
            (llvm::SmallVector<int64_t>{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(mesh.indexIn(5, {1, 0}), 1 * 4 + 2);
}

/// ik,kj->ij of sizes 8, 6, 4.
static ShardingRule productRule() {
  ShardingRule rule;
  unsigned i = rule.addFactor(8), j = rule.addFactor(4);
  unsigned k = rule.addFactor(6, FactorKind::Reduced);
  rule.operands = {{{i}, {k}}, {{k}, {j}}};
  rule.results = {{{i}, {j}}};
  return rule;
}

TEST(Propagation, GoesForwardAndBackward) {
  Propagation propagation(mesh4x2());
  ValueId a = propagation.addValue({8, 6}), b = propagation.addValue({6, 4});
  ValueId c = propagation.addValue({8, 4}), d = propagation.addValue({8, 6});
  propagation.addOp(productRule(), {a, b}, {c});
  ShardingRule same;
  unsigned i = same.addFactor(8), k = same.addFactor(6);
  same.operands = {{{i}, {k}}};
  same.results = {{{i}, {k}}};
  propagation.addOp(same, {a}, {d});
  propagation.seed(c, {{0}, {1}}, "test");
  propagation.run();
  EXPECT_EQ(propagation.dimsOf(a), (DimAxes{{0}, {}}));
  EXPECT_EQ(propagation.dimsOf(b), (DimAxes{{}, {1}}));
  EXPECT_EQ(propagation.dimsOf(d), (DimAxes{{0}, {}}));
  EXPECT_TRUE(propagation.conflicts().empty());
}

TEST(Propagation, KeepsTheFirstOfTwoCutsAndRecordsTheOther) {
  Propagation propagation(mesh4x2());
  ValueId a = propagation.addValue({8, 6}), b = propagation.addValue({6, 4});
  ValueId c = propagation.addValue({8, 4});
  OpId op = propagation.addOp(productRule(), {a, b}, {c});
  propagation.seed(a, {{0}, {}}, "rows", /*closed=*/true);
  propagation.seed(b, {{}, {0}}, "columns", /*closed=*/true);
  propagation.run();
  EXPECT_EQ(propagation.dimsOf(c), (DimAxes{{0}, {}}));
  ASSERT_EQ(propagation.conflicts().size(), 1u);
  EXPECT_EQ(propagation.conflicts()[0].op, op);
  EXPECT_EQ(propagation.conflicts()[0].value, b);
}

TEST(Propagation, CutsAMergedDimensionByItsMajorFactor) {
  Propagation propagation(mesh4x2());
  ValueId split = propagation.addValue({4, 3, 5});
  ValueId merged = propagation.addValue({12, 5});
  ShardingRule rule; // ijk->(ij)k
  unsigned i = rule.addFactor(4), j = rule.addFactor(3), k = rule.addFactor(5);
  rule.operands = {{{i}, {j}, {k}}};
  rule.results = {{{i, j}, {k}}};
  propagation.addOp(rule, {split}, {merged});
  propagation.seed(split, {{1}, {}, {}}, "test");
  propagation.run();
  EXPECT_EQ(propagation.dimsOf(merged), (DimAxes{{1}, {}}));
}

//===----------------------------------------------------------------------===//
// Reshards
//===----------------------------------------------------------------------===//

namespace {

/// What a step does to the sharding; on numbers, e2e/ executes them.
void apply(Sharding &sharding, const ReshardStep &step) {
  auto isLast = [&](unsigned dim) {
    return !sharding.dims[dim].empty() &&
           sharding.dims[dim].back() == step.axis;
  };
  switch (step.kind) {
  case ReshardKind::AllReduce:
  case ReshardKind::ReduceScatter:
    ASSERT_TRUE(sharding.isPartialOver(step.axis));
    llvm::erase_if(sharding.partial,
                   [&](const Partial &p) { return p.axis == step.axis; });
    if (step.kind == ReshardKind::ReduceScatter)
      sharding.dims[step.dim].push_back(step.axis);
    return;
  case ReshardKind::AllGather:
    ASSERT_TRUE(isLast(step.dim));
    sharding.dims[step.dim].pop_back();
    return;
  case ReshardKind::AllToAll:
    ASSERT_TRUE(isLast(step.dim));
    sharding.dims[step.dim].pop_back();
    sharding.dims[step.toDim].push_back(step.axis);
    return;
  case ReshardKind::Slice:
    ASSERT_FALSE(sharding.cuts(step.axis) || sharding.isPartialOver(step.axis));
    sharding.dims[step.dim].push_back(step.axis);
    return;
  }
}

/// Every way to put the axes of a mesh of two into two dimensions, partial, or
/// nowhere.
std::vector<Sharding> allShardings() {
  std::vector<Sharding> all;
  auto place = [](Sharding &sharding, int where, Axis axis) {
    if (where < 2)
      sharding.dims[where].push_back(axis);
    else if (where == 2)
      sharding.partial.push_back({axis, ReductionKind::Sum});
  };
  for (int first = 0; first < 4; ++first)
    for (int second = 0; second < 4; ++second) {
      Sharding sharding = Sharding::replicated(2);
      place(sharding, first, 0);
      place(sharding, second, 1);
      all.push_back(sharding);
      if (first == second && first < 2) {
        std::swap(sharding.dims[first][0], sharding.dims[first][1]);
        all.push_back(sharding);
      }
    }
  return all;
}

} // namespace

TEST(Reshard, ReachesEveryShardingFromEveryOther) {
  Mesh mesh = mesh4x2();
  int planned = 0, refused = 0;
  for (const Sharding &from : allShardings())
    for (const Sharding &to : allShardings()) {
      bool makesPartial = llvm::any_of(to.partial, [&](const Partial &p) {
        return !llvm::is_contained(from.partial, p);
      });
      auto steps = planReshard(mesh, {16, 8}, from, to);
      ASSERT_EQ(mlir::failed(steps), makesPartial)
          << from.str(mesh) << " to " << to.str(mesh);
      if (makesPartial) {
        ++refused;
        continue;
      }
      Sharding now = from;
      for (const ReshardStep &step : *steps)
        apply(now, step);
      EXPECT_EQ(now, to) << from.str(mesh) << " to " << to.str(mesh);
      ++planned;
    }
  EXPECT_EQ(planned + refused, 18 * 18);
  EXPECT_GT(planned, 100);
}

TEST(Reshard, TurnsAReduceAndACutIntoOneStep) {
  Mesh mesh = mesh4x2();
  Sharding from = Sharding::replicated(2), to = Sharding::replicated(2);
  from.partial = {{0, ReductionKind::Sum}};
  to.dims[1] = {0};
  auto steps = planReshard(mesh, {16, 8}, from, to);
  ASSERT_TRUE(mlir::succeeded(steps));
  ASSERT_EQ(steps->size(), 1u);
  EXPECT_EQ(steps->front().kind, ReshardKind::ReduceScatter);
}

TEST(Reshard, RefusesSizesThatDoNotDivide) {
  Mesh mesh = mesh4x2();
  Sharding from = Sharding::replicated(1), to = Sharding::replicated(1);
  to.dims[0] = {0};
  EXPECT_TRUE(mlir::failed(planReshard(mesh, {10}, from, to)));
}
