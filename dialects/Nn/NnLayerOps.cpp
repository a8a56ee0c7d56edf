//===- NnLayerOps.cpp - Verifiers of layers -------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

//===----------------------------------------------------------------------===//
// Softmax and norms
//===----------------------------------------------------------------------===//

LogicalResult SoftmaxOp::verify() {
  if (rankOf(getInput()) == 0) // (C1)
    return emitOpError("expects an input of at least one dimension");
  return verifyShape(*this, getResult(), shapeOf(getInput()),
                     "the input's shape"); // (C1)
}

LogicalResult SoftmaxGradOp::verify() {
  if (rankOf(getY()) == 0) // (C1)
    return emitOpError("expects operands of at least one dimension");
  if (failed(verifyShape(*this, getDy(), shapeOf(getY()), "y's shape")))
    return failure(); // (C1)
  return verifyShape(*this, getResult(), shapeOf(getY()), "y's shape");
}

/// Checks `rows` against the shape of `input` and `columns` against its last
/// size; null entries are absent operands.
static LogicalResult verifyNorm(Operation *op, Value input, ValueRange rows,
                                ArrayRef<Value> columns,
                                const APFloat &epsilon) {
  if (rankOf(input) == 0) // (C1)
    return op->emitOpError(
               "expects an input of at least one dimension, but got ")
           << input.getType();
  for (Value row : rows)
    if (failed(verifyShape(op, row, shapeOf(input), "the input's shape")))
      return failure(); // (C1)
  for (Value column : columns)
    if (column && failed(verifyShape(op, column, shapeOf(input).take_back(),
                                     "the size of the last dimension")))
      return failure();     // (C2)
  if (epsilon.isNegative()) // (C3)
    return op->emitOpError("expects epsilon not to be negative, but got ")
           << epsilon.convertToDouble();
  return success();
}

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, getInput(), {getResult()}, {getScale(), getBias()},
                    getEpsilon());
}

LogicalResult LayerNormGradOp::verify() {
  return verifyNorm(*this, getInput(), {getDy(), getDx()},
                    {getScale(), getDscale(), getDbias()}, getEpsilon());
}

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, getInput(), {getResult()}, {getScale()},
                    getEpsilon());
}

LogicalResult RmsNormGradOp::verify() {
  return verifyNorm(*this, getInput(), {getDy(), getDx()},
                    {getScale(), getDscale()}, getEpsilon());
}

//===----------------------------------------------------------------------===//
// Convolution and pooling
//===----------------------------------------------------------------------===//

static LogicalResult verifyWindow(Operation *op, const Window &window,
                                  int64_t rank) {
  size_t spatial = rank < 3 ? 0 : rank - 2;
  auto isPositive = [](int64_t size) { return size > 0; };
  auto isMargin = [](int64_t size) { return size >= 0; };
  bool sized = llvm::all_of(
      ArrayRef<ArrayRef<int64_t>>{window.kernel, window.strides, window.padsLow,
                                  window.padsHigh, window.dilations},
      [&](ArrayRef<int64_t> list) { return list.size() == spatial; });
  if (spatial < 1 || spatial > 3 || !sized ||
      !llvm::all_of(window.kernel, isPositive) ||
      !llvm::all_of(window.strides, isPositive) ||
      !llvm::all_of(window.dilations, isPositive) ||
      !llvm::all_of(window.padsLow, isMargin) ||
      !llvm::all_of(window.padsHigh, isMargin)) // (C1)
    return op->emitOpError("expects a window with an entry for each of one to "
                           "three spatial dimensions; strides and dilations "
                           "positive, pads not negative");
  return success();
}

/// Checks the convolution of `input` with `filter` whose result is `output`.
template <typename OpT>
static LogicalResult verifyConv(OpT op, Value input, Value filter,
                                Value output) {
  if (rankOf(input) != rankOf(filter) || rankOf(input) != rankOf(output))
    return op.emitOpError("expects tensors of one rank"); // (C1)
  ArrayRef<int64_t> in = shapeOf(input), weights = shapeOf(filter);
  Window window{weights.drop_front(std::min<size_t>(2, weights.size())),
                op.getStrides(), op.getPadsLow(), op.getPadsHigh(),
                op.getDilations()};
  if (failed(verifyWindow(op, window, in.size())))
    return failure();
  int64_t groups = op.getGroups();
  if (groups < 1 || in[1] != weights[1] * groups ||
      weights[0] % groups != 0) // (C2)
    return op.emitOpError("expects ")
           << weights[1] << " channels in each of " << groups
           << " groups and features that they divide, but got " << in[1]
           << " channels and " << weights[0] << " features";
  SmallVector<int64_t> shape = {in[0], weights[0]};
  for (unsigned dim = 0; dim < in.size() - 2; ++dim)
    shape.push_back(window.resultSize(dim, in[dim + 2]));
  return verifyShape(op, output, shape, "the convolution's shape"); // (C3)
}

LogicalResult ConvOp::verify() {
  return verifyConv(*this, getInput(), getFilter(), getResult());
}
LogicalResult ConvInputGradOp::verify() {
  return verifyConv(*this, getResult(), getFilter(), getDy());
}
LogicalResult ConvFilterGradOp::verify() {
  return verifyConv(*this, getInput(), getResult(), getDy());
}

template <typename OpT>
static LogicalResult verifyPool(OpT op, Value input, Value output) {
  ArrayRef<int64_t> in = shapeOf(input);
  Window window{op.getKernel(), op.getStrides(), op.getPadsLow(),
                op.getPadsHigh(), op.getDilations()};
  if (failed(verifyWindow(op, window, in.size())))
    return failure();
  SmallVector<int64_t> shape = {in[0], in[1]};
  for (unsigned dim = 0; dim < in.size() - 2; ++dim) {
    int64_t extent = window.dilations[dim] * (window.kernel[dim] - 1) + 1;
    if (std::max(window.padsLow[dim], window.padsHigh[dim]) >= extent) // (C1)
      return op.emitOpError("expects pads smaller than the kernel's extent ")
             << extent;
    shape.push_back(window.resultSize(dim, in[dim + 2]));
  }
  return verifyShape(op, output, shape, "the pooled shape"); // (C2)
}

LogicalResult MaxPoolOp::verify() {
  return verifyPool(*this, getInput(), getResult());
}
LogicalResult MaxPoolGradOp::verify() {
  if (failed(verifyShape(*this, getResult(), shapeOf(getInput()),
                         "the input's shape")))
    return failure(); // (C1)
  return verifyPool(*this, getInput(), getDy());
}
LogicalResult AvgPoolOp::verify() {
  return verifyPool(*this, getInput(), getResult());
}
LogicalResult AvgPoolGradOp::verify() {
  return verifyPool(*this, getResult(), getDy());
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

static LogicalResult verifyTable(Operation *op, Value table, Value indices,
                                 Value rows) {
  if (rankOf(table) == 0) // (C1)
    return op->emitOpError("expects a table of at least one dimension");
  SmallVector<int64_t> shape(shapeOf(indices));
  llvm::append_range(shape, shapeOf(table).drop_front());
  return verifyShape(op, rows, shape,
                     "the indices' dimensions, then the table's"); // (C1)
}

LogicalResult GatherOp::verify() {
  return verifyTable(*this, getTable(), getIndices(), getResult());
}
LogicalResult ScatterAddOp::verify() {
  return verifyTable(*this, getResult(), getIndices(), getUpdates());
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// The tensors of an attention; the mask may be null.
struct AttentionTensors {
  Value query, key, value, mask, out, lse;
};
} // namespace

static LogicalResult verifyAttention(Operation *op, const AttentionTensors &t) {
  for (Value tensor : {t.query, t.key, t.value, t.out})
    if (rankOf(tensor) != 4) // (C1)
      return op->emitOpError("expects [batch, heads, length, size], but got ")
             << tensor.getType();
  ArrayRef<int64_t> query = shapeOf(t.query), key = shapeOf(t.key);
  ArrayRef<int64_t> value = shapeOf(t.value);
  if (key[0] != query[0] || key[1] < 1 || query[1] % key[1] != 0 ||
      key[3] != query[3] || value.take_front(3) != key.take_front(3)) // (C1)
    return op->emitOpError(
               "expects keys and values of one length for a divisor "
               "of the heads, but got ")
           << t.query.getType() << ", " << t.key.getType() << " and "
           << t.value.getType();
  if (t.mask && (rankOf(t.mask) != 4 ||
                 !broadcasts(shapeOf(t.mask),
                             {query[0], query[1], query[2], key[2]}))) // (C2)
    return op->emitOpError("expects a mask that broadcasts to [batch, heads, "
                           "queries, keys], but got ")
           << t.mask.getType();
  SmallVector<int64_t> out = {query[0], query[1], query[2], value[3]};
  if (failed(verifyShape(op, t.out, out, "the queries' rows of values")))
    return failure(); // (C1)
  return verifyShape(op, t.lse, query.take_front(3), "one lse for each query");
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(
      *this, {getQuery(), getKey(), getValue(), getMask(), getOut(), getLse()});
}

LogicalResult AttentionGradOp::verify() {
  std::pair<Value, Value> pairs[] = {{getDout(), getOut()},
                                     {getDquery(), getQuery()},
                                     {getDkey(), getKey()},
                                     {getDvalue(), getValue()}};
  for (auto [gradient, tensor] : pairs)
    if (failed(verifyShape(*this, gradient, shapeOf(tensor),
                           "a gradient of its tensor's shape")))
      return failure(); // (C1)
  return verifyAttention(
      *this, {getQuery(), getKey(), getValue(), getMask(), getOut(), getLse()});
}

LogicalResult RopeOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getInput());
  if (shape.empty() || shape.back() % 2 != 0) // (C1)
    return emitOpError("expects an even last dimension, but got ")
           << getInput().getType();
  if (failed(verifyShape(*this, getResult(), shape, "the input's shape")))
    return failure(); // (C1)
  SmallVector<int64_t> angles(shape);
  angles.back() /= 2;
  ArrayRef<int64_t> cos = shapeOf(getCos());
  if (cos != shapeOf(getSin()) || cos.empty() || cos.back() != angles.back() ||
      !broadcasts(cos, angles)) // (C2)
    return emitOpError("expects cosines and sines that broadcast to [")
           << angles << "], but got " << getCos().getType() << " and "
           << getSin().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

static LogicalResult verifyRows(Operation *op, Value logits, ValueRange rows) {
  if (rankOf(logits) == 0) // (C1)
    return op->emitOpError("expects logits of at least one dimension");
  for (Value row : rows)
    if (failed(verifyShape(op, row, shapeOf(logits).drop_back(),
                           "one for each row of logits")))
      return failure(); // (C1)
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  return verifyRows(*this, getLogits(), {getLabels(), getLoss(), getLse()});
}

LogicalResult CrossEntropyGradOp::verify() {
  if (failed(verifyShape(*this, getResult(), shapeOf(getLogits()),
                         "the logits' shape")))
    return failure(); // (C1)
  return verifyRows(*this, getLogits(), {getLabels(), getLse(), getDloss()});
}
