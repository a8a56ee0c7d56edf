//===- Rows.cpp - Softmax, norms and cross-entropy ------------------------===//
//
// All go over rows of contiguous elements, in order.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

using namespace espalier::kernels;

//===----------------------------------------------------------------------===//
// Softmax. The output may be an input.
//===----------------------------------------------------------------------===//

template <typename Real>
INLINE void softmax(const Real *x, Real *y, int64_t rows, int64_t columns,
                    int64_t zeroMasked) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    Real most = rowMax(columns, x);
    if (zeroMasked && most == minusInfinity<Real>) {
      for (int64_t i = 0; i < columns; ++i)
        y[i] = 0;
      continue;
    }
    for (int64_t i = 0; i < columns; ++i)
      y[i] = exp(x[i] - most);
    Real scale = 1 / rowSum<Real>(columns, [&](int64_t i) { return y[i]; });
    for (int64_t i = 0; i < columns; ++i)
      y[i] *= scale;
  }
}

template <typename Real>
INLINE void softmaxGrad(const Real *y, const Real *dy, Real *dx, int64_t rows,
                        int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    Real dot = rowSum<Real>(columns, [&](int64_t i) { return y[i] * dy[i]; });
    for (int64_t i = 0; i < columns; ++i)
      dx[i] = y[i] * (dy[i] - dot);
    y += columns, dy += columns, dx += columns;
  }
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

template <typename Real>
struct Statistics {
  Real mean, inverse; // 1 / standard deviation
};

template <typename Real>
INLINE Statistics<Real> statisticsOf(const Real *x, int64_t columns,
                                     double epsilon) {
  Real mean =
      rowSum<Real>(columns, [&](int64_t i) { return x[i]; }) / Real(columns);
  Real variance = rowSum<Real>(columns,
                               [&](int64_t i) {
                                 Real centred = x[i] - mean;
                                 return centred * centred;
                               }) /
                  Real(columns);
  return {mean, 1 / sqrt(variance + Real(epsilon))};
}

template <typename Real>
INLINE void layerNorm(const Real *x, const Real *scale, const Real *bias,
                      Real *y, int64_t rows, int64_t columns, double epsilon) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    Statistics<Real> s = statisticsOf(x, columns, epsilon);
    for (int64_t i = 0; i < columns; ++i) {
      Real v = (x[i] - s.mean) * s.inverse;
      if (scale)
        v *= scale[i];
      if (bias)
        v += bias[i];
      y[i] = v;
    }
  }
}

template <typename Real>
INLINE void layerNormGrad(const Real *x, const Real *dy, const Real *scale,
                          Real *dx, Real *dscale, Real *dbias, int64_t rows,
                          int64_t columns, double epsilon) {
  for (int64_t i = 0; i < columns; ++i)
    dscale[i] = dbias[i] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    Statistics<Real> s = statisticsOf(x, columns, epsilon);
    auto g = [&](int64_t i) { return scale ? dy[i] * scale[i] : dy[i]; };
    auto normal = [&](int64_t i) { return (x[i] - s.mean) * s.inverse; };
    Real mean = rowSum<Real>(columns, g) / Real(columns);
    Real slope =
        rowSum<Real>(columns, [&](int64_t i) { return g(i) * normal(i); }) /
        Real(columns);
    for (int64_t i = 0; i < columns; ++i) {
      Real n = normal(i);
      dscale[i] += dy[i] * n;
      dbias[i] += dy[i];
      dx[i] = s.inverse * (g(i) - mean - n * slope);
    }
    x += columns, dy += columns, dx += columns;
  }
}

template <typename Real>
INLINE Real inverseRms(const Real *x, int64_t columns, double epsilon) {
  Real mean = rowSum<Real>(columns, [&](int64_t i) { return x[i] * x[i]; }) /
              Real(columns);
  return 1 / sqrt(mean + Real(epsilon));
}

template <typename Real>
INLINE void rmsNorm(const Real *x, const Real *scale, Real *y, int64_t rows,
                    int64_t columns, double epsilon) {
  for (int64_t row = 0; row < rows; ++row, x += columns, y += columns) {
    Real inverse = inverseRms(x, columns, epsilon);
    for (int64_t i = 0; i < columns; ++i)
      y[i] = scale ? x[i] * inverse * scale[i] : x[i] * inverse;
  }
}

template <typename Real>
INLINE void rmsNormGrad(const Real *x, const Real *dy, const Real *scale,
                        Real *dx, Real *dscale, int64_t rows, int64_t columns,
                        double epsilon) {
  for (int64_t i = 0; i < columns; ++i)
    dscale[i] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    Real inverse = inverseRms(x, columns, epsilon);
    auto g = [&](int64_t i) { return scale ? dy[i] * scale[i] : dy[i]; };
    Real slope = rowSum<Real>(columns, [&](int64_t i) { return g(i) * x[i]; }) *
                 inverse * inverse / Real(columns);
    for (int64_t i = 0; i < columns; ++i) {
      dscale[i] += dy[i] * x[i] * inverse;
      dx[i] = inverse * (g(i) - x[i] * slope);
    }
    x += columns, dy += columns, dx += columns;
  }
}

//===----------------------------------------------------------------------===//
// Cross-entropy
//===----------------------------------------------------------------------===//

template <typename Real, typename Index>
INLINE void crossEntropy(const Real *logits, const Index *labels, Real *loss,
                         Real *lse, int64_t rows, int64_t columns,
                         int64_t ignored) {
  for (int64_t row = 0; row < rows; ++row, logits += columns) {
    Real most = rowMax(columns, logits);
    Real sum =
        rowSum<Real>(columns, [&](int64_t i) { return exp(logits[i] - most); });
    lse[row] = most + log(sum);
    int64_t label = labels[row];
    loss[row] = label == ignored ? 0 : lse[row] - logits[label];
  }
}

/// `dlogits` may be `logits`.
template <typename Real, typename Index>
INLINE void crossEntropyGrad(const Real *logits, const Index *labels,
                             const Real *lse, const Real *dloss, Real *dlogits,
                             int64_t rows, int64_t columns, int64_t ignored) {
  for (int64_t row = 0; row < rows; ++row) {
    int64_t label = labels[row];
    if (label == ignored) {
      for (int64_t i = 0; i < columns; ++i)
        dlogits[i] = 0;
    } else {
      Real shift = lse[row], factor = dloss[row];
      for (int64_t i = 0; i < columns; ++i)
        dlogits[i] = exp(logits[i] - shift) * factor;
      dlogits[label] -= factor;
    }
    logits += columns, dlogits += columns;
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

#define ROW_KERNELS(REAL, SUFFIX)                                              \
  KERNEL(softmax_##SUFFIX)(Context *, const REAL *x, REAL *y, int64_t rows,    \
                           int64_t columns, int64_t zeroMasked) {              \
    softmax(x, y, rows, columns, zeroMasked);                                  \
  }                                                                            \
  KERNEL(softmax_grad_##SUFFIX)(Context *, const REAL *y, const REAL *dy,      \
                                REAL *dx, int64_t rows, int64_t columns) {     \
    softmaxGrad(y, dy, dx, rows, columns);                                     \
  }                                                                            \
  KERNEL(layer_norm_##SUFFIX)(Context *, const REAL *x, const REAL *scale,     \
                              const REAL *bias, REAL *y, int64_t rows,         \
                              int64_t columns, double epsilon) {               \
    layerNorm(x, scale, bias, y, rows, columns, epsilon);                      \
  }                                                                            \
  KERNEL(layer_norm_grad_##SUFFIX)(Context *, const REAL *x, const REAL *dy,   \
                                   const REAL *scale, REAL *dx, REAL *dscale,  \
                                   REAL *dbias, int64_t rows, int64_t columns, \
                                   double epsilon) {                           \
    layerNormGrad(x, dy, scale, dx, dscale, dbias, rows, columns, epsilon);    \
  }                                                                            \
  KERNEL(rms_norm_##SUFFIX)(Context *, const REAL *x, const REAL *scale,       \
                            REAL *y, int64_t rows, int64_t columns,            \
                            double epsilon) {                                  \
    rmsNorm(x, scale, y, rows, columns, epsilon);                              \
  }                                                                            \
  KERNEL(rms_norm_grad_##SUFFIX)(                                              \
      Context *, const REAL *x, const REAL *dy, const REAL *scale, REAL *dx,   \
      REAL *dscale, int64_t rows, int64_t columns, double epsilon) {           \
    rmsNormGrad(x, dy, scale, dx, dscale, rows, columns, epsilon);             \
  }

#define LABEL_KERNELS(REAL, SUFFIX, INDEX, INDEX_SUFFIX)                       \
  KERNEL(cross_entropy_##SUFFIX##_##INDEX_SUFFIX)                              \
  (Context *, const REAL *logits, const INDEX *labels, REAL *loss, REAL *lse,  \
   int64_t rows, int64_t columns, int64_t ignored) {                           \
    crossEntropy(logits, labels, loss, lse, rows, columns, ignored);           \
  }                                                                            \
  KERNEL(cross_entropy_grad_##SUFFIX##_##INDEX_SUFFIX)                         \
  (Context *, const REAL *logits, const INDEX *labels, const REAL *lse,        \
   const REAL *dloss, REAL *dlogits, int64_t rows, int64_t columns,            \
   int64_t ignored) {                                                          \
    crossEntropyGrad(logits, labels, lse, dloss, dlogits, rows, columns,       \
                     ignored);                                                 \
  }

ROW_KERNELS(float, f32)
ROW_KERNELS(double, f64)
LABEL_KERNELS(float, f32, int64_t, i64)
LABEL_KERNELS(float, f32, int32_t, i32)
LABEL_KERNELS(double, f64, int64_t, i64)
LABEL_KERNELS(double, f64, int32_t, i32)
