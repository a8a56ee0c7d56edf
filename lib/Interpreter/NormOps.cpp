//===- NormOps.cpp - Evaluates softmax, norms and cross-entropy -----------===//
//
// All work on rows along the last dimension.
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <limits>

#include "Evaluators.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// The largest, NaN where there is one.
static double maximumOf(ArrayRef<double> row) {
  double maximum = -infinity;
  for (double x : row)
    maximum = std::isnan(x) || x > maximum ? x : maximum;
  return maximum;
}

/// log(sum(exp(row))); minus infinity for a row of these.
static double logSumExp(ArrayRef<double> row) {
  double maximum = maximumOf(row), sum = 0;
  if (maximum == -infinity)
    return -infinity;
  for (double x : row)
    sum += std::exp(x - maximum);
  return maximum + std::log(sum);
}

static ArrayRef<double> rowOf(const Tensor &tensor, int64_t row) {
  int64_t n = tensor.shape.back();
  return ArrayRef<double>(tensor.floats).slice(row * n, n);
}

static MutableArrayRef<double> rowOf(Tensor &tensor, int64_t row) {
  int64_t n = tensor.shape.back();
  return MutableArrayRef<double>(tensor.floats).slice(row * n, n);
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

LogicalResult interpreter::evaluate(nn::SoftmaxOp op, const Evaluation &e) {
  for (int64_t r = 0, rows = rowCount(e.out()); r < rows; ++r) {
    ArrayRef<double> x = rowOf(e.in(0), r);
    MutableArrayRef<double> y = rowOf(e.out(), r);
    double maximum = maximumOf(x), sum = 0;
    if (op.getZeroMaskedRows() && maximum == -infinity)
      continue;
    for (size_t j = 0; j < x.size(); ++j)
      sum += y[j] = std::exp(x[j] - maximum);
    for (double &value : y)
      value /= sum;
  }
  return success();
}

LogicalResult interpreter::evaluate(nn::SoftmaxGradOp, const Evaluation &e) {
  for (int64_t r = 0, rows = rowCount(e.out()); r < rows; ++r) {
    ArrayRef<double> y = rowOf(e.in(0), r), dy = rowOf(e.in(1), r);
    MutableArrayRef<double> dx = rowOf(e.out(), r);
    double dot = 0;
    for (size_t j = 0; j < y.size(); ++j)
      dot += y[j] * dy[j];
    for (size_t j = 0; j < y.size(); ++j)
      dx[j] = y[j] * (dy[j] - dot);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

namespace {
/// A row's mean (0 for RMS norms) and 1 / sqrt(variance + epsilon).
struct Statistics {
  double mean, inverse;
};
} // namespace

static Statistics statisticsOf(ArrayRef<double> x, double epsilon,
                               bool isCentered) {
  double mean = 0, variance = 0;
  if (isCentered)
    for (double value : x)
      mean += value / x.size();
  for (double value : x)
    variance += (value - mean) * (value - mean) / x.size();
  return {mean, 1 / std::sqrt(variance + epsilon)};
}

/// `scale` and `bias` may be null.
static void normalize(const Evaluation &e, double epsilon, bool isCentered,
                      const Tensor *scale, const Tensor *bias) {
  for (int64_t r = 0, rows = rowCount(e.out()); r < rows; ++r) {
    ArrayRef<double> x = rowOf(e.in(0), r);
    MutableArrayRef<double> y = rowOf(e.out(), r);
    auto [mean, inverse] = statisticsOf(x, epsilon, isCentered);
    for (size_t j = 0; j < x.size(); ++j)
      y[j] = (x[j] - mean) * inverse * (scale ? scale->floats[j] : 1) +
             (bias ? bias->floats[j] : 0);
  }
}

/// With z the normalized row and g = dy * scale,
/// dx = (g - mean(g) - z * mean(g * z)) * inverse; an RMS norm lacks mean(g).
static void normGradient(const Evaluation &e, double epsilon, bool isCentered,
                         const Tensor *scale, Tensor *dbias) {
  for (int64_t r = 0, rows = rowCount(e.in(0)); r < rows; ++r) {
    ArrayRef<double> x = rowOf(e.in(0), r), dy = rowOf(e.in(1), r);
    MutableArrayRef<double> dx = rowOf(e.out(0), r);
    auto [mean, inverse] = statisticsOf(x, epsilon, isCentered);
    double meanG = 0, meanGz = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      double z = (x[j] - mean) * inverse;
      double g = dy[j] * (scale ? scale->floats[j] : 1);
      meanG += isCentered ? g / x.size() : 0;
      meanGz += g * z / x.size();
      e.out(1).floats[j] += dy[j] * z;
      if (dbias)
        dbias->floats[j] += dy[j];
    }
    for (size_t j = 0; j < x.size(); ++j) {
      double z = (x[j] - mean) * inverse;
      double g = dy[j] * (scale ? scale->floats[j] : 1);
      dx[j] = (g - meanG - z * meanGz) * inverse;
    }
  }
}

LogicalResult interpreter::evaluate(nn::LayerNormOp op, const Evaluation &e) {
  const Tensor *scale = op.getScale() ? &e.in(1) : nullptr;
  const Tensor *bias = op.getBias() ? e.operands.back() : nullptr;
  normalize(e, op.getEpsilon().convertToDouble(), /*isCentered=*/true, scale,
            bias);
  return success();
}

LogicalResult interpreter::evaluate(nn::LayerNormGradOp op,
                                    const Evaluation &e) {
  normGradient(e, op.getEpsilon().convertToDouble(), /*isCentered=*/true,
               op.getScale() ? &e.in(2) : nullptr, &e.out(2));
  return success();
}

LogicalResult interpreter::evaluate(nn::RmsNormOp op, const Evaluation &e) {
  normalize(e, op.getEpsilon().convertToDouble(), /*isCentered=*/false,
            op.getScale() ? &e.in(1) : nullptr, /*bias=*/nullptr);
  return success();
}

LogicalResult interpreter::evaluate(nn::RmsNormGradOp op, const Evaluation &e) {
  normGradient(e, op.getEpsilon().convertToDouble(), /*isCentered=*/false,
               op.getScale() ? &e.in(2) : nullptr, /*dbias=*/nullptr);
  return success();
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

/// Fails unless each label is a class or `ignored`.
static LogicalResult checkLabels(Operation *op, const Tensor &labels,
                                 int64_t classes, int64_t ignored) {
  for (int64_t label : labels.integers)
    if (label != ignored && (label < 0 || label >= classes))
      return op->emitOpError("expects labels in [0, ")
             << classes << ") or " << ignored << ", but got " << label;
  return success();
}

LogicalResult interpreter::evaluate(nn::CrossEntropyOp op,
                                    const Evaluation &e) {
  const Tensor &logits = e.in(0), &labels = e.in(1);
  int64_t ignored = op.getIgnoreIndex();
  if (failed(checkLabels(op, labels, logits.shape.back(), ignored)))
    return failure();
  for (int64_t r = 0, rows = labels.size(); r < rows; ++r) {
    ArrayRef<double> x = rowOf(logits, r);
    int64_t label = labels.integers[r];
    double lse = logSumExp(x);
    e.out(0).floats[r] = label == ignored ? 0 : lse - x[label];
    e.out(1).floats[r] = lse;
  }
  return success();
}

LogicalResult interpreter::evaluate(nn::CrossEntropyGradOp op,
                                    const Evaluation &e) {
  const Tensor &logits = e.in(0), &labels = e.in(1);
  int64_t ignored = op.getIgnoreIndex();
  if (failed(checkLabels(op, labels, logits.shape.back(), ignored)))
    return failure();
  for (int64_t r = 0, rows = labels.size(); r < rows; ++r) {
    ArrayRef<double> x = rowOf(logits, r);
    MutableArrayRef<double> dx = rowOf(e.out(), r);
    int64_t label = labels.integers[r];
    double lse = e.in(2).floats[r], dloss = e.in(3).floats[r];
    if (label == ignored)
      continue;
    for (size_t j = 0; j < x.size(); ++j)
      dx[j] = (std::exp(x[j] - lse) - (int64_t(j) == label)) * dloss;
  }
  return success();
}
