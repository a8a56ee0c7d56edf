//===- EmitWindow.cpp - Convolution and pooling -*- C++ -*-===//

#include "llvm/ADT/STLExtras.h"

#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;

namespace espalier::onnx {

/// An attribute with an entry for each spatial dimension (times `factor`).
static std::optional<Shape> perDimension(NodeContext &node, StringRef name,
                                         int64_t count, int64_t fallback,
                                         int64_t least) {
  auto given = node.attrInts(name);
  if (!given)
    return Shape(count, fallback);
  if (int64_t(given->size()) != count) {
    node.fail("attribute " + quoted(name) + " has " + Twine(given->size()) +
              " entries, expects " + Twine(count));
    return std::nullopt;
  }
  for (int64_t value : *given)
    if (value < least || value > (1ll << 30)) {
      node.fail("attribute " + quoted(name) + " holds " + Twine(value));
      return std::nullopt;
    }
  return Shape(given->begin(), given->end());
}

/// Pads so that there are ceil(size / stride) results.
static bool padSame(NodeContext &node, NnBuilder::Window &window, bool upper) {
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    int64_t size = node.shape(0)[i + 2], stride = window.strides[i];
    int64_t extent = window.dilations[i] * (window.kernel[i] - 1) + 1;
    int64_t count = (size + stride - 1) / stride;
    int64_t total = std::max<int64_t>((count - 1) * stride + extent - size, 0);
    window.low[i] = upper ? total / 2 : total - total / 2;
    window.high[i] = total - window.low[i];
  }
  return true;
}

/// Kernel, strides, pads and dilations of a node with `kernel` sizes.
static std::optional<NnBuilder::Window> readWindow(NodeContext &node,
                                                   Shape kernel) {
  int64_t count = kernel.size();
  NnBuilder::Window window;
  window.kernel = std::move(kernel);
  auto strides = perDimension(node, "strides", count, 1, 1);
  auto dilations = perDimension(node, "dilations", count, 1, 1);
  auto pads = perDimension(node, "pads", 2 * count, 0, 0);
  if (!strides || !dilations || !pads)
    return std::nullopt;
  window.strides = *strides;
  window.dilations = *dilations;
  window.low.assign(pads->begin(), pads->begin() + count);
  window.high.assign(pads->begin() + count, pads->end());
  StringRef automatic = node.attr("auto_pad", StringRef("NOTSET"));
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    padSame(node, window, automatic == "SAME_UPPER");
  } else if (automatic == "VALID") {
    window.low.assign(count, 0);
    window.high.assign(count, 0);
  } else if (automatic != "NOTSET") {
    node.fail("attribute 'auto_pad' is " + quoted(automatic));
    return std::nullopt;
  }
  return window;
}

/// The result's shape; nothing after a report. With `ceil` a last window may
/// reach beyond the padding, which is then widened, but does not begin there.
static std::optional<Shape> windowShape(NodeContext &node,
                                        NnBuilder::Window &window,
                                        int64_t features, bool ceil) {
  Shape shape{node.shape(0)[0], features};
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    int64_t size = node.shape(0)[i + 2], stride = window.strides[i];
    int64_t extent = window.dilations[i] * (window.kernel[i] - 1) + 1;
    int64_t room = size + window.low[i] + window.high[i] - extent;
    if (room < 0) {
      node.fail("window of " + Twine(extent) + " exceeds dimension " +
                Twine(i + 2) + " of size " + Twine(size));
      return std::nullopt;
    }
    int64_t results = room / stride + 1;
    if (ceil && room % stride && results * stride < size + window.low[i]) {
      window.high[i] += stride - room % stride;
      ++results;
    }
    shape.push_back(results);
  }
  return shape;
}

static bool checkSpatial(NodeContext &node) {
  int64_t rank = node.rank(0);
  if (rank < 3 || rank > 5)
    node.unsupported("input of rank " + Twine(rank) +
                     "; supported are 1 to 3 spatial dimensions");
  else if (!isFloating(node.dtype(0)))
    node.unsupported("operands of " + dtypeName(node.dtype(0)));
  else if (*elementCount(node.shape(0)) == 0)
    node.unsupported("an empty operand");
  return !node.failed();
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

static bool checkConv(NodeContext &node, int64_t groups) {
  const Shape &x = node.shape(0), &w = node.shape(1);
  if (x.size() != w.size())
    node.fail("input of rank " + Twine(x.size()) + " and filter of rank " +
              Twine(w.size()));
  else if (node.dtype(0) != node.dtype(1))
    node.fail("operands are of " + dtypeName(node.dtype(0)) + " and " +
              dtypeName(node.dtype(1)));
  else if (*elementCount(w) == 0)
    node.unsupported("an empty operand");
  else if (groups < 1 || groups > x[1] || x[1] % groups || w[0] % groups ||
           x[1] / groups != w[1])
    node.fail("filter " + shapeText(w) + " in " + Twine(groups) +
              " groups does not fit input " + shapeText(x));
  return !node.failed();
}

void emitConv(NodeContext &node) {
  int64_t groups = node.attr("group", int64_t(1));
  if (!checkSpatial(node) || !checkConv(node, groups))
    return;
  Shape kernel(ArrayRef(node.shape(1)).drop_front(2));
  if (auto given = node.attrInts("kernel_shape"))
    if (!llvm::equal(*given, kernel))
      return node.fail("attribute 'kernel_shape' is " + shapeText(*given) +
                       ", the filter's is " + shapeText(kernel));
  auto window = readWindow(node, kernel);
  if (!window || !windowShape(node, *window, node.shape(1)[0], false))
    return;
  mlir::Value result =
      node.nn.conv(node.value(0), node.value(1), *window, groups);
  const Constant *zero = node.constant(2);
  if (!node.has(2) || (zero && zero->isUniform() && zero->first().f == 0))
    return node.set(0, result);
  if (node.shape(2) != Shape{node.shape(1)[0]})
    return node.fail("bias of shape " + shapeText(node.shape(2)) + " for " +
                     Twine(node.shape(1)[0]) + " features");
  Shape column(kernel.size() + 1, 1);
  column[0] = node.shape(1)[0];
  mlir::Value bias = node.nn.reshape(node.value(2), column);
  node.set(0, node.nn.map({result, bias}, NnBuilder::shapeOf(result),
                          node.element(0),
                          [](ScalarBuilder &s, mlir::ValueRange x) {
                            return s.add(x[0], x[1]);
                          }));
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

static std::optional<NnBuilder::Window> readPool(NodeContext &node) {
  if (!checkSpatial(node))
    return std::nullopt;
  if (!node.attribute("kernel_shape")) {
    node.fail("attribute 'kernel_shape' is missing");
    return std::nullopt;
  }
  auto kernel = perDimension(node, "kernel_shape", node.rank(0) - 2, 1, 1);
  if (!kernel)
    return std::nullopt;
  return readWindow(node, *kernel);
}

static bool checkPads(NodeContext &node, const NnBuilder::Window &window) {
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    int64_t extent = window.dilations[i] * (window.kernel[i] - 1) + 1;
    if (window.low[i] >= extent || window.high[i] >= extent) {
      node.unsupported("pads that are not smaller than the window");
      return false;
    }
  }
  return true;
}

void emitMaxPool(NodeContext &node) {
  auto window = readPool(node);
  if (!window)
    return;
  auto shape = windowShape(node, *window, node.shape(0)[1],
                           node.attr("ceil_mode", int64_t(0)));
  if (!shape || !checkPads(node, *window))
    return;
  node.set(0, node.nn.maxPool(node.value(0), *window, *shape));
}

void emitAveragePool(NodeContext &node) {
  auto window = readPool(node);
  if (!window)
    return;
  bool countsPads = node.attr("count_include_pad", int64_t(0));
  Shape high = window->high;
  auto shape = windowShape(node, *window, node.shape(0)[1],
                           node.attr("ceil_mode", int64_t(0)));
  if (!shape || !checkPads(node, *window))
    return;
  if (countsPads && high != window->high)
    return node.unsupported("'ceil_mode' with 'count_include_pad'");
  node.set(0, node.nn.avgPool(node.value(0), *window, countsPads, *shape));
}

static void emitGlobalPool(NodeContext &node, NnBuilder::Reduce kind) {
  if (node.rank(0) < 3 || !isFloating(node.dtype(0)))
    return node.fail("expects floating-point numbers of rank 3 or more");
  Shape dims = dimsBetween(2, node.rank(0));
  mlir::Value value = node.nn.reduce(kind, node.value(0), dims);
  int64_t count = *elementCount(ArrayRef<int64_t>(node.shape(0)).drop_front(2));
  if (kind == NnBuilder::Reduce::Sum)
    value = node.nn.map(value, NnBuilder::shapeOf(value), node.element(0),
                        [&](ScalarBuilder &s, mlir::ValueRange x) {
                          return s.div(x[0], s.constantLike(count, x[0]));
                        });
  node.set(0, value);
}

void emitGlobalAveragePool(NodeContext &node) {
  emitGlobalPool(node, NnBuilder::Reduce::Sum);
}

void emitGlobalMaxPool(NodeContext &node) {
  emitGlobalPool(node, NnBuilder::Reduce::Max);
}

} // namespace espalier::onnx
