//===- EmitParts.cpp - Ops that cut and join tensors -*- C++ -*-===//

#include "llvm/ADT/STLExtras.h"

#include "ConstantOps.h"
#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;

namespace espalier::onnx {

//===----------------------------------------------------------------------===//
// Join
//===----------------------------------------------------------------------===//

static bool checkParts(NodeContext &node, ArrayRef<ImportedValue> parts,
                       int64_t axis) {
  for (const ImportedValue &part : parts) {
    bool fits = part.kind == ImportedValue::Kind::Tensor &&
                part.dtype == parts[0].dtype &&
                part.shape.size() == parts[0].shape.size();
    for (size_t i = 0; fits && i < part.shape.size(); ++i)
      fits = int64_t(i) == axis || part.shape[i] == parts[0].shape[i];
    if (!fits) {
      node.fail("operands of shapes " + shapeText(parts[0].shape) + " and " +
                shapeText(part.shape) + " do not join along axis " +
                Twine(axis));
      return false;
    }
  }
  return true;
}

static void setJoined(NodeContext &node, ArrayRef<ImportedValue> parts) {
  if (parts.empty())
    return node.fail("expects an operand");
  std::optional<int64_t> axis = node.axis(0, parts[0].shape.size());
  if (!axis || !checkParts(node, parts, *axis))
    return;
  SmallVector<const Constant *> constants;
  for (const ImportedValue &part : parts)
    if (part.constant)
      constants.push_back(&*part.constant);
  if (constants.size() == parts.size()) {
    auto mayFold = [&](int64_t n) { return node.mayFold(n); };
    if (Folded folded = concatConstants(constants, *axis, mayFold))
      return node.set(0, std::move(*folded));
  }
  SmallVector<mlir::Value> values;
  for (const ImportedValue &part : parts)
    if (part.shape[*axis] != 0)
      values.push_back(node.materialize(part));
  if (values.empty())
    return node.unsupported("an empty result");
  node.set(0, node.nn.concat(values, *axis));
}

void emitConcat(NodeContext &node) {
  if (!node.attribute("axis"))
    return node.fail("attribute 'axis' is missing");
  SmallVector<ImportedValue> parts;
  for (unsigned i = 0; i < node.inputs(); ++i)
    parts.push_back(node.in(i));
  setJoined(node, parts);
}

void emitConcatFromSequence(NodeContext &node) {
  if (node.attr("new_axis", int64_t(0)))
    return node.unsupported("attribute 'new_axis' 1");
  if (node.in(0).kind != ImportedValue::Kind::Sequence)
    return node.fail("expects a sequence");
  std::vector<ImportedValue> parts = node.in(0).sequence;
  setJoined(node, parts);
}

void emitSequenceConstruct(NodeContext &node) {
  ImportedValue result;
  result.kind = ImportedValue::Kind::Sequence;
  for (unsigned i = 0; i < node.inputs(); ++i)
    result.sequence.push_back(node.in(i));
  node.set(0, std::move(result));
}

//===----------------------------------------------------------------------===//
// Cut
//===----------------------------------------------------------------------===//

/// A part of operand 0 in one dimension.
static ImportedValue part(NodeContext &node, int64_t axis, int64_t offset,
                          int64_t size) {
  Shape sizes = node.shape(0);
  Shape offsets(sizes.size(), 0), steps(sizes.size(), 1);
  sizes[axis] = size;
  offsets[axis] = offset;
  if (const Constant *constant = node.constant(0)) {
    auto mayFold = [&](int64_t n) { return node.mayFold(n); };
    Folded folded = sliceConstant(*constant, offsets, sizes, steps, mayFold);
    if (folded)
      return tensorValue(std::move(*folded));
  }
  return tensorValue(node.nn.sliceDim(node.value(0), axis, offset, size));
}

/// Sizes of the parts along the axis, or nothing after a report.
static std::optional<Shape> splitSizes(NodeContext &node, int64_t size,
                                       int64_t count) {
  std::optional<std::vector<int64_t>> given;
  if (node.has(1)) {
    given = node.ints(1);
    if (!given)
      return std::nullopt;
  } else {
    given = node.attrInts("split");
  }
  Shape sizes;
  if (given) {
    sizes.assign(given->begin(), given->end());
  } else {
    count = node.attr("num_outputs", count);
    if (count < 1 || count > (1 << 20)) {
      node.fail("attribute 'num_outputs' is " + Twine(count));
      return std::nullopt;
    }
    int64_t block = (size + count - 1) / count; // the last may be smaller
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(std::clamp<int64_t>(size - i * block, 0, block));
  }
  int64_t sum = 0;
  for (int64_t part : sizes) {
    if (part < 0 || part > size) {
      node.fail("part of size " + Twine(part) + " of " + Twine(size));
      return std::nullopt;
    }
    sum += part;
  }
  if (sum != size) {
    node.fail("parts of " + Twine(sum) + " elements of " + Twine(size));
    return std::nullopt;
  }
  return sizes;
}

void emitSplit(NodeContext &node) {
  std::optional<int64_t> axis = node.axis(0, node.rank(0));
  if (!axis)
    return;
  std::optional<Shape> sizes =
      splitSizes(node, node.shape(0)[*axis], node.node.outputs.size());
  if (!sizes)
    return;
  if (sizes->size() != node.node.outputs.size())
    return node.fail("has " + Twine(node.node.outputs.size()) +
                     " outputs for " + Twine(sizes->size()) + " parts");
  int64_t offset = 0;
  for (size_t i = 0; i < sizes->size(); ++i) {
    node.set(i, part(node, *axis, offset, (*sizes)[i]));
    offset += (*sizes)[i];
  }
}

void emitSplitToSequence(NodeContext &node) {
  std::optional<int64_t> axis = node.axis(0, node.rank(0));
  if (!axis)
    return;
  int64_t size = node.shape(0)[*axis], block = 1;
  Shape sizes;
  bool isBlock = !node.has(1);
  if (node.has(1)) {
    std::optional<std::vector<int64_t>> given = node.ints(1);
    if (!given)
      return;
    isBlock = node.shape(1).empty();
    if (isBlock)
      block = given->front();
    else
      sizes.assign(given->begin(), given->end());
  }
  if (block < 1 || size / block > (1 << 16))
    return node.fail("has parts of size " + Twine(block));
  for (int64_t at = 0; isBlock && at < size; at += block)
    sizes.push_back(std::min(block, size - at));
  ImportedValue result;
  result.kind = ImportedValue::Kind::Sequence;
  int64_t offset = 0;
  bool dropsAxis = !node.has(1) && !node.attr("keepdims", int64_t(1));
  if (dropsAxis)
    return node.unsupported("attribute 'keepdims' 0");
  for (int64_t length : sizes) {
    if (length < 0 || length > size - offset)
      return node.fail("parts exceed axis " + Twine(*axis));
    result.sequence.push_back(part(node, *axis, offset, length));
    offset += length;
  }
  if (offset != size)
    return node.fail("parts of " + Twine(offset) + " elements of " +
                     Twine(size));
  node.set(0, std::move(result));
}

void emitSequenceAt(NodeContext &node) {
  const ImportedValue &sequence = node.in(0);
  if (sequence.kind != ImportedValue::Kind::Sequence)
    return node.fail("expects a sequence");
  std::optional<int64_t> at = node.integer(1);
  if (!at)
    return;
  int64_t size = sequence.sequence.size();
  if (*at < -size || *at >= size)
    return node.fail("position " + Twine(*at) + " is out of range for " +
                     Twine(size) + " elements");
  node.set(0, ImportedValue(sequence.sequence[*at < 0 ? *at + size : *at]));
}

namespace {
/// A slice in each dimension, offsets inside the tensor.
struct SliceSpec {
  Shape offsets, sizes, steps;
};
} // namespace

static std::optional<SliceSpec> readSlice(NodeContext &node) {
  const Shape &shape = node.shape(0);
  auto starts = node.ints(1);
  auto ends = starts ? node.ints(2) : std::nullopt;
  if (!ends)
    return std::nullopt;
  std::vector<int64_t> axes(starts->size()), steps(starts->size(), 1);
  for (size_t i = 0; i < axes.size(); ++i)
    axes[i] = i;
  for (auto [i, into] : {std::pair(3u, &axes), std::pair(4u, &steps)}) {
    if (!node.has(i))
      continue;
    auto given = node.ints(i);
    if (!given)
      return std::nullopt;
    *into = *given;
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size()) {
    node.fail("starts, ends, axes and steps differ in length");
    return std::nullopt;
  }
  SliceSpec spec{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
  if (!node.axes(axes, shape.size()))
    return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + shape.size() : axes[i];
    int64_t size = shape[axis], step = steps[i];
    if (step == 0) {
      node.fail("has a step of 0");
      return std::nullopt;
    }
    // Beyond the tensor's size a step takes one element, whatever its size.
    step = std::clamp<int64_t>(step, -size - 1, size + 1);
    auto place = [&](int64_t at, int64_t low, int64_t high) {
      if (at < 0)
        at = at < -size ? low : at + size;
      return std::clamp(at, low, high);
    };
    int64_t start, count;
    if (step > 0) {
      start = place((*starts)[i], 0, size);
      int64_t end = place((*ends)[i], 0, size);
      count = end > start ? (end - start + step - 1) / step : 0;
    } else {
      start = place((*starts)[i], -1, size - 1);
      int64_t end = place((*ends)[i], -1, size - 1);
      count = start > end ? (start - end - step - 1) / -step : 0;
    }
    spec.offsets[axis] = count ? start : 0;
    spec.sizes[axis] = count;
    spec.steps[axis] = step;
  }
  return spec;
}

/// nn.slice has positive steps only: a reversal is a gather of rows.
static mlir::Value reversed(NodeContext &node, mlir::Value value,
                            int64_t axis) {
  int64_t size = NnBuilder::shapeOf(value)[axis];
  int64_t rank = NnBuilder::shapeOf(value).size();
  std::vector<int64_t> order(size);
  for (int64_t i = 0; i < size; ++i)
    order[i] = size - 1 - i;
  mlir::Value rows = node.nn.constant(Constant::fromInts(order, Dtype::Int64));
  Shape perm = dimsBetween(0, rank);
  std::swap(perm[0], perm[axis]);
  value = node.nn.transpose(value, perm);
  return node.nn.transpose(node.nn.gather(value, rows), perm);
}

void emitSlice(NodeContext &node) {
  std::optional<SliceSpec> spec = readSlice(node);
  if (!spec)
    return;
  if (const Constant *constant = node.constant(0)) {
    auto mayFold = [&](int64_t n) { return node.mayFold(n); };
    Folded folded = sliceConstant(*constant, spec->offsets, spec->sizes,
                                  spec->steps, mayFold);
    if (folded)
      return node.set(0, std::move(*folded));
  }
  if (*elementCount(spec->sizes) == 0)
    return node.unsupported("an empty slice of data");
  SmallVector<int64_t> backwards;
  for (size_t i = 0; i < spec->steps.size(); ++i) {
    if (spec->steps[i] > 0)
      continue;
    backwards.push_back(i);
    spec->steps[i] = -spec->steps[i];
    spec->offsets[i] -= (spec->sizes[i] - 1) * spec->steps[i];
  }
  mlir::Value value =
      node.nn.slice(node.value(0), spec->offsets, spec->sizes, spec->steps);
  for (int64_t axis : backwards)
    value = reversed(node, value, axis);
  node.setRearranged(value);
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

/// One side's margin of a dimension in the modes that repeat elements.
static mlir::Value margin(NodeContext &node, mlir::Value value, int64_t axis,
                          int64_t count, bool isLow, StringRef mode) {
  int64_t size = NnBuilder::shapeOf(value)[axis];
  if (mode == "edge") {
    mlir::Value edge = node.nn.sliceDim(value, axis, isLow ? 0 : size - 1, 1);
    Shape shape(NnBuilder::shapeOf(value));
    shape[axis] = count;
    return node.nn.broadcast(edge, shape);
  }
  if (mode == "wrap")
    return node.nn.sliceDim(value, axis, isLow ? size - count : 0, count);
  mlir::Value mirrored =
      node.nn.sliceDim(value, axis, isLow ? 1 : size - 1 - count, count);
  return reversed(node, mirrored, axis);
}

static void padByCopies(NodeContext &node, ArrayRef<int64_t> low,
                        ArrayRef<int64_t> high, StringRef mode) {
  mlir::Value value = node.value(0);
  for (size_t i = 0; i < low.size(); ++i) {
    if (low[i] == 0 && high[i] == 0)
      continue;
    int64_t size = NnBuilder::shapeOf(value)[i];
    int64_t most = mode == "edge"   ? INT64_MAX
                   : mode == "wrap" ? size
                                    : size - 1;
    if (low[i] < 0 || high[i] < 0 || low[i] > most || high[i] > most || !size)
      return node.unsupported("pads " + Twine(low[i]) + " and " +
                              Twine(high[i]) + " of a dimension of size " +
                              Twine(size) + " in mode " + quoted(mode));
    SmallVector<mlir::Value> parts;
    if (low[i])
      parts.push_back(margin(node, value, i, low[i], true, mode));
    parts.push_back(value);
    if (high[i])
      parts.push_back(margin(node, value, i, high[i], false, mode));
    value = node.nn.concat(parts, i);
  }
  node.set(0, value);
}

static bool readPads(NodeContext &node, Shape &low, Shape &high) {
  std::optional<std::vector<int64_t>> pads = node.ints(1);
  if (!pads)
    return false;
  int64_t rank = node.rank(0);
  std::vector<int64_t> axes(rank);
  for (int64_t i = 0; i < rank; ++i)
    axes[i] = i;
  if (node.has(3)) {
    auto given = node.ints(3);
    if (!given || !node.axes(*given, rank))
      return false;
    axes = *given;
  }
  if (pads->size() != 2 * axes.size()) {
    node.fail("has " + Twine(pads->size()) + " pads for " + Twine(axes.size()) +
              " dimensions");
    return false;
  }
  low.assign(rank, 0);
  high.assign(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    low[axis] = (*pads)[i];
    high[axis] = (*pads)[i + axes.size()];
    int64_t limit = int64_t(1) << 40;
    if (low[axis] > limit || high[axis] > limit || low[axis] < -limit ||
        high[axis] < -limit ||
        node.shape(0)[axis] + low[axis] + high[axis] < 1) {
      node.fail("pads " + Twine(low[axis]) + " and " + Twine(high[axis]) +
                " do not fit a dimension of size " +
                Twine(node.shape(0)[axis]));
      return false;
    }
  }
  return true;
}

void emitPad(NodeContext &node) {
  Shape low, high;
  if (!readPads(node, low, high))
    return;
  StringRef mode = node.attr("mode", StringRef("constant"));
  if (mode == "edge" || mode == "reflect" || mode == "wrap")
    return padByCopies(node, low, high, mode);
  if (mode != "constant")
    return node.fail("attribute 'mode' is " + quoted(mode));
  double fill = 0;
  if (node.has(2)) {
    const Constant *value = node.constant(2);
    if (!value || !value->isUniform())
      return node.unsupported("a padding value that depends on data");
    fill = value->firstAsDouble();
  }
  // Negative pads cut.
  Shape offsets(low.size(), 0), steps(low.size(), 1), sizes = node.shape(0);
  for (size_t i = 0; i < low.size(); ++i) {
    offsets[i] = std::max<int64_t>(-low[i], 0);
    sizes[i] -= offsets[i] + std::max<int64_t>(-high[i], 0);
    low[i] = std::max<int64_t>(low[i], 0);
    high[i] = std::max<int64_t>(high[i], 0);
    if (sizes[i] < 1)
      return node.unsupported("pads that cut more than there is");
  }
  mlir::Value value = node.nn.slice(node.value(0), offsets, sizes, steps);
  node.set(0, node.nn.pad(value, low, high, fill));
}

} // namespace espalier::onnx
