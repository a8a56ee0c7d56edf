//===- Attention.cpp - Attention and its gradient, by tiles ---------------===//
//
// Tiles of 32 queries by 64 keys. The forward kernel keeps a running maximum
// and sum for each query, so that scores never leave the cache; the gradient
// computes them again from the saved log-sum-exp, in one pass over queries and
// keys that adds to dk and dv in a fixed order. With `causal`, tiles above the
// diagonal are skipped. Keys and values are packed once for all heads that
// share them, padded with zeros, so that every product is one of whole vectors.
//
//===----------------------------------------------------------------------===//

#include "TileProduct.h"

using namespace espalier::kernels;

namespace {

constexpr int64_t queryTile = 32, keyTile = 64;

enum class MaskKind { None, Boolean, Added };

/// Sizes: [batch, heads, s, d] queries, [batch, groups, t, d] keys,
/// [batch, groups, t, e] values.
struct Sizes {
  int64_t batch, heads, groups, s, t, d, e, causal;
  INLINE int64_t paddedT() const {
    return (t + keyTile - 1) / keyTile * keyTile;
  }
};

/// Where the rows of [batch, head] begin.
template <typename Real>
struct Rows {
  Real *data;
  int64_t batch, head, row; // strides
  INLINE Real *at(int64_t b, int64_t h, int64_t r) const {
    return data + b * batch + h * head + r * row;
  }
};

struct Mask {
  const void *data;
  int64_t batch, head, row, column;
};

template <typename Real>
using In = Rows<const Real>;

} // namespace

/// What a row of scores becomes: scaled and masked; what lies behind `visible`
/// keys is not looked at. Added masks and booleans have their own loops.
template <MaskKind kind, typename Real>
INLINE void maskScores(Real *scores, int64_t visible, double scale,
                       const Mask &mask, int64_t b, int64_t h, int64_t query,
                       int64_t key) {
  int64_t at =
      b * mask.batch + h * mask.head + query * mask.row + key * mask.column;
  for (int64_t j = 0; j < visible; ++j) {
    Real score = scores[j] * Real(scale);
    if (kind == MaskKind::Added)
      score += static_cast<const Real *>(mask.data)[at + j * mask.column];
    if (kind == MaskKind::Boolean)
      score = static_cast<const uint8_t *>(mask.data)[at + j * mask.column]
                  ? score
                  : minusInfinity<Real>;
    scores[j] = score;
  }
}

/// How many keys of a tile a query sees.
INLINE int64_t visibleKeys(const Sizes &sizes, int64_t query, int64_t key) {
  int64_t end = sizes.t;
  if (sizes.causal && query + sizes.t - sizes.s + 1 < end)
    end = query + sizes.t - sizes.s + 1;
  int64_t visible = end - key;
  return visible < 0 ? 0 : visible > keyTile ? keyTile : visible;
}

/// rows [count][width] to columns: [width][stride], zeros behind.
template <typename Real>
INLINE void packColumns(const Real *rows, int64_t row, int64_t count,
                        int64_t width, Real *packed, int64_t stride) {
  for (int64_t j = 0; j < width; ++j) {
    for (int64_t i = 0; i < count; ++i)
      packed[j * stride + i] = rows[i * row + j];
    for (int64_t i = count; i < stride; ++i)
      packed[j * stride + i] = 0;
  }
}

/// rows [count][width] to [all][padded(width)], zeros around.
template <typename Real>
INLINE void packRows(const Real *rows, int64_t row, int64_t count,
                     int64_t width, Real *packed, int64_t all) {
  int64_t stride = padded(width);
  for (int64_t i = 0; i < all; ++i)
    for (int64_t j = 0; j < stride; ++j)
      packed[i * stride + j] = i < count && j < width ? rows[i * row + j] : 0;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// A row of scores to weights; the running maximum and sum, and what the output
/// so far is to be multiplied by.
template <typename Real>
INLINE Real updateRow(Real *scores, int64_t visible, Real &most, Real &sum) {
  Real before = most;
  Real now = rowMax(visible, scores);
  most = now > most ? now : most;
  Real shift = most == minusInfinity<Real> ? Real(0) : most;
  for (int64_t j = 0; j < visible; ++j)
    scores[j] = exp(scores[j] - shift);
  for (int64_t j = visible; j < keyTile; ++j)
    scores[j] = 0;
  Real factor = exp(before - shift);
  sum = sum * factor +
        rowSum<Real>(keyTile, [&](int64_t j) { return scores[j]; });
  return factor;
}

/// All keys for one tile of queries.
template <MaskKind kind, typename Real>
INLINE void attendTile(const Sizes &sizes, const Real *q, int64_t rowQ,
                       const Real *keys, const Real *values, const Mask &mask,
                       double scale, int64_t b, int64_t h, int64_t first,
                       int64_t count, Real *out, int64_t rowOut, Real *lse,
                       Real *scores, Real *sums) {
  const int64_t width = padded(sizes.e), stride = sizes.paddedT();
  Real most[queryTile], sum[queryTile];
  for (int64_t i = 0; i < queryTile; ++i)
    most[i] = minusInfinity<Real>, sum[i] = 0;
  for (int64_t i = 0; i < queryTile * width; ++i)
    sums[i] = 0;
  for (int64_t key = 0; key < sizes.t; key += keyTile) {
    if (visibleKeys(sizes, first + count - 1, key) == 0)
      break;
    tileProduct(count, keyTile, sizes.d, q, rowQ, int64_t(1), keys + key,
                stride, scores, keyTile, false);
    for (int64_t i = 0; i < count; ++i) {
      int64_t visible = visibleKeys(sizes, first + i, key);
      Real *row = scores + i * keyTile;
      maskScores<kind>(row, visible, scale, mask, b, h, first + i, key);
      Real factor = updateRow(row, visible, most[i], sum[i]);
      for (int64_t j = 0; j < width; ++j)
        sums[i * width + j] *= factor;
    }
    tileProduct(count, width, keyTile, scores, keyTile, int64_t(1),
                values + key * width, width, sums, width, true);
  }
  for (int64_t i = 0; i < count; ++i) {
    bool sees = sum[i] != 0;
    Real factor = sees ? 1 / sum[i] : Real(0);
    for (int64_t j = 0; j < sizes.e; ++j)
      out[i * rowOut + j] = sums[i * width + j] * factor;
    lse[i] = sees ? most[i] + log(sum[i]) : minusInfinity<Real>;
  }
}

template <MaskKind kind, typename Real>
INLINE void attention(Sizes sizes, In<Real> q, In<Real> k, In<Real> v,
                      Mask mask, Rows<Real> out, Real *lse, Real *work,
                      double scale) {
  const int64_t stride = sizes.paddedT(), width = padded(sizes.e);
  Real *keys = work, *values = keys + sizes.d * stride;
  Real *scores = values + stride * width;
  Real *sums = scores + queryTile * keyTile;
  const int64_t share = sizes.heads / sizes.groups;
  for (int64_t b = 0; b < sizes.batch; ++b)
    for (int64_t g = 0; g < sizes.groups; ++g) {
      packColumns(k.at(b, g, 0), k.row, sizes.t, sizes.d, keys, stride);
      packRows(v.at(b, g, 0), v.row, sizes.t, sizes.e, values, stride);
      for (int64_t h = g * share; h < (g + 1) * share; ++h)
        for (int64_t first = 0; first < sizes.s; first += queryTile) {
          int64_t left = sizes.s - first;
          attendTile<kind>(
              sizes, q.at(b, h, first), q.row, keys, values, mask, scale, b, h,
              first, left < queryTile ? left : queryTile, out.at(b, h, first),
              out.row, lse + (b * sizes.heads + h) * sizes.s + first, scores,
              sums);
        }
    }
}

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

namespace {

/// What the gradient packs and sums up for one group of heads, and its tiles.
template <typename Real>
struct GradWork {
  Real *keyColumns, *valueColumns, *keyRows; // [d][T], [e][T], [T][d]
  Real *dk, *dv;                             // [T][d], [T][e]
  Real *queries, *douts, *dq;                // of a tile: rows
  Real *weights, *dweights;                  // [queryTile][keyTile]

  INLINE GradWork(Real *work, const Sizes &sizes) {
    const int64_t t = sizes.paddedT(), d = padded(sizes.d), e = padded(sizes.e);
    auto take = [&](int64_t count) {
      Real *result = work;
      work += count;
      return result;
    };
    keyColumns = take(d * t), valueColumns = take(e * t), keyRows = take(t * d);
    dk = take(t * d), dv = take(t * e);
    queries = take(queryTile * d), douts = take(queryTile * e);
    dq = take(queryTile * d);
    weights = take(queryTile * keyTile), dweights = take(queryTile * keyTile);
  }
};

} // namespace

/// Where |lse| is as large as this, it has no bits left for the sum of a row's
/// exponentials: in a row masked by a large finite number all scores are near
/// it.
constexpr double farScore = 1024;

/// Scores and their gradient, in place of weights and dweights. `share` scales
/// each row's probabilities.
template <MaskKind kind, typename Real>
INLINE void gradScores(const Sizes &sizes, GradWork<Real> work,
                       const Mask &mask, double scale, int64_t b, int64_t h,
                       int64_t first, int64_t count, int64_t key,
                       const Real *lse, const Real *share, const Real *delta) {
  for (int64_t i = 0; i < count; ++i) {
    Real *p = work.weights + i * keyTile, *dp = work.dweights + i * keyTile;
    int64_t visible = visibleKeys(sizes, first + i, key);
    if (lse[i] == minusInfinity<Real>)
      visible = 0;
    maskScores<kind>(p, visible, scale, mask, b, h, first + i, key);
    for (int64_t j = 0; j < visible; ++j) {
      p[j] = exp(p[j] - lse[i]) * share[i];
      dp[j] = p[j] * (dp[j] - delta[i]) * Real(scale);
    }
    for (int64_t j = visible; j < keyTile; ++j)
      p[j] = dp[j] = 0;
  }
  for (int64_t i = count * keyTile; i < queryTile * keyTile; ++i)
    work.weights[i] = work.dweights[i] = 0;
}

/// For each row of a tile what exp(score - lse) sums to, inverted: 1 but in
/// rows of far scores, for which all scores are computed once more.
template <MaskKind kind, typename Real>
INLINE void rowShares(const Sizes &sizes, GradWork<Real> work, const Mask &mask,
                      double scale, int64_t b, int64_t h, int64_t first,
                      int64_t count, const Real *lse, Real *share) {
  bool anyFar = false;
  for (int64_t i = 0; i < count; ++i) {
    bool isFar = lse[i] != minusInfinity<Real> &&
                 (lse[i] > Real(farScore) || lse[i] < Real(-farScore));
    share[i] = isFar ? 0 : 1;
    anyFar |= isFar;
  }
  if (!anyFar)
    return;
  const int64_t t = sizes.paddedT(), d = padded(sizes.d);
  Real sum[queryTile] = {};
  for (int64_t key = 0; key < sizes.t; key += keyTile) {
    tileProduct(queryTile, keyTile, sizes.d, work.queries, d, int64_t(1),
                work.keyColumns + key, t, work.weights, keyTile, false);
    for (int64_t i = 0; i < count; ++i) {
      int64_t visible = visibleKeys(sizes, first + i, key);
      Real *p = work.weights + i * keyTile;
      maskScores<kind>(p, visible, scale, mask, b, h, first + i, key);
      for (int64_t j = 0; share[i] == 0 && j < visible; ++j)
        sum[i] += exp(p[j] - lse[i]);
    }
  }
  for (int64_t i = 0; i < count; ++i)
    if (share[i] == 0)
      share[i] = 1 / sum[i];
}

/// All keys for one tile of queries, whose rows are packed.
template <MaskKind kind, typename Real>
INLINE void gradTile(const Sizes &sizes, GradWork<Real> work, const Mask &mask,
                     double scale, int64_t b, int64_t h, int64_t first,
                     int64_t count, const Real *lse, const Real *delta) {
  const int64_t t = sizes.paddedT(), d = padded(sizes.d), e = padded(sizes.e);
  const int64_t one = 1;
  for (int64_t i = 0; i < queryTile * d; ++i)
    work.dq[i] = 0;
  Real share[queryTile];
  rowShares<kind>(sizes, work, mask, scale, b, h, first, count, lse, share);
  for (int64_t key = 0; key < sizes.t; key += keyTile) {
    if (visibleKeys(sizes, first + count - 1, key) == 0)
      break;
    tileProduct(queryTile, keyTile, sizes.d, work.queries, d, one,
                work.keyColumns + key, t, work.weights, keyTile, false);
    tileProduct(queryTile, keyTile, sizes.e, work.douts, e, one,
                work.valueColumns + key, t, work.dweights, keyTile, false);
    gradScores<kind>(sizes, work, mask, scale, b, h, first, count, key, lse,
                     share, delta);
    tileProduct(keyTile, e, queryTile, work.weights, one, keyTile, work.douts,
                e, work.dv + key * e, e, true);
    tileProduct(keyTile, d, queryTile, work.dweights, one, keyTile,
                work.queries, d, work.dk + key * d, d, true);
    tileProduct(queryTile, d, keyTile, work.dweights, keyTile, one,
                work.keyRows + key * d, d, work.dq, d, true);
  }
}

/// [count][padded(width)] to rows.
template <typename Real>
INLINE void unpackRows(const Real *packed, int64_t count, int64_t width,
                       Real *rows, int64_t row) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < width; ++j)
      rows[i * row + j] = packed[i * padded(width) + j];
}

template <MaskKind kind, typename Real>
INLINE void gradHead(const Sizes &sizes, GradWork<Real> work, In<Real> q,
                     In<Real> out, In<Real> dout, Rows<Real> dq, Mask mask,
                     const Real *lse, double scale, int64_t b, int64_t h) {
  for (int64_t first = 0; first < sizes.s; first += queryTile) {
    int64_t left = sizes.s - first;
    int64_t count = left < queryTile ? left : queryTile;
    packRows(q.at(b, h, first), q.row, count, sizes.d, work.queries, queryTile);
    packRows(dout.at(b, h, first), dout.row, count, sizes.e, work.douts,
             queryTile);
    Real delta[queryTile];
    for (int64_t i = 0; i < count; ++i) {
      const Real *o = out.at(b, h, first + i), *g = dout.at(b, h, first + i);
      delta[i] = rowSum<Real>(sizes.e, [&](int64_t j) { return o[j] * g[j]; });
    }
    gradTile<kind>(sizes, work, mask, scale, b, h, first, count,
                   lse + (b * sizes.heads + h) * sizes.s + first, delta);
    unpackRows(work.dq, count, sizes.d, dq.at(b, h, first), dq.row);
  }
}

template <MaskKind kind, typename Real>
INLINE void attentionGrad(Sizes sizes, In<Real> q, In<Real> k, In<Real> v,
                          Mask mask, In<Real> out, const Real *lse,
                          In<Real> dout, Rows<Real> dq, Rows<Real> dk,
                          Rows<Real> dv, Real *memory, double scale) {
  GradWork<Real> work(memory, sizes);
  const int64_t t = sizes.paddedT();
  const int64_t share = sizes.heads / sizes.groups;
  for (int64_t b = 0; b < sizes.batch; ++b)
    for (int64_t g = 0; g < sizes.groups; ++g) {
      packColumns(k.at(b, g, 0), k.row, sizes.t, sizes.d, work.keyColumns, t);
      packColumns(v.at(b, g, 0), v.row, sizes.t, sizes.e, work.valueColumns, t);
      packRows(k.at(b, g, 0), k.row, sizes.t, sizes.d, work.keyRows, t);
      for (int64_t i = 0; i < t * padded(sizes.d); ++i)
        work.dk[i] = 0;
      for (int64_t i = 0; i < t * padded(sizes.e); ++i)
        work.dv[i] = 0;
      for (int64_t h = g * share; h < (g + 1) * share; ++h)
        gradHead<kind>(sizes, work, q, out, dout, dq, mask, lse, scale, b, h);
      unpackRows(work.dk, sizes.t, sizes.d, dk.at(b, g, 0), dk.row);
      unpackRows(work.dv, sizes.t, sizes.e, dv.at(b, g, 0), dv.row);
    }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

#define SIZES                                                                  \
  int64_t batch, int64_t heads, int64_t groups, int64_t s, int64_t t,          \
      int64_t d, int64_t e, int64_t causal
#define SIZES_VALUE {batch, heads, groups, s, t, d, e, causal}
#define STRIDES(NAME) int64_t NAME##B, int64_t NAME##H, int64_t NAME##R
#define ROWS(NAME) {NAME, NAME##B, NAME##H, NAME##R}

#define ATTENTION(REAL, SUFFIX, KIND)                                          \
  KERNEL(attention_##SUFFIX)(Context *, const REAL *q, const REAL *k,          \
                             const REAL *v, const void *mask, REAL *out,       \
                             REAL *lse, REAL *work, SIZES, STRIDES(q),         \
                             STRIDES(k), STRIDES(v), STRIDES(out),             \
                             STRIDES(mask), int64_t maskC, double scale) {     \
    attention<MaskKind::KIND, REAL>(SIZES_VALUE, ROWS(q), ROWS(k), ROWS(v),    \
                                    {mask, maskB, maskH, maskR, maskC},        \
                                    ROWS(out), lse, work, scale);              \
  }                                                                            \
  KERNEL(attention_grad_##SUFFIX)(                                             \
      Context *, const REAL *q, const REAL *k, const REAL *v,                  \
      const void *mask, const REAL *out, const REAL *lse, const REAL *dout,    \
      REAL *dq, REAL *dk, REAL *dv, REAL *work, SIZES, STRIDES(q), STRIDES(k), \
      STRIDES(v), STRIDES(out), STRIDES(dout), STRIDES(dq), STRIDES(dk),       \
      STRIDES(dv), STRIDES(mask), int64_t maskC, double scale) {               \
    attentionGrad<MaskKind::KIND, REAL>(                                       \
        SIZES_VALUE, ROWS(q), ROWS(k), ROWS(v),                                \
        {mask, maskB, maskH, maskR, maskC}, ROWS(out), lse, ROWS(dout),        \
        ROWS(dq), ROWS(dk), ROWS(dv), work, scale);                            \
  }

ATTENTION(float, f32, None)
ATTENTION(float, f32_bool, Boolean)
ATTENTION(float, f32_add, Added)
ATTENTION(double, f64, None)
ATTENTION(double, f64_bool, Boolean)
ATTENTION(double, f64_add, Added)
