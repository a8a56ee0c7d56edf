//===- TileProduct.h - Products of tiles in registers -----------*- C++ -*-===//

#ifndef ESPALIER_LIB_TARGET_CPU_KERNELS_TILEPRODUCT_H
#define ESPALIER_LIB_TARGET_CPU_KERNELS_TILEPRODUCT_H

#include "Kernels.h"

namespace espalier::kernels {

template <typename Real>
struct TileVector;
template <>
struct TileVector<float> {
  static constexpr int64_t width = 16;
  typedef float type __attribute__((ext_vector_type(16), aligned(4)));
};
template <>
struct TileVector<double> {
  static constexpr int64_t width = 8;
  typedef double type __attribute__((ext_vector_type(8), aligned(8)));
};

/// A multiple of every vector's width, to which tiles are padded.
INLINE constexpr int64_t padded(int64_t n) { return (n + 15) / 16 * 16; }

/// `Rows` rows of C, one vector of columns.
template <int Rows, typename Real>
INLINE void tileStrip(int64_t k, const Real *a, int64_t rowA, int64_t columnA,
                      const Real *b, int64_t rowB, Real *c, int64_t rowC,
                      bool accumulate) {
  using Vector = typename TileVector<Real>::type;
  Vector sum[Rows];
  for (int i = 0; i < Rows; ++i)
    sum[i] = accumulate ? *reinterpret_cast<const Vector *>(c + i * rowC)
                        : Vector(Real(0));
  for (int64_t p = 0; p < k; ++p) {
    Vector row = *reinterpret_cast<const Vector *>(b + p * rowB);
    for (int i = 0; i < Rows; ++i)
      sum[i] += Vector(a[i * rowA + p * columnA]) * row;
  }
  for (int i = 0; i < Rows; ++i)
    *reinterpret_cast<Vector *>(c + i * rowC) = sum[i];
}

/// C = A B, or C += A B. n is a multiple of 16; rows of B and C are contiguous,
/// A has any strides.
template <typename Real>
INLINE void tileProduct(int64_t m, int64_t n, int64_t k, const Real *a,
                        int64_t rowA, int64_t columnA, const Real *b,
                        int64_t rowB, Real *c, int64_t rowC, bool accumulate) {
  constexpr int64_t width = TileVector<Real>::width;
  for (int64_t j = 0; j < n; j += width) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4)
      tileStrip<4>(k, a + i * rowA, rowA, columnA, b + j, rowB,
                   c + i * rowC + j, rowC, accumulate);
    for (; i < m; ++i)
      tileStrip<1>(k, a + i * rowA, rowA, columnA, b + j, rowB,
                   c + i * rowC + j, rowC, accumulate);
  }
}

} // namespace espalier::kernels

#endif // ESPALIER_LIB_TARGET_CPU_KERNELS_TILEPRODUCT_H
