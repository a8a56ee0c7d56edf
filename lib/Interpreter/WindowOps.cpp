//===- WindowOps.cpp - Evaluates convolution and pooling ------------------===//
//
// All are walks over the pairs of an element of the result's image and an
// element of its window in the input's image; they differ in what they do with
// a pair.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/NnShapes.h"

#include <cmath>

#include "Evaluators.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

namespace {

/// The images of a convolution or pooling and the window between them.
struct Images {
  ArrayRef<int64_t> input, output; // spatial sizes
  nn::Window window;

  int64_t inputSize() const { return product(input); }
  int64_t outputSize() const { return product(output); }
  int64_t windowSize() const { return product(window.kernel); }

  /// The element of the input's image that `tap` of the window of `position`
  /// reads;
  /// -1 in the padding.
  int64_t elementAt(int64_t position, int64_t tap) const;

private:
  static int64_t product(ArrayRef<int64_t> sizes) {
    int64_t size = 1;
    for (int64_t dim : sizes)
      size *= dim;
    return size;
  }
};

} // namespace

int64_t Images::elementAt(int64_t position, int64_t tap) const {
  int64_t element = 0, stride = 1;
  for (int64_t dim = int64_t(input.size()) - 1; dim >= 0; --dim) {
    int64_t at = position % output[dim] * window.strides[dim] +
                 tap % window.kernel[dim] * window.dilations[dim] -
                 window.padsLow[dim];
    if (at < 0 || at >= input[dim])
      return -1;
    element += at * stride;
    stride *= input[dim];
    position /= output[dim];
    tap /= window.kernel[dim];
  }
  return element;
}

/// The element of the input that each tap of each window reads.
static std::vector<int64_t> tableOf(const Images &images) {
  std::vector<int64_t> table;
  for (int64_t p = 0; p < images.outputSize(); ++p)
    for (int64_t tap = 0; tap < images.windowSize(); ++tap)
      table.push_back(images.elementAt(p, tap));
  return table;
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

/// Calls `visit(x, w, y)` with the elements of input, filter and result of each
/// product.
template <typename OpT, typename Visit>
static void forEachProduct(OpT op, const Tensor &input, const Tensor &filter,
                           const Tensor &output, Visit visit) {
  ArrayRef<int64_t> in = input.shape, weights = filter.shape;
  Images images{in.drop_front(2),
                ArrayRef<int64_t>(output.shape).drop_front(2),
                {weights.drop_front(2), op.getStrides(), op.getPadsLow(),
                 op.getPadsHigh(), op.getDilations()}};
  std::vector<int64_t> table = tableOf(images);
  int64_t positions = images.outputSize(), taps = images.windowSize();
  int64_t features = weights[0], channels = weights[1];
  int64_t perGroup = features / op.getGroups();
  for (int64_t n = 0; n < in[0]; ++n)
    for (int64_t f = 0; f < features; ++f)
      for (int64_t c = 0; c < channels; ++c) {
        int64_t channel = f / perGroup * channels + c;
        int64_t x = (n * in[1] + channel) * images.inputSize();
        int64_t w = (f * channels + c) * taps;
        int64_t y = (n * features + f) * positions;
        for (int64_t p = 0; p < positions; ++p)
          for (int64_t tap = 0; tap < taps; ++tap)
            if (int64_t at = table[p * taps + tap]; at >= 0)
              visit(x + at, w + tap, y + p);
      }
}

LogicalResult interpreter::evaluate(nn::ConvOp op, const Evaluation &e) {
  const double *x = e.in(0).floats.data(), *w = e.in(1).floats.data();
  double *y = e.out().floats.data();
  forEachProduct(op, e.in(0), e.in(1), e.out(),
                 [=](int64_t i, int64_t j, int64_t k) { y[k] += x[i] * w[j]; });
  return success();
}

LogicalResult interpreter::evaluate(nn::ConvInputGradOp op,
                                    const Evaluation &e) {
  const double *dy = e.in(0).floats.data(), *w = e.in(1).floats.data();
  double *dx = e.out().floats.data();
  forEachProduct(
      op, e.out(), e.in(1), e.in(0),
      [=](int64_t i, int64_t j, int64_t k) { dx[i] += dy[k] * w[j]; });
  return success();
}

LogicalResult interpreter::evaluate(nn::ConvFilterGradOp op,
                                    const Evaluation &e) {
  const double *x = e.in(0).floats.data(), *dy = e.in(1).floats.data();
  double *dw = e.out().floats.data();
  forEachProduct(
      op, e.in(0), e.out(), e.in(1),
      [=](int64_t i, int64_t j, int64_t k) { dw[j] += dy[k] * x[i]; });
  return success();
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// Calls `visit(elements, position)` for each window: the elements of the input
/// that it reads, row-major, without padding, and the element of the result.
template <typename OpT, typename Visit>
static void forEachWindow(OpT op, const Tensor &input, const Tensor &output,
                          Visit visit) {
  Images images{ArrayRef<int64_t>(input.shape).drop_front(2),
                ArrayRef<int64_t>(output.shape).drop_front(2),
                {op.getKernel(), op.getStrides(), op.getPadsLow(),
                 op.getPadsHigh(), op.getDilations()}};
  std::vector<int64_t> table = tableOf(images);
  int64_t positions = images.outputSize(), taps = images.windowSize();
  int64_t planes = input.shape[0] * input.shape[1];
  SmallVector<int64_t> elements;
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t p = 0; p < positions; ++p) {
      elements.clear();
      for (int64_t tap = 0; tap < taps; ++tap)
        if (int64_t at = table[p * taps + tap]; at >= 0)
          elements.push_back(plane * images.inputSize() + at);
      visit(ArrayRef<int64_t>(elements), plane * positions + p);
    }
}

/// The first of the largest; the first NaN where there is one. -1 of nothing.
static int64_t firstLargest(ArrayRef<int64_t> elements,
                            const std::vector<double> &values) {
  int64_t best = -1;
  for (int64_t i : elements) {
    if (best >= 0 && std::isnan(values[best]))
      break;
    if (best < 0 || std::isnan(values[i]) || values[i] > values[best])
      best = i;
  }
  return best;
}

LogicalResult interpreter::evaluate(nn::MaxPoolOp op, const Evaluation &e) {
  forEachWindow(
      op, e.in(0), e.out(), [&](ArrayRef<int64_t> elements, int64_t p) {
        int64_t best = firstLargest(elements, e.in(0).floats);
        e.out().floats[p] = best < 0 ? -INFINITY : e.in(0).floats[best];
      });
  return success();
}

LogicalResult interpreter::evaluate(nn::MaxPoolGradOp op, const Evaluation &e) {
  forEachWindow(op, e.in(0), e.in(1),
                [&](ArrayRef<int64_t> elements, int64_t p) {
                  int64_t best = firstLargest(elements, e.in(0).floats);
                  if (best >= 0)
                    e.out().floats[best] += e.in(1).floats[p];
                });
  return success();
}

/// The number that the sum of a window is divided by.
template <typename OpT>
static double windowCount(OpT op, ArrayRef<int64_t> elements) {
  if (!op.getCountPads())
    return std::max<double>(1, elements.size());
  double count = 1;
  for (int64_t size : op.getKernel())
    count *= size;
  return count;
}

LogicalResult interpreter::evaluate(nn::AvgPoolOp op, const Evaluation &e) {
  forEachWindow(op, e.in(0), e.out(),
                [&](ArrayRef<int64_t> elements, int64_t p) {
                  double sum = 0;
                  for (int64_t i : elements)
                    sum += e.in(0).floats[i];
                  e.out().floats[p] = sum / windowCount(op, elements);
                });
  return success();
}

LogicalResult interpreter::evaluate(nn::AvgPoolGradOp op, const Evaluation &e) {
  forEachWindow(
      op, e.out(), e.in(0), [&](ArrayRef<int64_t> elements, int64_t p) {
        for (int64_t i : elements)
          e.out().floats[i] += e.in(0).floats[p] / windowCount(op, elements);
      });
  return success();
}
