//===- EmitShape.cpp - Ops that change a shape or an order -*- C++ -*-===//

#include "llvm/ADT/STLExtras.h"

#include "ConstantOps.h"
#include "Handlers.h"
#include "NodeContext.h"

using namespace llvm;

namespace espalier::onnx {

void emitIdentity(NodeContext &node) { node.set(0, ImportedValue(node.in(0))); }

void emitShape(NodeContext &node) {
  int64_t rank = node.rank(0);
  auto clamp = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = clamp(node.attr("start", int64_t(0)));
  int64_t end = clamp(node.attr("end", rank));
  ArrayRef<int64_t> shape = node.shape(0);
  if (end < start)
    end = start;
  node.set(0,
           Constant::fromInts(shape.slice(start, end - start), Dtype::Int64));
}

void emitSize(NodeContext &node) {
  node.set(0, Constant::scalarInt(*elementCount(node.shape(0)), Dtype::Int64));
}

/// Operand 0 in another shape of as many elements.
static void setReshaped(NodeContext &node, ArrayRef<int64_t> shape) {
  if (const Constant *constant = node.constant(0)) {
    auto mayFold = [&](int64_t n) { return node.mayFold(n); };
    if (Folded folded = reshapeConstant(*constant, shape, mayFold))
      return node.set(0, std::move(*folded));
  }
  node.setRearranged(node.nn.reshape(node.value(0), shape));
}

void emitReshape(NodeContext &node) {
  std::optional<std::vector<int64_t>> target = node.ints(1);
  if (!target)
    return;
  bool allowZero = node.attr("allowzero", int64_t(0));
  const Shape &from = node.shape(0);
  Shape shape;
  int inferred = -1;
  for (size_t i = 0; i < target->size(); ++i) {
    int64_t size = (*target)[i];
    if (size == 0 && !allowZero) {
      if (i >= from.size())
        return node.fail("copies dimension " + Twine(i) + " of rank " +
                         Twine(from.size()));
      size = from[i];
    }
    if (size == -1) {
      if (inferred >= 0)
        return node.fail("shape has two -1");
      inferred = i;
    } else if (size < 0) {
      return node.fail("shape has size " + Twine(size));
    }
    shape.push_back(size);
  }
  int64_t count = *elementCount(from);
  if (inferred >= 0) {
    shape[inferred] = 1;
    std::optional<int64_t> rest = elementCount(shape);
    shape[inferred] = rest && *rest > 0 ? count / *rest : 0;
  }
  std::optional<int64_t> newCount = elementCount(shape);
  if (!newCount || *newCount != count) {
    std::string text;
    for (int64_t size : *target)
      text += (text.empty() ? "" : ", ") + std::to_string(size);
    return node.fail("cannot reshape " + shapeText(from) + " to [" + text +
                     "]; is the file fixed to the sizes of its example?");
  }
  setReshaped(node, shape);
}

void emitFlatten(NodeContext &node) {
  int64_t rank = node.rank(0), axis = node.attr("axis", int64_t(1));
  if (axis < -rank || axis > rank)
    return node.fail("axis " + Twine(axis) + " is out of range for rank " +
                     Twine(rank));
  axis = axis < 0 ? axis + rank : axis;
  ArrayRef<int64_t> shape = node.shape(0);
  setReshaped(node, {*elementCount(shape.take_front(axis)),
                     *elementCount(shape.drop_front(axis))});
}

/// Axes from operand 1, or from the attribute of older opsets.
static std::optional<std::vector<int64_t>> readAxes(NodeContext &node) {
  if (node.has(1))
    return node.ints(1);
  if (auto axes = node.attrInts("axes"))
    return axes;
  return std::vector<int64_t>();
}

void emitSqueeze(NodeContext &node) {
  auto given = readAxes(node);
  if (!given)
    return;
  std::optional<Shape> axes = node.axes(*given, node.rank(0));
  if (!axes)
    return;
  bool isAll = !node.has(1) && !node.attribute("axes");
  Shape shape;
  for (int64_t i = 0; i < node.rank(0); ++i) {
    int64_t size = node.shape(0)[i];
    bool drops = isAll ? size == 1 : llvm::is_contained(*axes, i);
    if (drops && size != 1)
      return node.fail("axis " + Twine(i) + " has size " + Twine(size) +
                       ", not 1");
    if (!drops)
      shape.push_back(size);
  }
  setReshaped(node, shape);
}

void emitUnsqueeze(NodeContext &node) {
  auto given = readAxes(node);
  if (!given)
    return;
  int64_t rank = node.rank(0) + given->size();
  std::optional<Shape> axes = node.axes(*given, rank);
  if (!axes)
    return;
  Shape shape = node.shape(0);
  for (int64_t axis : *axes) // ascending
    shape.insert(shape.begin() + axis, 1);
  setReshaped(node, shape);
}

void emitTranspose(NodeContext &node) {
  int64_t rank = node.rank(0);
  Shape perm;
  if (auto given = node.attrInts("perm"))
    perm.assign(given->begin(), given->end());
  else
    for (int64_t i = rank; i-- > 0;)
      perm.push_back(i);
  Shape sorted = perm;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rank)))
    return node.fail("attribute 'perm' is no permutation of " + Twine(rank) +
                     " dimensions");
  if (const Constant *constant = node.constant(0)) {
    auto mayFold = [&](int64_t n) { return node.mayFold(n); };
    if (Folded folded = transposeConstant(*constant, perm, mayFold))
      return node.set(0, std::move(*folded));
  }
  node.setRearranged(node.nn.transpose(node.value(0), perm));
}

/// Sizes of a target shape, or nothing after a report.
static std::optional<Shape> readSizes(NodeContext &node, unsigned i) {
  std::optional<std::vector<int64_t>> sizes = node.ints(i);
  if (!sizes)
    return std::nullopt;
  Shape shape(sizes->begin(), sizes->end());
  if (shape.size() > 64 || !elementCount(shape)) {
    node.fail("shape is negative or too large: " + shapeText(shape));
    return std::nullopt;
  }
  return shape;
}

void emitExpand(NodeContext &node) {
  std::optional<Shape> target = readSizes(node, 1);
  if (!target)
    return;
  std::optional<Shape> shape = broadcastShapes({node.shape(0), *target});
  if (!shape || !elementCount(*shape))
    return node.fail("cannot expand " + shapeText(node.shape(0)) + " to " +
                     shapeText(*target));
  if (const Constant *constant = node.constant(0))
    return node.set(0, std::move(*expandConstant(*constant, *shape)));
  node.setRearranged(node.nn.broadcast(node.value(0), *shape));
}

void emitTile(NodeContext &node) {
  std::optional<Shape> repeats = readSizes(node, 1);
  if (!repeats)
    return;
  const Shape &from = node.shape(0);
  if (repeats->size() != from.size())
    return node.fail("has " + Twine(repeats->size()) + " repeats for rank " +
                     Twine(from.size()));
  // A dimension of size n repeated r times is [1 -> r, n] seen as r * n.
  Shape split, wide, result;
  for (size_t i = 0; i < from.size(); ++i) {
    std::optional<int64_t> size = elementCount({from[i], (*repeats)[i]});
    if (!size)
      return node.fail("result is too large");
    split.append({1, from[i]});
    wide.append({(*repeats)[i], from[i]});
    result.push_back(*size);
  }
  if (!elementCount(result))
    return node.fail("result is too large");
  if (const Constant *constant = node.constant(0)) {
    auto mayFold = [&](int64_t n) { return node.mayFold(n); };
    Folded folded = reshapeConstant(*constant, split, mayFold);
    if (folded)
      folded = reshapeConstant(*expandConstant(*folded, wide), result, mayFold);
    if (folded)
      return node.set(0, std::move(*folded));
  }
  mlir::Value value = node.nn.reshape(node.value(0), split);
  node.setRearranged(node.nn.reshape(node.nn.broadcast(value, wide), result));
}

/// Reshape, transpose, reshape.
static void setShuffled(NodeContext &node, ArrayRef<int64_t> split,
                        ArrayRef<int64_t> perm, ArrayRef<int64_t> result) {
  mlir::Value value = node.nn.reshape(node.value(0), split);
  node.setRearranged(node.nn.reshape(node.nn.transpose(value, perm), result));
}

static bool readBlock(NodeContext &node, int64_t &block) {
  block = node.attr("blocksize", int64_t(0));
  if (node.rank(0) != 4)
    node.fail("expects rank 4, but got " + Twine(node.rank(0)));
  else if (block < 1 || block > (1 << 20))
    node.fail("attribute 'blocksize' is " + Twine(block));
  return !node.failed();
}

void emitDepthToSpace(NodeContext &node) {
  int64_t b;
  if (!readBlock(node, b))
    return;
  const Shape &s = node.shape(0);
  if (s[1] % (b * b))
    return node.fail("channels are no multiple of the block");
  int64_t depth = s[1] / (b * b);
  Shape result{s[0], depth, s[2] * b, s[3] * b};
  StringRef mode = node.attr("mode", StringRef("DCR"));
  if (mode == "DCR")
    setShuffled(node, {s[0], b, b, depth, s[2], s[3]}, {0, 3, 4, 1, 5, 2},
                result);
  else if (mode == "CRD")
    setShuffled(node, {s[0], depth, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3},
                result);
  else
    node.fail("attribute 'mode' is " + quoted(mode));
}

void emitSpaceToDepth(NodeContext &node) {
  int64_t b;
  if (!readBlock(node, b))
    return;
  const Shape &s = node.shape(0);
  if (s[2] % b || s[3] % b)
    return node.fail("spatial sizes are no multiples of the block");
  setShuffled(node, {s[0], s[1], s[2] / b, b, s[3] / b, b}, {0, 3, 5, 1, 2, 4},
              {s[0], s[1] * b * b, s[2] / b, s[3] / b});
}

} // namespace espalier::onnx
