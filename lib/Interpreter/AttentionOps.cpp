//===- AttentionOps.cpp - Evaluates attention and rotary embedding --------===//

#include <algorithm>
#include <cmath>
#include <limits>

#include "Evaluators.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

/// The sizes of an attention and the scores of one query.
class Scores {
public:
  /// `mask` may be null.
  Scores(const Evaluation &e, const Tensor *mask, bool isCausal, double scale)
      : query(e.in(0)), key(e.in(1)), mask(mask), isCausal(isCausal),
        scale(scale), batch(query.shape[0]), heads(query.shape[1]),
        queries(query.shape[2]), size(query.shape[3]), groups(key.shape[1]),
        keys(key.shape[2]), valueSize(e.in(2).shape[3]) {
    if (mask)
      maskStrides =
          broadcastStrides(mask->shape, {batch, heads, queries, keys});
  }

  /// Writes the scores of query `s` to the keys; minus infinity where it must
  /// not look.
  void compute(int64_t b, int64_t h, int64_t s,
               MutableArrayRef<double> scores) const;

  int64_t queryRow(int64_t b, int64_t h, int64_t s) const {
    return (b * heads + h) * queries + s;
  }
  int64_t keyRow(int64_t b, int64_t h, int64_t t) const {
    return (b * groups + h / (heads / groups)) * keys + t;
  }

  const Tensor &query, &key;
  const Tensor *mask;
  bool isCausal;
  double scale;
  int64_t batch, heads, queries, size, groups, keys, valueSize;

private:
  SmallVector<int64_t> maskStrides;
};

} // namespace

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += a[i] * b[i];
  return sum;
}

void Scores::compute(int64_t b, int64_t h, int64_t s,
                     MutableArrayRef<double> scores) const {
  const double *q = query.floats.data() + queryRow(b, h, s) * size;
  for (int64_t t = 0; t < keys; ++t) {
    bool isVisible = !isCausal || t <= s + keys - queries;
    double added = 0;
    if (mask) {
      int64_t at = b * maskStrides[0] + h * maskStrides[1] +
                   s * maskStrides[2] + t * maskStrides[3];
      if (mask->isFloat())
        added = mask->floats[at];
      else
        isVisible &= mask->integers[at] != 0;
    }
    const double *k = key.floats.data() + keyRow(b, h, t) * size;
    scores[t] = isVisible ? scale * dot(q, k, size) + added : -infinity;
  }
}

template <typename F>
static void forEachQuery(const Scores &scores, F f) {
  for (int64_t b = 0; b < scores.batch; ++b)
    for (int64_t h = 0; h < scores.heads; ++h)
      for (int64_t s = 0; s < scores.queries; ++s)
        f(b, h, s);
}

LogicalResult interpreter::evaluate(nn::AttentionOp op, const Evaluation &e) {
  Scores scores(e, op.getMask() ? &e.in(3) : nullptr, op.getCausal(),
                op.getScale().convertToDouble());
  std::vector<double> row(scores.keys);
  forEachQuery(scores, [&](int64_t b, int64_t h, int64_t s) {
    scores.compute(b, h, s, row);
    int64_t at = scores.queryRow(b, h, s);
    double maximum = -infinity, sum = 0;
    for (double x : row)
      maximum = std::isnan(x) || x > maximum ? x : maximum;
    if (maximum == -infinity) { // sees nothing
      e.out(1).floats[at] = -infinity;
      return;
    }
    double *out = e.out(0).floats.data() + at * scores.valueSize;
    for (int64_t t = 0; t < scores.keys; ++t) {
      double weight = std::exp(row[t] - maximum);
      sum += weight;
      if (row[t] == -infinity) // whatever the value is
        continue;
      const double *v =
          e.in(2).floats.data() + scores.keyRow(b, h, t) * scores.valueSize;
      for (int64_t j = 0; j < scores.valueSize; ++j)
        out[j] += weight * v[j];
    }
    for (int64_t j = 0; j < scores.valueSize; ++j)
      out[j] /= sum;
    e.out(1).floats[at] = maximum + std::log(sum);
  });
  return success();
}

/// With weights p = exp(score - max) / sum: dv = p dout, and the scores'
/// gradient is ds = p * (dout . v - dout . out).
LogicalResult interpreter::evaluate(nn::AttentionGradOp op,
                                    const Evaluation &e) {
  Scores scores(e, op.getMask() ? &e.in(6) : nullptr, op.getCausal(),
                op.getScale().convertToDouble());
  int64_t size = scores.size, valueSize = scores.valueSize;
  std::vector<double> row(scores.keys);
  forEachQuery(scores, [&](int64_t b, int64_t h, int64_t s) {
    scores.compute(b, h, s, row);
    int64_t at = scores.queryRow(b, h, s);
    // Not by lse: where scores are far (a mask of the lowest float), it holds
    // nothing of the sum.
    double most = *std::max_element(row.begin(), row.end()), sum = 0;
    for (double score : row)
      sum += score == -infinity ? 0 : std::exp(score - most);
    const double *q = e.in(0).floats.data() + at * size;
    const double *dout = e.in(5).floats.data() + at * valueSize;
    double dotOut =
        dot(dout, e.in(3).floats.data() + at * valueSize, valueSize);
    double *dq = e.out(0).floats.data() + at * size;
    for (int64_t t = 0; t < scores.keys; ++t) {
      if (row[t] == -infinity)
        continue;
      int64_t keyAt = scores.keyRow(b, h, t);
      const double *k = e.in(1).floats.data() + keyAt * size;
      const double *v = e.in(2).floats.data() + keyAt * valueSize;
      double *dk = e.out(1).floats.data() + keyAt * size;
      double *dv = e.out(2).floats.data() + keyAt * valueSize;
      double weight = std::exp(row[t] - most) / sum;
      double ds = weight * (dot(dout, v, valueSize) - dotOut) * scores.scale;
      for (int64_t j = 0; j < valueSize; ++j)
        dv[j] += weight * dout[j];
      for (int64_t j = 0; j < size; ++j) {
        dq[j] += ds * k[j];
        dk[j] += ds * q[j];
      }
    }
  });
  return success();
}

LogicalResult interpreter::evaluate(nn::RopeOp op, const Evaluation &e) {
  const Tensor &x = e.in(0);
  int64_t half = x.shape.back() / 2;
  if (half == 0)
    return success();
  SmallVector<int64_t> angles(x.shape);
  angles.back() = half;
  double sign = op.getInverse() ? -1 : 1;
  forEachElement(angles, broadcastStrides(e.in(1).shape, angles), /*base=*/0,
                 [&](int64_t position, int64_t angle) {
                   int64_t row = position / half, pair = position % half;
                   int64_t first =
                       row * 2 * half + (op.getInterleaved() ? 2 * pair : pair);
                   int64_t second = first + (op.getInterleaved() ? 1 : half);
                   double cos = e.in(1).floats[angle];
                   double sin = sign * e.in(2).floats[angle];
                   double x1 = x.floats[first], x2 = x.floats[second];
                   e.out().floats[first] = x1 * cos - x2 * sin;
                   e.out().floats[second] = x2 * cos + x1 * sin;
                 });
  return success();
}
