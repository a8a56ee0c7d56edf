//===- EmitNorm.cpp - Normalizations -*- C++ -*-===//

#include "llvm/ADT/STLExtras.h"

#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;
using Reduce = espalier::onnx::NnBuilder::Reduce;

namespace espalier::onnx {

static bool expectFloatInput(NodeContext &node, int64_t minRank) {
  double epsilon = node.attr("epsilon", 0.0);
  if (!(epsilon >= 0 && epsilon < 1e30))
    node.fail("attribute 'epsilon' is " + std::to_string(epsilon));
  if (!isFloating(node.dtype(0)) || node.rank(0) < minRank)
    node.fail("expects floating-point numbers of rank " + Twine(minRank) +
              " or more, but got " + dtypeName(node.dtype(0)) + " of rank " +
              Twine(node.rank(0)));
  else if (*elementCount(node.shape(0)) == 0)
    node.unsupported("an empty tensor");
  return !node.failed();
}

/// Operand `i` reshaped to `count` elements; it may broadcast to `shape`.
static mlir::Value flatOperand(NodeContext &node, unsigned i,
                               ArrayRef<int64_t> shape) {
  if (broadcastShapes({node.shape(i), Shape(shape)}) != Shape(shape) ||
      node.dtype(i) != node.dtype(0)) {
    node.fail("operand " + Twine(i) + " of shape " + shapeText(node.shape(i)) +
              " and type " + dtypeName(node.dtype(i)) +
              " does not fit normalized dimensions " + shapeText(shape));
    return {};
  }
  return node.nn.reshape(node.nn.broadcast(node.value(i), shape),
                         *elementCount(shape));
}

static bool isUniformly(const Constant *constant, double value) {
  return constant && constant->isUniform() && constant->first().f == value;
}

/// LayerNormalization and RMSNormalization: the dimensions from `axis` on are
/// normalized as one.
static void emitLastDims(NodeContext &node, bool isRms) {
  if (!expectFloatInput(node, 1))
    return;
  std::optional<int64_t> axis = node.axis(-1, node.rank(0));
  if (!axis)
    return;
  if (node.node.outputs.size() > 1 &&
      llvm::any_of(llvm::drop_begin(node.node.proto->output()),
                   [](const std::string &name) { return !name.empty(); }))
    node.remark("its statistics are results, but only the first is computed");
  ArrayRef<int64_t> shape = node.shape(0);
  ArrayRef<int64_t> normalized = shape.drop_front(*axis);
  mlir::Value scale, bias;
  if (!isUniformly(node.constant(1), 1))
    scale = flatOperand(node, 1, normalized);
  if (!isRms && node.has(2) && !isUniformly(node.constant(2), 0))
    bias = flatOperand(node, 2, normalized);
  if (node.failed())
    return;
  Shape flat(shape.take_front(*axis));
  flat.push_back(*elementCount(normalized));
  mlir::Value value = node.nn.reshape(node.value(0), flat);
  double epsilon = node.attr("epsilon", 1e-5);
  value = isRms ? node.nn.rmsNorm(value, scale, epsilon)
                : node.nn.layerNorm(value, scale, bias, epsilon);
  node.set(0, node.nn.reshape(value, shape));
}

void emitLayerNorm(NodeContext &node) { emitLastDims(node, false); }
void emitRmsNorm(NodeContext &node) { emitLastDims(node, true); }

/// Operand `i`, one number for each channel, as [channels, 1, ...].
static mlir::Value channelOperand(NodeContext &node, unsigned i) {
  int64_t channels = node.shape(0)[1];
  if (node.shape(i) != Shape{channels} || node.dtype(i) != node.dtype(0)) {
    node.fail("operand " + Twine(i) + " of shape " + shapeText(node.shape(i)) +
              " and type " + dtypeName(node.dtype(i)) + " does not fit input " +
              shapeText(node.shape(0)));
    return {};
  }
  Shape column(node.rank(0) - 1, 1);
  column[0] = channels;
  return node.nn.reshape(node.value(i), column);
}

static mlir::Value scaleAndShift(NodeContext &node, mlir::Value value,
                                 mlir::Value scale, mlir::Value bias) {
  return node.nn.map({value, scale, bias}, NnBuilder::shapeOf(value),
                     NnBuilder::elementOf(value),
                     [](ScalarBuilder &s, mlir::ValueRange x) {
                       return s.add(s.mul(x[0], x[1]), x[2]);
                     });
}

/// Normalizes groups of channels with all their places, then scales channels.
static void emitGroups(NodeContext &node, int64_t groups, mlir::Value scale,
                       mlir::Value bias) {
  ArrayRef<int64_t> shape = node.shape(0);
  Shape grouped{shape[0], groups, *elementCount(shape.drop_front()) / groups};
  mlir::Value value = node.nn.reshape(node.value(0), grouped);
  value = node.nn.layerNorm(value, {}, {}, node.attr("epsilon", 1e-5));
  node.set(0, scaleAndShift(node, node.nn.reshape(value, shape), scale, bias));
}

void emitInstanceNorm(NodeContext &node) {
  if (!expectFloatInput(node, 3))
    return;
  mlir::Value scale = channelOperand(node, 1), bias = channelOperand(node, 2);
  if (!node.failed())
    emitGroups(node, node.shape(0)[1], scale, bias);
}

void emitGroupNorm(NodeContext &node) {
  if (!expectFloatInput(node, 3))
    return;
  int64_t groups = node.attr("num_groups", int64_t(0));
  int64_t channels = node.shape(0)[1];
  if (groups < 1 || groups > channels || channels % groups)
    return node.fail("attribute 'num_groups' is " + Twine(groups) + " for " +
                     Twine(channels) + " channels");
  if (node.node.version >= 21) { // a number for each channel
    mlir::Value scale = channelOperand(node, 1);
    mlir::Value bias = channelOperand(node, 2);
    if (!node.failed())
      emitGroups(node, groups, scale, bias);
    return;
  }
  if (node.shape(1) != Shape{groups} || node.shape(2) != Shape{groups})
    return node.fail("scale and bias expect a number for each group");
  Shape column(node.rank(0) - 1, 1);
  column[0] = channels;
  auto repeated = [&](unsigned i) {
    mlir::Value value = node.nn.reshape(node.value(i), {groups, 1});
    value = node.nn.broadcast(value, {groups, channels / groups});
    return node.nn.reshape(value, column);
  };
  emitGroups(node, groups, repeated(1), repeated(2));
}

void emitLpNorm(NodeContext &node) {
  if (!expectFloatInput(node, 1))
    return;
  std::optional<int64_t> axis = node.axis(-1, node.rank(0));
  int64_t power = node.attr("p", int64_t(2));
  if (!axis)
    return;
  if (power != 1 && power != 2)
    return node.fail("attribute 'p' is " + Twine(power));
  mlir::Value value = node.value(0);
  auto shape = NnBuilder::shapeOf(value);
  mlir::Type element = node.element(0);
  mlir::Value terms = node.nn.map(
      value, shape, element, [&](ScalarBuilder &s, mlir::ValueRange x) {
        return power == 1 ? s.abs(x[0]) : s.mul(x[0], x[0]);
      });
  mlir::Value sum = node.nn.reduce(Reduce::Sum, terms, *axis);
  node.set(0, node.nn.map({value, sum}, shape, element,
                          [&](ScalarBuilder &s, mlir::ValueRange x) {
                            mlir::Value norm = power == 1 ? x[1] : s.sqrt(x[1]);
                            // Zeros stay zeros.
                            mlir::Value safe = s.selectGreater(
                                x[1], 0, norm, s.constantLike(1, norm));
                            return s.div(x[0], safe);
                          }));
}

//===----------------------------------------------------------------------===//
// BatchNormalization
//===----------------------------------------------------------------------===//

namespace {
/// Operands of a batch normalization; statistics are [channels, 1, ...].
struct BatchNorm {
  mlir::Value input, scale, bias, mean, variance;
  Shape shape;
  mlir::Type element;
  double epsilon, momentum;
};
} // namespace

/// (x - mean) / sqrt(variance + epsilon) * scale + bias
static mlir::Value normalized(NodeContext &node, const BatchNorm &norm) {
  return node.nn.map(
      {norm.input, norm.mean, norm.variance, norm.scale, norm.bias}, norm.shape,
      norm.element, [&](ScalarBuilder &s, mlir::ValueRange x) {
        mlir::Value deviation =
            s.sqrt(s.add(x[2], s.constantLike(norm.epsilon, x[2])));
        mlir::Value unit = s.div(s.sub(x[0], x[1]), deviation);
        return s.add(s.mul(unit, x[3]), x[4]);
      });
}

/// The number of elements that a channel's statistics are over, at least one:
/// valid samples times places. One element, of rank 1 less than the input.
static mlir::Value countValid(NodeContext &node, const BatchNorm &norm,
                              mlir::Value valid) {
  int64_t places = *elementCount(ArrayRef(norm.shape).drop_front(2));
  mlir::Value ones =
      node.nn.map(valid, NnBuilder::shapeOf(valid), norm.element,
                  [&](ScalarBuilder &s, mlir::ValueRange x) {
                    return s.cast(x[0], norm.element, false, false);
                  });
  mlir::Value samples = node.nn.reduce(Reduce::Sum, ones, 0);
  return node.nn.map(samples, NnBuilder::shapeOf(samples), norm.element,
                     [&](ScalarBuilder &s, mlir::ValueRange x) {
                       return s.mul(x[0], s.constantLike(places, x[0]));
                     });
}

/// The mean over valid samples of what `term` makes of an element.
static mlir::Value meanOverValid(NodeContext &node, const BatchNorm &norm,
                                 mlir::Value valid, mlir::Value count,
                                 mlir::Value center) {
  Shape dims{0};
  for (size_t i = 2; i < norm.shape.size(); ++i)
    dims.push_back(i);
  SmallVector<mlir::Value> operands{norm.input, valid};
  if (center)
    operands.push_back(center);
  mlir::Value terms =
      node.nn.map(operands, norm.shape, norm.element,
                  [&](ScalarBuilder &s, mlir::ValueRange x) {
                    mlir::Value term = x[0];
                    if (center) {
                      mlir::Value difference = s.sub(x[0], x[2]);
                      term = s.mul(difference, difference);
                    }
                    return s.select(x[1], term, s.constantLike(0, term));
                  });
  mlir::Value sum = node.nn.reduce(Reduce::Sum, terms, dims);
  Shape column(ArrayRef(NnBuilder::shapeOf(sum)).drop_front());
  sum = node.nn.reshape(sum, column);
  return node.nn.map({sum, count}, column, norm.element,
                     [](ScalarBuilder &s, mlir::ValueRange x) {
                       mlir::Value one = s.constantLike(1, x[1]);
                       return s.div(x[0], s.max(x[1], one));
                     });
}

/// running * momentum + batch * (1 - momentum), as it was without any sample.
/// The variance is PyTorch's, unbiased: n / (n - 1) of the biased one.
static mlir::Value updatedStatistic(NodeContext &node, const BatchNorm &norm,
                                    mlir::Value running, mlir::Value batch,
                                    mlir::Value count, bool isVariance) {
  auto shape = NnBuilder::shapeOf(running);
  Shape flat(shape);
  mlir::Value value = node.nn.reshape(batch, flat);
  return node.nn.map(
      {running, value, count}, flat, norm.element,
      [&](ScalarBuilder &s, mlir::ValueRange x) {
        mlir::Value one = s.constantLike(1, x[2]);
        mlir::Value fresh = x[1];
        if (isVariance)
          fresh = s.div(s.mul(fresh, x[2]), s.max(s.sub(x[2], one), one));
        mlir::Value updated =
            s.add(s.mul(x[0], s.constantLike(norm.momentum, x[0])),
                  s.mul(fresh, s.constantLike(1 - norm.momentum, x[0])));
        return s.select(s.compare(ScalarBuilder::Compare::Greater, x[2],
                                  s.constantLike(0, x[2])),
                        updated, x[0]);
      });
}

static void trainBatchNorm(NodeContext &node, BatchNorm norm) {
  int64_t batch = NnBuilder::shapeOf(node.state.valid)[0];
  if (norm.shape[0] != batch)
    return node.unsupported(
        "batch statistics where dimension 0 is not the batch: it has size " +
        Twine(norm.shape[0]) + ", the batch has " + Twine(batch));
  Shape perSample(norm.shape.size(), 1);
  perSample[0] = batch;
  mlir::Value valid = node.nn.reshape(node.state.valid, perSample);
  mlir::Value count = countValid(node, norm, node.state.valid);
  norm.mean = meanOverValid(node, norm, valid, count, {});
  norm.variance = meanOverValid(node, norm, valid, count, norm.mean);
  node.set(0, normalized(node, norm));
  for (unsigned i : {3, 4}) {
    ValueId id = node.node.inputs[i];
    mlir::Value &running = node.state.updatedBuffers[id];
    if (!running)
      running = node.value(i);
    running = updatedStatistic(
        node, norm, running, i == 3 ? norm.mean : norm.variance, count, i == 4);
    node.set(i - 2, running);
  }
}

void emitBatchNorm(NodeContext &node) {
  if (!expectFloatInput(node, 2))
    return;
  BatchNormMode mode = node.state.options.batchNorm;
  if (mode == BatchNormMode::Unset && node.attr("training_mode", int64_t(0)))
    mode = BatchNormMode::Train;
  if (mode == BatchNormMode::Unset)
    return node.fail("the job does not say what batch normalization does; "
                     "set 'batch_norm: train' or 'batch_norm: frozen'");
  BatchNorm norm;
  norm.input = node.value(0);
  norm.shape = node.shape(0);
  norm.element = node.element(0);
  norm.epsilon = node.attr("epsilon", 1e-5);
  norm.momentum = node.attr("momentum", 0.9);
  norm.scale = channelOperand(node, 1);
  norm.bias = channelOperand(node, 2);
  norm.mean = channelOperand(node, 3);
  norm.variance = channelOperand(node, 4);
  if (node.failed())
    return;
  if (mode == BatchNormMode::Train)
    return trainBatchNorm(node, norm);
  node.set(0, normalized(node, norm));
  node.set(1, node.value(3));
  node.set(2, node.value(4));
}

} // namespace espalier::onnx
