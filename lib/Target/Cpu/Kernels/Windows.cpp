//===- Windows.cpp - Convolutions, pools, rotary embedding ----------------===//
//
// Tensors are [batch, channels, depth, height, width]; fewer spatial dimensions
// have size 1 in front.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

using namespace espalier::kernels;

namespace {

struct Window {
  int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];

  INLINE int64_t inSize() const { return in[0] * in[1] * in[2]; }
  INLINE int64_t outSize() const { return out[0] * out[1] * out[2]; }
  INLINE int64_t kernelSize() const {
    return kernel[0] * kernel[1] * kernel[2];
  }
  /// Whether patches are the image itself.
  INLINE bool isPointwise() const {
    return kernelSize() == 1 && stride[0] * stride[1] * stride[2] == 1 &&
           pad[0] + pad[1] + pad[2] == 0 && inSize() == outSize();
  }
  /// The input's index at a position of the output and the kernel.
  INLINE int64_t source(int dim, int64_t position, int64_t tap) const {
    return position * stride[dim] - pad[dim] + tap * dilation[dim];
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Convolution: patches, and a product of matrices
//===----------------------------------------------------------------------===//

/// visit(patch offset, image offset or -1, index of the last dimension) for all
/// elements of a channel's patches, [kernel][out].
template <typename Visit>
INLINE void forPatches(const Window &w, Visit visit) {
  int64_t patch = 0;
  for (int64_t kd = 0; kd < w.kernel[0]; ++kd)
    for (int64_t kh = 0; kh < w.kernel[1]; ++kh)
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw)
        for (int64_t od = 0; od < w.out[0]; ++od)
          for (int64_t oh = 0; oh < w.out[1]; ++oh, patch += w.out[2]) {
            int64_t d = w.source(0, od, kd), h = w.source(1, oh, kh);
            bool inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1];
            visit(patch, inside ? (d * w.in[1] + h) * w.in[2] : -1,
                  w.source(2, 0, kw));
          }
}

template <typename Real>
INLINE void makePatches(const Real *image, Real *patches, int64_t channels,
                        const Window &w) {
  for (int64_t c = 0; c < channels; ++c) {
    forPatches(w, [&](int64_t patch, int64_t row, int64_t first) {
      for (int64_t o = 0; o < w.out[2]; ++o) {
        int64_t i = first + o * w.stride[2];
        bool inside = row >= 0 && i >= 0 && i < w.in[2];
        patches[patch + o] = inside ? image[row + i] : 0;
      }
    });
    image += w.inSize();
    patches += w.kernelSize() * w.outSize();
  }
}

template <typename Real>
INLINE void addPatches(const Real *patches, Real *image, int64_t channels,
                       const Window &w) {
  for (int64_t i = 0; i < channels * w.inSize(); ++i)
    image[i] = 0;
  for (int64_t c = 0; c < channels; ++c) {
    forPatches(w, [&](int64_t patch, int64_t row, int64_t first) {
      if (row < 0)
        return;
      for (int64_t o = 0; o < w.out[2]; ++o) {
        int64_t i = first + o * w.stride[2];
        if (i >= 0 && i < w.in[2])
          image[row + i] += patches[patch + o];
      }
    });
    image += w.inSize();
    patches += w.kernelSize() * w.outSize();
  }
}

/// C = op(A) op(B) + beta C, row-major and dense.
INLINE void product(Context *context, int32_t ta, int32_t tb, int64_t m,
                    int64_t n, int64_t k, const float *a, const float *b,
                    float beta, float *c) {
  espalierRtGemm(context, ta, tb, m, n, k, 1.0f, a, ta ? m : k, b, tb ? k : n,
                 beta, c, n, 1, 0, 0, 0);
}

INLINE void product(Context *, int32_t ta, int32_t tb, int64_t m, int64_t n,
                    int64_t k, const double *a, const double *b, double beta,
                    double *c) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = beta == 0 ? 0 : c[i * n + j];
      for (int64_t p = 0; p < k; ++p)
        sum += a[ta ? p * m + i : i * k + p] * b[tb ? j * k + p : p * n + j];
      c[i * n + j] = sum;
    }
}

namespace {

template <typename Real>
struct Convolution {
  Context *context;
  int64_t batch, channels, features, groups; // in all groups
  Window w;
  Real *patches;

  INLINE int64_t groupChannels() const { return channels / groups; }
  INLINE int64_t groupFeatures() const { return features / groups; }
  INLINE int64_t taps() const { return groupChannels() * w.kernelSize(); }

  /// visit(sample, image of group, filter of group, result of group).
  template <typename X, typename F, typename Y, typename Visit>
  INLINE void forGroups(X *x, F *filter, Y *y, Visit visit) const {
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t g = 0; g < groups; ++g)
        visit(n, x + (n * channels + g * groupChannels()) * w.inSize(),
              filter + g * groupFeatures() * taps(),
              y + (n * features + g * groupFeatures()) * w.outSize());
  }

  INLINE const Real *patchesOf(const Real *x) const {
    if (w.isPointwise())
      return x;
    makePatches(x, patches, groupChannels(), w);
    return patches;
  }

  INLINE void forward(const Real *x, const Real *filter, Real *y) const {
    forGroups(x, filter, y,
              [&](int64_t, const Real *gx, const Real *gf, Real *gy) {
                product(context, 0, 0, groupFeatures(), w.outSize(), taps(), gf,
                        patchesOf(gx), Real(0), gy);
              });
  }

  INLINE void inputGrad(Real *dx, const Real *filter, const Real *dy) const {
    forGroups(dx, filter, dy,
              [&](int64_t, Real *gx, const Real *gf, const Real *gy) {
                Real *columns = w.isPointwise() ? gx : patches;
                product(context, 1, 0, taps(), w.outSize(), groupFeatures(), gf,
                        gy, Real(0), columns);
                if (!w.isPointwise())
                  addPatches(patches, gx, groupChannels(), w);
              });
  }

  INLINE void filterGrad(const Real *x, Real *df, const Real *dy) const {
    forGroups(x, df, dy,
              [&](int64_t n, const Real *gx, Real *gf, const Real *gy) {
                product(context, 0, 1, groupFeatures(), taps(), w.outSize(), gy,
                        patchesOf(gx), Real(n > 0), gf);
              });
  }
};

} // namespace

#define WINDOW                                                                 \
  int64_t i0, int64_t i1, int64_t i2, int64_t o0, int64_t o1, int64_t o2,      \
      int64_t k0, int64_t k1, int64_t k2, int64_t s0, int64_t s1, int64_t s2,  \
      int64_t p0, int64_t p1, int64_t p2, int64_t d0, int64_t d1, int64_t d2
#define WINDOW_VALUE                                                           \
  {                                                                            \
    {i0, i1, i2}, {o0, o1, o2}, {k0, k1, k2}, {s0, s1, s2}, {p0, p1, p2}, {    \
      d0, d1, d2                                                               \
    }                                                                          \
  }

#define CONVOLUTION(NAME, METHOD, REAL, X, F, Y)                               \
  KERNEL(NAME)(Context * context, X * x, F * filter, Y * y, REAL * patches,    \
               int64_t batch, int64_t channels, int64_t features,              \
               int64_t groups, WINDOW) {                                       \
    Convolution<REAL>{context, batch,        channels, features,               \
                      groups,  WINDOW_VALUE, patches}                          \
        .METHOD(x, filter, y);                                                 \
  }
#define CONVOLUTIONS(REAL, SUFFIX)                                             \
  CONVOLUTION(conv_##SUFFIX, forward, REAL, const REAL, const REAL, REAL)      \
  CONVOLUTION(conv_input_grad_##SUFFIX, inputGrad, REAL, REAL, const REAL,     \
              const REAL)                                                      \
  CONVOLUTION(conv_filter_grad_##SUFFIX, filterGrad, REAL, const REAL, REAL,   \
              const REAL)

CONVOLUTIONS(float, f32)
CONVOLUTIONS(double, f64)

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// visit(offset in the image) for what a window covers, row-major.
template <typename Visit>
INLINE void forWindow(const Window &w, int64_t od, int64_t oh, int64_t ow,
                      Visit visit) {
  for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
    int64_t d = w.source(0, od, kd);
    if (d < 0 || d >= w.in[0])
      continue;
    for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
      int64_t h = w.source(1, oh, kh);
      if (h < 0 || h >= w.in[1])
        continue;
      for (int64_t kw = 0; kw < w.kernel[2]; ++kw) {
        int64_t i = w.source(2, ow, kw);
        if (i >= 0 && i < w.in[2])
          visit((d * w.in[1] + h) * w.in[2] + i);
      }
    }
  }
}

/// visit(plane, od, oh, ow, offset in the output) for all outputs.
template <typename Visit>
INLINE void forOutputs(int64_t planes, const Window &w, Visit visit) {
  int64_t at = 0;
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t od = 0; od < w.out[0]; ++od)
      for (int64_t oh = 0; oh < w.out[1]; ++oh)
        for (int64_t ow = 0; ow < w.out[2]; ++ow)
          visit(plane, od, oh, ow, at++);
}

template <typename Real>
INLINE void maxPool(const Real *x, Real *y, int64_t planes, const Window &w) {
  forOutputs(
      planes, w,
      [&](int64_t plane, int64_t od, int64_t oh, int64_t ow, int64_t at) {
        const Real *image = x + plane * w.inSize();
        Real most = minusInfinity<Real>;
        forWindow(w, od, oh, ow, [&](int64_t i) {
          // NaN stays.
          most = image[i] > most || image[i] != image[i] ? image[i] : most;
        });
        y[at] = most;
      });
}

template <typename Real>
INLINE void maxPoolGrad(const Real *x, const Real *dy, Real *dx, int64_t planes,
                        const Window &w) {
  for (int64_t i = 0; i < planes * w.inSize(); ++i)
    dx[i] = 0;
  forOutputs(
      planes, w,
      [&](int64_t plane, int64_t od, int64_t oh, int64_t ow, int64_t at) {
        const Real *image = x + plane * w.inSize();
        Real most = minusInfinity<Real>;
        int64_t first = -1;
        forWindow(w, od, oh, ow, [&](int64_t i) {
          bool larger = image[i] > most || first < 0 ||
                        (image[i] != image[i] && most == most);
          most = larger ? image[i] : most;
          first = larger ? i : first;
        });
        if (first >= 0)
          dx[plane * w.inSize() + first] += dy[at];
      });
}

/// How many elements a mean is over. Padding behind the high pad never counts.
INLINE int64_t windowCount(const Window &w, const int64_t (&high)[3],
                           int64_t countPads, const int64_t (&position)[3]) {
  int64_t count = 1;
  for (int dim = 0; dim < 3; ++dim) {
    int64_t begin = countPads ? -w.pad[dim] : 0;
    int64_t end = countPads ? w.in[dim] + high[dim] : w.in[dim];
    int64_t inside = 0;
    for (int64_t tap = 0; tap < w.kernel[dim]; ++tap) {
      int64_t i = w.source(dim, position[dim], tap);
      inside += i >= begin && i < end;
    }
    count *= inside;
  }
  return count;
}

template <typename Real>
INLINE void avgPool(const Real *x, Real *y, int64_t planes, const Window &w,
                    const int64_t (&high)[3], int64_t countPads) {
  forOutputs(
      planes, w,
      [&](int64_t plane, int64_t od, int64_t oh, int64_t ow, int64_t at) {
        Real sum = 0;
        forWindow(w, od, oh, ow,
                  [&](int64_t i) { sum += x[plane * w.inSize() + i]; });
        y[at] = sum / Real(windowCount(w, high, countPads, {od, oh, ow}));
      });
}

template <typename Real>
INLINE void avgPoolGrad(const Real *dy, Real *dx, int64_t planes,
                        const Window &w, const int64_t (&high)[3],
                        int64_t countPads) {
  for (int64_t i = 0; i < planes * w.inSize(); ++i)
    dx[i] = 0;
  forOutputs(
      planes, w,
      [&](int64_t plane, int64_t od, int64_t oh, int64_t ow, int64_t at) {
        Real share =
            dy[at] / Real(windowCount(w, high, countPads, {od, oh, ow}));
        forWindow(w, od, oh, ow,
                  [&](int64_t i) { dx[plane * w.inSize() + i] += share; });
      });
}

#define POOLS(REAL, SUFFIX)                                                    \
  KERNEL(max_pool_##SUFFIX)(Context *, const REAL *x, REAL *y, int64_t planes, \
                            WINDOW, int64_t, int64_t, int64_t, int64_t) {      \
    maxPool(x, y, planes, WINDOW_VALUE);                                       \
  }                                                                            \
  KERNEL(max_pool_grad_##SUFFIX)(Context *, const REAL *x, const REAL *dy,     \
                                 REAL *dx, int64_t planes, WINDOW, int64_t,    \
                                 int64_t, int64_t, int64_t) {                  \
    maxPoolGrad(x, dy, dx, planes, WINDOW_VALUE);                              \
  }                                                                            \
  KERNEL(avg_pool_##SUFFIX)(Context *, const REAL *x, REAL *y, int64_t planes, \
                            WINDOW, int64_t h0, int64_t h1, int64_t h2,        \
                            int64_t countPads) {                               \
    avgPool(x, y, planes, WINDOW_VALUE, {h0, h1, h2}, countPads);              \
  }                                                                            \
  KERNEL(avg_pool_grad_##SUFFIX)(Context *, const REAL *dy, REAL *dx,          \
                                 int64_t planes, WINDOW, int64_t h0,           \
                                 int64_t h1, int64_t h2, int64_t countPads) {  \
    avgPoolGrad(dy, dx, planes, WINDOW_VALUE, {h0, h1, h2}, countPads);        \
  }

POOLS(float, f32)
POOLS(double, f64)

//===----------------------------------------------------------------------===//
// Rotary position embedding
//===----------------------------------------------------------------------===//

#define ROPE(REAL, SUFFIX)                                                     \
  KERNEL(rope_##SUFFIX)(                                                       \
      Context *, const REAL *x, const REAL *cosines, const REAL *sines,        \
      REAL *y, int64_t n0, int64_t n1, int64_t n2, int64_t width, int64_t x0,  \
      int64_t x1, int64_t x2, int64_t y0, int64_t y1, int64_t y2, int64_t c0,  \
      int64_t c1, int64_t c2, int64_t interleaved, int64_t inverse) {          \
    const int64_t half = width / 2;                                            \
    for (int64_t a = 0; a < n0; ++a)                                           \
      for (int64_t b = 0; b < n1; ++b)                                         \
        for (int64_t s = 0; s < n2; ++s) {                                     \
          const REAL *from = x + a * x0 + b * x1 + s * x2;                     \
          REAL *to = y + a * y0 + b * y1 + s * y2;                             \
          int64_t angle = a * c0 + b * c1 + s * c2;                            \
          for (int64_t j = 0; j < half; ++j) {                                 \
            int64_t first = interleaved ? 2 * j : j;                           \
            int64_t second = interleaved ? first + 1 : half + j;               \
            REAL c = cosines[angle + j];                                       \
            REAL t = inverse ? -sines[angle + j] : sines[angle + j];           \
            REAL u = from[first], v = from[second];                            \
            to[first] = u * c - v * t;                                         \
            to[second] = v * c + u * t;                                        \
          }                                                                    \
        }                                                                      \
  }

ROPE(float, f32)
ROPE(double, f64)
