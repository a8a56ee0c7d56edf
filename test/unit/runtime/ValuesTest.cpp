//===- ValuesTest.cpp - Shards, random numbers, checksums, products -------===//

#include "runtime/Crc32c.h"
#include "runtime/Gemm.h"
#include "runtime/Random.h"
#include "runtime/Shard.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <set>

using namespace espalier::runtime;

namespace {

TEST(Shard, CutsByNestedCeilings) {
  std::vector<ShardAxis> axes = {{"a", 4, 2}, {"b", 2, 1}};
  std::vector<int64_t> sizes, begins;
  for (int64_t rank = 0; rank < 8; ++rank) {
    DimBlock block = blockOf(10, axes, 1, rank);
    EXPECT_EQ(block.local, 2);
    sizes.push_back(block.size);
    begins.push_back(block.begin);
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 1, 2, 1, 2, 1, 1, 0}));
  EXPECT_EQ(begins, (std::vector<int64_t>{0, 2, 3, 5, 6, 8, 9, 10}));
}

TEST(Shard, GranulesStayWhole) {
  // 48 = 3 heads of 16 over 2 ranks: 32 and 16.
  DimBlock first = blockOf(48, {{"tp", 2, 1}}, 16, 0);
  DimBlock second = blockOf(48, {{"tp", 2, 1}}, 16, 1);
  EXPECT_EQ(first.size, 32);
  EXPECT_EQ(second.begin, 32);
  EXPECT_EQ(second.size, 16);
  EXPECT_EQ(second.local, 32);
}

TensorInfo tensorOf(std::vector<int64_t> shape,
                    std::vector<std::vector<ShardAxis>> sharding) {
  TensorInfo tensor;
  tensor.granules.assign(shape.size(), 1);
  tensor.shape = std::move(shape);
  tensor.sharding = std::move(sharding);
  return tensor;
}

/// Every logical element lies exactly once in the ranks' shards, whatever the
/// chunks, and local places are those of the local shape.
void checkRuns(const TensorInfo &tensor, int64_t ranks, int64_t chunk) {
  int64_t elements = tensor.elements();
  std::vector<int> seen(static_cast<size_t>(elements));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Shard shard = shardOf(tensor, rank);
    for (int64_t first = 0; first < elements; first += chunk)
      forEachRun(tensor.shape, shard, first, std::min(chunk, elements - first),
                 [&](int64_t logical, int64_t local, int64_t count) {
                   for (int64_t i = 0; i < count; ++i) {
                     ++seen[static_cast<size_t>(logical + i)];
                     int64_t rest = logical + i, place = 0, scale = 1;
                     for (size_t dim = tensor.shape.size(); dim-- > 0;) {
                       place +=
                           (rest % tensor.shape[dim] - shard.dims[dim].begin) *
                           scale;
                       rest /= tensor.shape[dim];
                       scale *= shard.dims[dim].local;
                     }
                     ASSERT_EQ(place, local + i);
                   }
                 });
  }
  for (int count : seen)
    ASSERT_EQ(count, 1);
}

TEST(Shard, RunsCoverTheTensor) {
  ShardAxis two = {"a", 2, 1}, three = {"b", 3, 2};
  for (int64_t chunk : {1, 4, 7, 1000}) {
    checkRuns(tensorOf({7}, {{two}}), 2, chunk);
    checkRuns(tensorOf({5, 3}, {{two}, {}}), 2, chunk);
    checkRuns(tensorOf({5, 3}, {{}, {two}}), 2, chunk);
    checkRuns(tensorOf({5, 7, 3}, {{two}, {three}, {}}), 6, chunk);
    checkRuns(tensorOf({5, 7, 3}, {{three, two}, {}, {}}), 6, chunk);
    checkRuns(tensorOf({4, 5, 7}, {{}, {two}, {three}}), 6, chunk);
    checkRuns(tensorOf({}, {}), 1, chunk);
  }
}

TEST(Random, PhiloxKnownAnswers) {
  // kat_vectors of Random123.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Philox{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Philox{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (Philox{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

double normalAt(PhiloxKey key, uint64_t element, uint64_t step) {
  double value;
  normals(key, element, 1, step, &value);
  return value;
}

TEST(Random, NormalsAreBoxAndMullers) {
  PhiloxKey key = randomKey(7, "wte.weight");
  for (uint64_t i = 0; i < 100000; ++i) {
    Philox words = philox4x32({static_cast<uint32_t>(i), 0, 5, 0}, key);
    double u = (words[0] + 0.5) / 4294967296.0;
    double v = (words[1] + 0.5) / 4294967296.0;
    double expected = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
    ASSERT_NEAR(normalAt(key, i, 5), expected, 1e-11) << i;
  }
}

TEST(Random, NormalsHaveTheirMoments) {
  PhiloxKey key = randomKey(7, "wte.weight");
  constexpr uint64_t count = 100000;
  std::vector<double> values(count);
  normals(key, 0, count, 0, values.data());
  double sum = 0, squares = 0, fourth = 0;
  for (double value : values) {
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NEAR(squares / count, 1, 0.03);
  EXPECT_NEAR(fourth / count, 3, 0.2);
  // Alone or among others, an element has the same bits.
  for (uint64_t i : {0, 1, 77, 99999})
    EXPECT_EQ(values[i], normalAt(key, i, 0));
  EXPECT_NE(values[1], normalAt(key, 1, 1));
  EXPECT_NE(values[1], normalAt(randomKey(8, "wte.weight"), 1, 0));
}

TEST(Random, PermutationVisitsAllOnce) {
  for (uint64_t size : {1, 2, 3, 4, 5, 16, 17, 1000}) {
    Permutation permutation(5, size);
    for (uint64_t epoch : {0, 1}) {
      std::set<uint64_t> seen;
      for (uint64_t i = 0; i < size; ++i)
        seen.insert(permutation(epoch, i));
      EXPECT_EQ(seen.size(), size);
      EXPECT_LT(*seen.rbegin(), size);
    }
  }
  Permutation permutation(5, 1000);
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i)
    same += permutation(0, i) == permutation(1, i);
  EXPECT_LT(same, 20);
}

TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  std::vector<uint8_t> zeros(32, 0), ones(32, 0xff);
  EXPECT_EQ(crc32c(zeros.data(), 32), 0x8a9136aau); // RFC 3720
  EXPECT_EQ(crc32c(ones.data(), 32), 0x62a8ab43u);
}

TEST(Crc32c, LongDataEqualsPieces) {
  std::vector<uint8_t> data(50001);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<uint8_t>(i * i >> 3);
  uint32_t whole = crc32c(data.data(), data.size());
  for (size_t cut : {1, 7, 1000, 20000}) {
    uint32_t pieces = 0;
    for (size_t at = 0; at < data.size(); at += cut)
      pieces =
          crc32c(data.data() + at, std::min(cut, data.size() - at), pieces);
    EXPECT_EQ(pieces, whole) << cut;
  }
}

TEST(Gemm, EqualsLoops) {
  Status opened =
      openLibraries({{"oneDNN", "libdnnl.so.2", "matrix products"}});
  if (!opened.ok())
    GTEST_SKIP() << opened.text();
  constexpr int64_t m = 5, n = 7, k = 3, batch = 2;
  std::vector<float> a(m * k * batch), b(n * k), c(m * n * batch, 2);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<float>(i % 5) - 2;
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<float>(i % 7) - 3;
  for (bool tA : {false, true})
    for (bool tB : {false, true}) {
      std::vector<float> result = c;
      // The same B for both products.
      ASSERT_EQ(
          gemm({tA, tB, m, n, k, 2, a.data(), tA ? m : k, b.data(), tB ? k : n,
                0.5f, result.data(), n, batch, m * k, 0, m * n}),
          0);
      for (int64_t p = 0; p < batch; ++p)
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            float sum = 0;
            for (int64_t x = 0; x < k; ++x)
              sum += a[p * m * k + (tA ? x * m + i : i * k + x)] *
                     b[tB ? j * k + x : x * n + j];
            EXPECT_EQ(result[(p * m + i) * n + j], 2 * sum + 0.5f * 2);
          }
    }
}

TEST(Gemm, NamesThePackageOfAMissingLibrary) {
  Status status =
      openLibraries({{"oneDNN", "libdnnl.so.99", "matrix products"}});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.text().find("libdnnl2"), std::string::npos);
  EXPECT_NE(status.text().find("matrix products"), std::string::npos);
}

} // namespace
