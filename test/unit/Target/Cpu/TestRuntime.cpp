//===- TestRuntime.cpp - A runtime for compiled programs in a test --------===//

#include "TestRuntime.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <thread>

using namespace espalier::test;

World::World(int32_t ranks, uint64_t arenaBytes,
             std::vector<std::vector<int32_t>> groups)
    : contexts(ranks), groups(std::move(groups)), sent(ranks), barrier(ranks) {
  uint64_t bytes = (arenaBytes + 127) / 64 * 64;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    EspalierContext &context = contexts[rank];
    context = {};
    context.arena = static_cast<uint8_t *>(std::aligned_alloc(64, bytes));
    std::memset(context.arena, 0xFF, bytes); // NaN: what is read was written
    context.rank = rank;
    context.ranks = ranks;
    context.runtime = this;
  }
}

World::~World() {
  for (EspalierContext &context : contexts)
    std::free(context.arena);
}

void World::run(EspalierFunction function) {
  std::vector<std::thread> threads;
  for (size_t rank = 1; rank < contexts.size(); ++rank)
    threads.emplace_back([&, rank] { function(&contexts[rank]); });
  function(&contexts[0]);
  for (std::thread &thread : threads)
    thread.join();
}

size_t World::placeOf(int32_t group, int32_t rank) const {
  const std::vector<int32_t> &members = groups[group];
  return std::find(members.begin(), members.end(), rank) - members.begin();
}

//===----------------------------------------------------------------------===//
// The functions of abi.h
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

static World &worldOf(EspalierContext *context) {
  return *static_cast<World *>(context->runtime);
}

static uint64_t sizeOf(EspalierDtype dtype) {
  return dtype == EspalierF64 || dtype == EspalierI64 ? 8
         : dtype == EspalierBf16                      ? 2
         : dtype == EspalierI1                        ? 1
                                                      : 4;
}

/// Sums and maxima of fp32: what these tests have.
static void reduceInto(EspalierReduction reduction, float *to,
                       const float *from, uint64_t count, bool first) {
  for (uint64_t i = 0; i < count; ++i)
    to[i] = first                      ? from[i]
            : reduction == EspalierMax ? std::max(to[i], from[i])
                                       : to[i] + from[i];
}

static void testAllReduce(EspalierContext *context, int32_t, int32_t group,
                          EspalierReduction reduction, EspalierDtype dtype,
                          int32_t buffers, const uint64_t *offsets,
                          const uint64_t *counts) {
  World &world = worldOf(context);
  EXPECT_EQ(dtype, EspalierF32);
  for (int32_t b = 0; b < buffers; ++b)
    world.exchange(context, offsets[b], 4 * counts[b], [&] {
      for (size_t i = 0; i < world.groupSize(group); ++i)
        reduceInto(reduction,
                   reinterpret_cast<float *>(context->arena + offsets[b]),
                   reinterpret_cast<const float *>(world.sentBy(group, i)),
                   counts[b], i == 0);
    });
}

static void testAllGather(EspalierContext *context, int32_t, int32_t group,
                          EspalierDtype dtype, uint64_t outer, uint64_t count,
                          uint64_t input, uint64_t output) {
  World &world = worldOf(context);
  uint64_t bytes = count * sizeOf(dtype), members = world.groupSize(group);
  world.exchange(context, input, outer * bytes, [&] {
    for (uint64_t o = 0; o < outer; ++o)
      for (uint64_t i = 0; i < members; ++i)
        std::memcpy(context->arena + output + (o * members + i) * bytes,
                    world.sentBy(group, i) + o * bytes, bytes);
  });
}

static void testReduceScatter(EspalierContext *context, int32_t, int32_t group,
                              EspalierReduction reduction, EspalierDtype dtype,
                              uint64_t outer, uint64_t count, uint64_t input,
                              uint64_t output) {
  World &world = worldOf(context);
  EXPECT_EQ(dtype, EspalierF32);
  uint64_t bytes = 4 * count, members = world.groupSize(group);
  uint64_t own = world.placeOf(group, context->rank);
  world.exchange(context, input, outer * members * bytes, [&] {
    for (uint64_t o = 0; o < outer; ++o)
      for (uint64_t i = 0; i < members; ++i)
        reduceInto(
            reduction,
            reinterpret_cast<float *>(context->arena + output + o * bytes),
            reinterpret_cast<const float *>(world.sentBy(group, i) +
                                            (o * members + own) * bytes),
            count, i == 0);
  });
}

static void testAllToAll(EspalierContext *context, int32_t, int32_t group,
                         EspalierDtype dtype, uint64_t outer, uint64_t count,
                         uint64_t input, uint64_t output) {
  World &world = worldOf(context);
  uint64_t bytes = count * sizeOf(dtype), members = world.groupSize(group);
  uint64_t own = world.placeOf(group, context->rank);
  world.exchange(context, input, outer * members * bytes, [&] {
    for (uint64_t i = 0; i < members; ++i)
      for (uint64_t o = 0; o < outer; ++o)
        std::memcpy(context->arena + output + (i * outer + o) * bytes,
                    world.sentBy(group, i) + (o * members + own) * bytes,
                    bytes);
  });
}

static void testMark(EspalierContext *, int32_t) {}

template <typename Function>
static llvm::orc::ExecutorSymbolDef symbol(Function *function) {
  return {llvm::orc::ExecutorAddr::fromPtr(function),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
}

llvm::Error espalier::test::defineRuntime(llvm::orc::LLJIT &jit) {
  auto name = [&](llvm::StringRef text) { return jit.mangleAndIntern(text); };
  return jit.getMainJITDylib().define(llvm::orc::absoluteSymbols(
      {{name("espalierRtGemm"), symbol(&testGemm)},
       {name("espalierRtAllReduce"), symbol(&testAllReduce)},
       {name("espalierRtAllGather"), symbol(&testAllGather)},
       {name("espalierRtReduceScatter"), symbol(&testReduceScatter)},
       {name("espalierRtAllToAll"), symbol(&testAllToAll)},
       {name("espalierRtMark"), symbol(&testMark)}}));
}
