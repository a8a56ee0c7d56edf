//===- EmitReduce.cpp - Reductions and softmax -*- C++ -*-===//

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

#include "ConstantOps.h"
#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;
using Reduce = espalier::onnx::NnBuilder::Reduce;

namespace espalier::onnx {

//===----------------------------------------------------------------------===//
// Reduce*
//===----------------------------------------------------------------------===//

/// The axes to reduce; nothing after a report. `isNoop` if there is nothing to
/// do.
static std::optional<Shape> reducedAxes(NodeContext &node, bool &isNoop) {
  std::optional<std::vector<int64_t>> given;
  if (node.has(1)) {
    given = node.ints(1);
    if (!given)
      return std::nullopt;
  } else {
    given = node.attrInts("axes");
  }
  bool isEmpty = !given || given->empty();
  isNoop = isEmpty && node.attr("noop_with_empty_axes", int64_t(0));
  if (isNoop)
    return Shape();
  if (isEmpty)
    return dimsBetween(0, node.rank(0));
  return node.axes(*given, node.rank(0));
}

static Shape withoutDims(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!llvm::is_contained(dims, int64_t(i)))
      result.push_back(shape[i]);
  return result;
}

static mlir::Value
mapOne(NodeContext &node, mlir::Value value,
       llvm::function_ref<mlir::Value(ScalarBuilder &, mlir::Value)> body) {
  return node.nn.map(
      value, NnBuilder::shapeOf(value), NnBuilder::elementOf(value),
      [&](ScalarBuilder &s, mlir::ValueRange x) { return body(s, x[0]); });
}

/// log(sum(exp(x))) with the largest element taken out; its dimensions stay.
static mlir::Value logSumExp(NodeContext &node, mlir::Value value,
                             ArrayRef<int64_t> dims) {
  NnBuilder &nn = node.nn;
  mlir::Type element = NnBuilder::elementOf(value);
  mlir::Value largest = nn.reduce(Reduce::Max, value, dims);
  mlir::Value exps = nn.map({value, largest}, NnBuilder::shapeOf(value),
                            element, [](ScalarBuilder &s, mlir::ValueRange x) {
                              return s.exp(s.sub(x[0], x[1]));
                            });
  mlir::Value sum = nn.reduce(Reduce::Sum, exps, dims);
  return nn.map({sum, largest}, NnBuilder::shapeOf(sum), element,
                [](ScalarBuilder &s, mlir::ValueRange x) {
                  return s.add(s.log(x[0]), x[1]);
                });
}

/// The reduction of data by its ONNX name; reduced dimensions stay.
static mlir::Value reduceData(NodeContext &node, StringRef op,
                              mlir::Value value, ArrayRef<int64_t> dims) {
  NnBuilder &nn = node.nn;
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= NnBuilder::shapeOf(value)[dim];
  if (op == "ReduceMax" || op == "ReduceMin" || op == "ReduceProd")
    return nn.reduce(op == "ReduceMax"   ? Reduce::Max
                     : op == "ReduceMin" ? Reduce::Min
                                         : Reduce::Prod,
                     value, dims);
  if (op == "ReduceLogSumExp")
    return logSumExp(node, value, dims);
  if (op == "ReduceL1")
    value = mapOne(node, value,
                   [](ScalarBuilder &s, mlir::Value x) { return s.abs(x); });
  if (op == "ReduceL2" || op == "ReduceSumSquare")
    value = mapOne(node, value,
                   [](ScalarBuilder &s, mlir::Value x) { return s.mul(x, x); });
  mlir::Value sum = nn.reduce(Reduce::Sum, value, dims);
  if (op == "ReduceMean")
    sum = mapOne(node, sum, [&](ScalarBuilder &s, mlir::Value x) {
      return s.div(x, s.constantLike(count, x));
    });
  if (op == "ReduceL2")
    sum = mapOne(node, sum,
                 [](ScalarBuilder &s, mlir::Value x) { return s.sqrt(x); });
  if (op == "ReduceLogSum")
    sum = mapOne(node, sum,
                 [](ScalarBuilder &s, mlir::Value x) { return s.log(x); });
  return sum;
}

static Folded foldReduce(NodeContext &node, StringRef op,
                         ArrayRef<int64_t> dims) {
  const Constant *value = node.constant(0);
  auto kind = StringSwitch<std::optional<Reduction>>(op)
                  .Case("ReduceSum", Reduction::Sum)
                  .Case("ReduceMean", Reduction::Mean)
                  .Case("ReduceMax", Reduction::Max)
                  .Case("ReduceMin", Reduction::Min)
                  .Case("ReduceProd", Reduction::Prod)
                  .Default(std::nullopt);
  if (!value || !kind)
    return std::nullopt;
  auto mayFold = [&](int64_t n) { return node.mayFold(n); };
  return reduceConstant(*value, *kind, dims, mayFold);
}

void emitReduce(NodeContext &node) {
  StringRef op = node.node.proto->op_type();
  bool isNoop = false;
  std::optional<Shape> dims = reducedAxes(node, isNoop);
  if (!dims)
    return;
  if (isNoop)
    return node.set(0, ImportedValue(node.in(0)));
  if (*elementCount(node.shape(0)) == 0)
    return node.unsupported("an empty tensor");
  bool keeps = node.attr("keepdims", int64_t(1));
  if (Folded folded = foldReduce(node, op, *dims)) {
    if (!keeps) {
      folded->stored = withoutDims(folded->stored, *dims);
      folded->shape = withoutDims(folded->shape, *dims);
    }
    return node.set(0, std::move(*folded));
  }
  if (node.dtype(0) == Dtype::Bool ||
      (!isFloating(node.dtype(0)) && op != "ReduceSum" && op != "ReduceMax" &&
       op != "ReduceMin" && op != "ReduceProd"))
    return node.unsupported(op + " of " + dtypeName(node.dtype(0)));
  mlir::Value value = reduceData(node, op, node.value(0), *dims);
  if (!keeps)
    value =
        node.nn.reshape(value, withoutDims(NnBuilder::shapeOf(value), *dims));
  node.set(0, value);
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Computes on operand 0 with the axis last.
static void onLastAxis(NodeContext &node,
                       llvm::function_ref<mlir::Value(mlir::Value)> compute) {
  if (!isFloating(node.dtype(0)))
    return node.fail("expects floating-point numbers");
  std::optional<int64_t> axis = node.axis(-1, node.rank(0));
  if (!axis)
    return;
  Shape perm = dimsBetween(0, node.rank(0));
  std::swap(perm[*axis], perm.back());
  mlir::Value value = node.nn.transpose(node.value(0), perm);
  node.set(0, node.nn.transpose(compute(value), perm));
}

void emitSoftmax(NodeContext &node) {
  onLastAxis(node, [&](mlir::Value value) { return node.nn.softmax(value); });
}

void emitLogSoftmax(NodeContext &node) {
  onLastAxis(node, [&](mlir::Value value) {
    int64_t last = NnBuilder::shapeOf(value).size() - 1;
    mlir::Value lse = logSumExp(node, value, last);
    return node.nn.map(
        {value, lse}, NnBuilder::shapeOf(value), NnBuilder::elementOf(value),
        [](ScalarBuilder &s, mlir::ValueRange x) { return s.sub(x[0], x[1]); });
  });
}

} // namespace espalier::onnx
