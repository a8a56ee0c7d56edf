//===- Tables.cpp - Rows of tables, random numbers, fp64 products ---------===//

#include "Kernels.h"

using namespace espalier::kernels;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

template <typename Element, typename Index>
INLINE void gather(const Element *table, const Index *indices, Element *result,
                   int64_t count, int64_t width) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < width; ++j)
      result[i * width + j] = table[int64_t(indices[i]) * width + j];
}

/// Adds to what the table holds.
template <typename Real, typename Index>
INLINE void scatterAdd(const Index *indices, const Real *updates, Real *table,
                       int64_t count, int64_t width) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < width; ++j)
      table[int64_t(indices[i]) * width + j] += updates[i * width + j];
}

#define GATHER(BITS, INDEX, SUFFIX)                                            \
  KERNEL(gather_##BITS##_##SUFFIX)(                                            \
      Context *, const uint##BITS##_t *table, const INDEX *indices,            \
      uint##BITS##_t *result, int64_t count, int64_t, int64_t width) {         \
    gather(table, indices, result, count, width);                              \
  }
#define SCATTER(REAL, SUFFIX, INDEX, INDEX_SUFFIX)                             \
  KERNEL(scatter_add_##SUFFIX##_##INDEX_SUFFIX)(                               \
      Context *, const INDEX *indices, const REAL *updates, REAL *table,       \
      int64_t count, int64_t, int64_t width) {                                 \
    scatterAdd(indices, updates, table, count, width);                         \
  }

GATHER(8, int64_t, i64)
GATHER(8, int32_t, i32)
GATHER(16, int64_t, i64)
GATHER(16, int32_t, i32)
GATHER(32, int64_t, i64)
GATHER(32, int32_t, i32)
GATHER(64, int64_t, i64)
GATHER(64, int32_t, i32)
SCATTER(float, f32, int64_t, i64)
SCATTER(float, f32, int32_t, i32)
SCATTER(double, f64, int64_t, i64)
SCATTER(double, f64, int32_t, i32)

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

/// The first word of Philox4x32-10 (Salmon et al., SC 2011).
INLINE uint32_t philox(uint64_t element, uint64_t step, uint32_t key0,
                       uint32_t key1) {
  uint32_t c0 = uint32_t(element), c1 = uint32_t(element >> 32);
  uint32_t c2 = uint32_t(step), c3 = uint32_t(step >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t left = uint64_t(0xD2511F53u) * c0;
    uint64_t right = uint64_t(0xCD9E8D57u) * c2;
    c0 = uint32_t(right >> 32) ^ c1 ^ key0;
    c1 = uint32_t(right);
    c2 = uint32_t(left >> 32) ^ c3 ^ key1;
    c3 = uint32_t(left);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c0;
}

/// `shape` and `logical` have six dimensions; `offsets` lacks the first
/// `missing` of them.
template <typename Real>
INLINE void randomUniform(const int64_t *rng, const int64_t *offsets,
                          Real *result, int64_t hash, int64_t missing,
                          const int64_t (&shape)[6],
                          const int64_t (&logical)[6]) {
  uint64_t seed = uint64_t(rng[0]), step = uint64_t(rng[1]);
  uint32_t key0 = uint32_t(seed);
  uint32_t key1 = uint32_t(hash) ^ uint32_t(seed >> 32);
  int64_t rows = 1, total = 1;
  for (int dim = 0; dim < 6; ++dim) {
    rows *= dim < 5 ? shape[dim] : 1;
    total *= logical[dim];
  }
  auto offsetOf = [&](int64_t dim) {
    return offsets && dim >= missing ? offsets[dim - missing] : 0;
  };
  for (int64_t row = 0; row < rows; ++row) {
    // The row's place in the logical tensor.
    int64_t rest = row, element = 0, below = logical[5];
    for (int dim = 4; dim >= 0; --dim) {
      element += (rest % shape[dim] + offsetOf(dim)) * below;
      rest /= shape[dim];
      below *= logical[dim];
    }
    element += rng[2] * total + offsetOf(5);
    for (int64_t i = 0; i < shape[5]; ++i) {
      uint32_t word = philox(uint64_t(element + i), step, key0, key1);
      result[row * shape[5] + i] =
          Real(int32_t(word >> 8)) * Real(1.0 / 16777216.0);
    }
  }
}

#define RANDOM(REAL, SUFFIX)                                                   \
  KERNEL(random_uniform_##SUFFIX)(                                             \
      Context *, const int64_t *rng, const int64_t *offsets, REAL *result,     \
      int64_t hash, int64_t missing, int64_t s0, int64_t s1, int64_t s2,       \
      int64_t s3, int64_t s4, int64_t s5, int64_t l0, int64_t l1, int64_t l2,  \
      int64_t l3, int64_t l4, int64_t l5) {                                    \
    randomUniform<REAL>(rng, offsets, result, hash, missing,                   \
                        {s0, s1, s2, s3, s4, s5}, {l0, l1, l2, l3, l4, l5});   \
  }

RANDOM(float, f32)
RANDOM(double, f64)

//===----------------------------------------------------------------------===//
// Products in fp64, for which the runtime has no call
//===----------------------------------------------------------------------===//

KERNEL(gemm_f64)
(Context *, const double *a, const double *b, double *c, int64_t batch,
 int64_t m, int64_t n, int64_t k, int64_t batchA, int64_t rowA, int64_t columnA,
 int64_t batchB, int64_t rowB, int64_t columnB, int64_t batchC, int64_t rowC,
 int64_t columnC, int64_t accumulate) {
  for (int64_t s = 0; s < batch; ++s, a += batchA, b += batchB, c += batchC)
    for (int64_t i = 0; i < m; ++i) {
      if (!accumulate)
        for (int64_t j = 0; j < n; ++j)
          c[i * rowC + j * columnC] = 0;
      for (int64_t p = 0; p < k; ++p) {
        double factor = a[i * rowA + p * columnA];
        for (int64_t j = 0; j < n; ++j)
          c[i * rowC + j * columnC] += factor * b[p * rowB + j * columnB];
      }
    }
}
