//===- CollectivesTest.cpp - Collectives against plain loops --------------===//

#include "runtime/Reduce.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "RankHarness.h"

using namespace espalier::runtime;
using namespace espalier::test;

namespace {

/// Element i of the buffer of rank r: small whole numbers, so that the order of
/// a sum does not matter where a test does not want it to.
template <typename T>
T valueOf(int32_t rank, uint64_t i) {
  return static_cast<T>((static_cast<uint64_t>(rank) * 31 + i * 7) % 17) -
         static_cast<T>(3);
}

template <typename T>
T combine(EspalierReduction reduction, T left, T right) {
  switch (reduction) {
  case EspalierSum:
    return left + right;
  case EspalierMax:
    return std::max(left, right);
  case EspalierMin:
    return std::min(left, right);
  case EspalierProd:
    return left * right;
  }
  return left;
}

template <typename T>
T expected(EspalierReduction reduction, int32_t ranks, uint64_t i) {
  T value = valueOf<T>(0, i);
  for (int32_t rank = 1; rank < ranks; ++rank)
    value = combine(reduction, value, valueOf<T>(rank, i));
  return value;
}

template <typename T>
T *at(Rank &rank, uint64_t offset) {
  return reinterpret_cast<T *>(rank.context.arena + offset);
}

template <typename T>
bool checkAllReduce(Rank &rank, EspalierDtype dtype,
                    EspalierReduction reduction) {
  // Three buffers of one bucket; the second is empty, sizes are odd.
  const uint64_t offsets[] = {0, 4096, 8192}, counts[] = {37, 0, 401};
  const int32_t ranks = rank.context.ranks, own = rank.context.rank;
  for (int buffer = 0; buffer < 3; ++buffer)
    for (uint64_t i = 0; i < counts[buffer]; ++i)
      at<T>(rank, offsets[buffer])[i] = valueOf<T>(own, i);
  T *guard = at<T>(rank, offsets[2]) + counts[2];
  *guard = static_cast<T>(99);
  espalierRtAllReduce(&rank.context, 0, 0, reduction, dtype, 3, offsets,
                      counts);
  bool same = *guard == static_cast<T>(99);
  for (int buffer = 0; buffer < 3; ++buffer)
    for (uint64_t i = 0; i < counts[buffer]; ++i)
      same &=
          at<T>(rank, offsets[buffer])[i] == expected<T>(reduction, ranks, i);
  rank.communicator.barrier();
  return same;
}

TEST(Collectives, AllReduceEqualsLoops) {
  for (int32_t ranks = 1; ranks <= 5; ++ranks)
    EXPECT_EQ(
        onRanks(
            worldOf(ranks), ranks, 1 << 16, 0,
            [](Rank &rank) {
              bool same = true;
              for (int k = 0; k < 4; ++k) {
                auto reduction = static_cast<EspalierReduction>(k);
                same &= checkAllReduce<float>(rank, EspalierF32, reduction);
                same &= checkAllReduce<double>(rank, EspalierF64, reduction);
                same &= checkAllReduce<int64_t>(rank, EspalierI64, reduction);
                same &= checkAllReduce<int32_t>(rank, EspalierI32, reduction);
              }
              return same;
            }),
        ranks);
}

TEST(Collectives, AllReduceOfBooleansIsOrAndAnd) {
  EXPECT_EQ(onRanks(worldOf(3), 3, 4096, 0,
                    [](Rank &rank) {
                      uint64_t offset = 0, count = 2;
                      uint8_t *values = rank.context.arena;
                      auto set = [&] {
                        values[0] = rank.context.rank == 1;
                        values[1] = 1;
                      };
                      set();
                      espalierRtAllReduce(&rank.context, 0, 0, EspalierMax,
                                          EspalierI1, 1, &offset, &count);
                      bool isOr = values[0] == 1 && values[1] == 1;
                      rank.communicator.barrier();
                      set();
                      espalierRtAllReduce(&rank.context, 0, 0, EspalierMin,
                                          EspalierI1, 1, &offset, &count);
                      return isOr && values[0] == 0 && values[1] == 1;
                    }),
            3);
}

TEST(Collectives, SumsAreTakenInTheOrderOfRanks) {
  // 2^24 + 1 + 1 is 2^24 in this order, and 2^24 + 2 in another.
  EXPECT_EQ(onRanks(worldOf(3), 3, 4096, 0,
                    [](Rank &rank) {
                      uint64_t offset = 0, count = 100;
                      for (uint64_t i = 0; i < count; ++i)
                        at<float>(rank, 0)[i] =
                            rank.context.rank == 0 ? 16777216.0f : 1.0f;
                      espalierRtAllReduce(&rank.context, 0, 0, EspalierSum,
                                          EspalierF32, 1, &offset, &count);
                      bool same = true;
                      for (uint64_t i = 0; i < count; ++i)
                        same &= at<float>(rank, 0)[i] == 16777216.0f;
                      return same;
                    }),
            3);
}

TEST(Collectives, Bf16IsSummedInFp32) {
  // 256 + 1 + 1: bf16 has 8 bits, so rounding after each sum would lose both.
  EXPECT_EQ(onRanks(worldOf(3), 3, 4096, 0,
                    [](Rank &rank) {
                      uint64_t offset = 0, count = 9;
                      for (uint64_t i = 0; i < count; ++i)
                        at<uint16_t>(rank, 0)[i] =
                            rank.context.rank == 0 ? 0x4380 : 0x3f80;
                      espalierRtAllReduce(&rank.context, 0, 0, EspalierSum,
                                          EspalierBf16, 1, &offset, &count);
                      return at<uint16_t>(rank, 0)[8] == 0x4381; // 258
                    }),
            3);
}

TEST(Reduce, RoundsBf16ToEvenAndKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // 1 + 2^-8 is halfway between 1 and 1 + 2^-7: to the even, 1.
  uint16_t left[] = {0x3f80, 0x3f81, 0x7f80, 0x7fc1};
  uint16_t right[] = {0x3b80, 0x3b80, 0xff80, 0x3f80};
  uint8_t *inputs[] = {reinterpret_cast<uint8_t *>(left),
                       reinterpret_cast<uint8_t *>(right)};
  reduce(EspalierBf16, EspalierSum, inputs, 2, inputs, 1, 4);
  EXPECT_EQ(left[0], 0x3f80);
  EXPECT_EQ(left[1], 0x3f82);
  EXPECT_EQ(left[2] & 0x7fc0, 0x7fc0); // inf - inf
  EXPECT_EQ(left[3] & 0x7fc0, 0x7fc0);
  float a[] = {nan, 1, 2}, b[] = {1, nan, 3};
  uint8_t *floats[] = {reinterpret_cast<uint8_t *>(a),
                       reinterpret_cast<uint8_t *>(b)};
  reduce(EspalierF32, EspalierMax, floats, 2, floats, 1, 3);
  EXPECT_TRUE(std::isnan(a[0]));
  EXPECT_TRUE(std::isnan(a[1]));
  EXPECT_EQ(a[2], 3);
}

/// Blocks of `outer` x `count`, on two groups that work side by side.
bool checkMoves(Rank &rank, int32_t group, int32_t size, int32_t own,
                const std::vector<int32_t> &members) {
  constexpr uint64_t outer = 3, count = 5, in = 0, out = 8192;
  auto n = static_cast<uint64_t>(size);
  float *input = at<float>(rank, in), *output = at<float>(rank, out);
  auto value = [&](uint64_t member, uint64_t i) {
    return valueOf<float>(members[member], i);
  };
  auto me = static_cast<uint64_t>(own);
  for (uint64_t i = 0; i < outer * n * count; ++i)
    input[i] = value(me, i);
  bool same = true;
  espalierRtAllGather(&rank.context, 0, group, EspalierF32, outer, count, in,
                      out);
  for (uint64_t o = 0; o < outer; ++o)
    for (uint64_t i = 0; i < n; ++i)
      for (uint64_t k = 0; k < count; ++k)
        same &= output[(o * n + i) * count + k] == value(i, o * count + k);
  espalierRtReduceScatter(&rank.context, 0, group, EspalierSum, EspalierF32,
                          outer, count, in, out);
  for (uint64_t o = 0; o < outer; ++o)
    for (uint64_t k = 0; k < count; ++k) {
      float sum = 0;
      for (uint64_t i = 0; i < n; ++i)
        sum += value(i, (o * n + me) * count + k);
      same &= output[o * count + k] == sum;
    }
  espalierRtAllToAll(&rank.context, 0, group, EspalierF32, outer, count, in,
                     out);
  for (uint64_t i = 0; i < n; ++i)
    for (uint64_t o = 0; o < outer; ++o)
      for (uint64_t k = 0; k < count; ++k)
        same &= output[(i * outer + o) * count + k] ==
                value(i, (o * n + me) * count + k);
  return same;
}

TEST(Collectives, MovesEqualLoops) {
  for (int32_t ranks = 1; ranks <= 5; ++ranks) {
    Metadata metadata = worldOf(ranks);
    EXPECT_EQ(onRanks(metadata, ranks, 1 << 16, 0,
                      [&](Rank &rank) {
                        return checkMoves(rank, 0, ranks, rank.context.rank,
                                          metadata.groups[0]);
                      }),
              ranks);
  }
}

TEST(Collectives, GroupsWorkSideBySide) {
  // The members of a group are in the group's order, not in that of ranks.
  Metadata metadata = worldOf(5);
  metadata.groups = {{3, 0}, {1, 2, 4}};
  EXPECT_EQ(onRanks(metadata, 5, 1 << 16, 0,
                    [&](Rank &rank) {
                      bool same = true;
                      for (int32_t repeat = 0; repeat < 20; ++repeat)
                        for (int32_t group = 0; group < 2; ++group) {
                          const std::vector<int32_t> &members =
                              metadata.groups[static_cast<size_t>(group)];
                          for (size_t i = 0; i < members.size(); ++i)
                            if (members[i] == rank.context.rank)
                              same &= checkMoves(
                                  rank, group,
                                  static_cast<int32_t>(members.size()),
                                  static_cast<int32_t>(i), members);
                        }
                      return same;
                    }),
            5);
}

TEST(Collectives, RefusesOverlap) {
  EXPECT_EQ(onRanks(worldOf(2), 2, 4096, 0,
                    [](Rank &rank) {
                      espalierRtAllGather(&rank.context, 0, 0, EspalierF32, 1,
                                          4, 0, 8);
                      return true;
                    }),
            0);
}

TEST(Collectives, ManyRanksOnFewCoresDoNotSpin) {
  EXPECT_EQ(onRanks(worldOf(16), 16, 4096, 0,
                    [](Rank &rank) {
                      for (int i = 0; i < 50; ++i)
                        rank.communicator.barrier();
                      timespec used;
                      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
                      return used.tv_sec == 0;
                    }),
            16);
}

} // namespace
