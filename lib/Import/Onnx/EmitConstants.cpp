//===- EmitConstants.cpp - Ops that make constants -*- C++ -*-===//

#include <cmath>

#include "ConstantOps.h"
#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;

namespace espalier::onnx {

/// A tensor attribute as a constant, or nothing after a report.
static std::optional<Constant> readTensor(NodeContext &node,
                                          const proto::TensorProto &tensor,
                                          StringRef attribute) {
  auto report = [&](Error error) {
    node.fail("attribute " + quoted(attribute) + " " +
              toString(std::move(error)));
    return std::nullopt;
  };
  Expected<TensorInfo> info = checkTensor(tensor, node.state.files);
  if (!info)
    return report(info.takeError());
  if (info->dtype == Dtype::String) {
    node.unsupported("strings");
    return std::nullopt;
  }
  if (info->elements > (1 << 22) || !node.mayFold(info->elements)) {
    node.unsupported("a constant of " + Twine(info->elements) +
                     " elements in an attribute; make it an initializer");
    return std::nullopt;
  }
  Expected<std::string> bytes = tensorBytes(*info, node.state.files);
  if (!bytes)
    return report(bytes.takeError());
  return Constant::fromBytes(info->dtype, info->shape, *bytes);
}

void emitConstant(NodeContext &node) {
  if (node.node.attributes.size() != 1)
    return node.fail("expects one attribute");
  auto [name, attribute] = node.node.attributes[0];
  if (name == "value") {
    if (auto constant = readTensor(node, attribute->t(), name))
      node.set(0, std::move(*constant));
  } else if (name == "value_int") {
    node.set(0, Constant::scalarInt(attribute->i(), Dtype::Int64));
  } else if (name == "value_float") {
    node.set(0, Constant::scalar(attribute->f(), Dtype::Float));
  } else if (name == "value_ints") {
    node.set(0, Constant::fromInts(
                    {attribute->ints().data(), size_t(attribute->ints_size())},
                    Dtype::Int64));
  } else {
    std::vector<Scalar> data;
    for (float value : attribute->floats()) {
      Scalar element;
      element.f = value;
      data.push_back(element);
    }
    node.set(0, Constant::make(Dtype::Float, {attribute->floats_size()},
                               std::move(data)));
  }
}

void emitConstantOfShape(NodeContext &node) {
  std::optional<std::vector<int64_t>> sizes = node.ints(0);
  if (!sizes)
    return;
  if (sizes->size() > 64 || !elementCount(*sizes))
    return node.fail("shape " + shapeText(*sizes) +
                     " is negative or too large");
  Constant value = Constant::scalar(0, Dtype::Float);
  if (const proto::AttributeProto *given = node.attribute("value")) {
    auto tensor = readTensor(node, given->t(), "value");
    if (!tensor)
      return;
    if (tensor->elements() != 1)
      return node.fail("attribute 'value' expects one element, but got " +
                       Twine(tensor->elements()));
    auto mayFold = [](int64_t) { return true; };
    value = *reshapeConstant(*tensor, {}, mayFold);
  }
  node.set(0, std::move(*expandConstant(value, *sizes)));
}

static std::optional<int64_t> rangeCount(NodeContext &node, bool isFloat) {
  Scalar start = node.constant(0)->first(), limit = node.constant(1)->first(),
         step = node.constant(2)->first();
  double count;
  if (isFloat)
    count = std::ceil((limit.f - start.f) / step.f);
  else
    count = std::ceil((double(limit.i) - double(start.i)) / double(step.i));
  if (!(count < 1e12) || (isFloat ? step.f == 0 : step.i == 0)) {
    node.fail("has a step of 0, or too many elements");
    return std::nullopt;
  }
  return std::max<int64_t>(count, 0);
}

void emitRange(NodeContext &node) {
  if (!node.allConstant())
    return node.unsupported("a range that depends on data");
  Dtype dtype = node.dtype(0);
  for (unsigned i = 0; i < 3; ++i)
    if (node.dtype(i) != dtype || node.in(i).constant->elements() != 1)
      return node.fail("expects three scalars of one type");
  bool isFloat = isFloating(dtype);
  std::optional<int64_t> count = rangeCount(node, isFloat);
  if (!count)
    return;
  Scalar start = node.constant(0)->first(), step = node.constant(2)->first();
  if (!node.mayFold(*count))
    return node.unsupported("a range of " + Twine(*count) + " elements");
  std::vector<Scalar> data(*count);
  for (int64_t i = 0; i < *count; ++i) {
    if (isFloat)
      data[i].f = start.f + double(i) * step.f;
    else
      data[i].i = uint64_t(start.i) + uint64_t(i) * uint64_t(step.i);
    data[i] = roundTo(dtype, data[i]);
  }
  node.set(0, Constant::make(dtype, {*count}, std::move(data)));
}

/// true where the element stays.
static std::optional<Constant> triangle(NodeContext &node, int64_t rows,
                                        int64_t columns, int64_t shift,
                                        bool upper) {
  std::optional<int64_t> count = elementCount({rows, columns});
  if (!count || !node.mayFold(*count)) {
    node.unsupported("a triangle of " + Twine(rows) + "x" + Twine(columns));
    return std::nullopt;
  }
  std::vector<Scalar> data(*count);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      data[i * columns + j].i = upper ? j - i >= shift : j - i <= shift;
  return Constant::make(Dtype::Bool, {rows, columns}, std::move(data));
}

void emitTrilu(NodeContext &node) {
  int64_t shift = 0;
  if (node.has(1)) {
    std::optional<int64_t> given = node.integer(1);
    if (!given)
      return;
    shift = std::clamp<int64_t>(*given, -(1ll << 40), 1ll << 40);
  }
  if (node.rank(0) < 2)
    return node.fail("expects rank 2 or more");
  ArrayRef<int64_t> matrix = ArrayRef<int64_t>(node.shape(0)).take_back(2);
  auto keep = triangle(node, matrix[0], matrix[1], shift,
                       node.attr("upper", int64_t(1)));
  if (!keep)
    return;
  auto fold = [](ArrayRef<Scalar> x) {
    Scalar zero;
    zero.i = 0; // the bits of 0.0 too
    return x[0].i ? x[1] : zero;
  };
  auto body = [](ScalarBuilder &s, mlir::ValueRange x) {
    return s.select(x[0], x[1], s.constantLike(0, x[1]));
  };
  ImportedValue result =
      elementwise(node, {tensorValue(std::move(*keep)), node.in(0)},
                  node.dtype(0), {fold, body});
  if (!node.failed())
    node.set(0, std::move(result));
}

void emitEyeLike(NodeContext &node) {
  if (node.rank(0) != 2)
    return node.fail("expects rank 2");
  int64_t number = node.attr("dtype", int64_t(node.dtype(0)));
  Dtype dtype = toDtype(number);
  if (dtype == Dtype::Undefined || dtype == Dtype::String)
    return node.unsupported("data type " + Twine(number));
  int64_t shift =
      std::clamp<int64_t>(node.attr("k", int64_t(0)), -(1ll << 40), 1ll << 40);
  auto upper = triangle(node, node.shape(0)[0], node.shape(0)[1], shift, true);
  auto lower = triangle(node, node.shape(0)[0], node.shape(0)[1], shift, false);
  if (!upper || !lower)
    return;
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar both;
    both.i = x[0].i & x[1].i;
    return castScalar(both, Dtype::Bool, dtype);
  };
  auto body = [](ScalarBuilder &, mlir::ValueRange x) { return x[0]; };
  node.set(0, elementwise(node,
                          {tensorValue(std::move(*upper)),
                           tensorValue(std::move(*lower))},
                          dtype, {fold, body}));
}

void emitCumSum(NodeContext &node) {
  const Constant *value = node.constant(0);
  if (!value)
    return node.unsupported("CumSum of values that depend on data");
  std::optional<int64_t> given = node.integer(1);
  if (!given)
    return;
  std::optional<int64_t> axis = node.normalizedAxis(*given, node.rank(0));
  if (!axis)
    return;
  auto mayFold = [&](int64_t n) { return node.mayFold(n); };
  Folded folded =
      cumulateConstant(*value, *axis, node.attr("exclusive", int64_t(0)),
                       node.attr("reverse", int64_t(0)), mayFold);
  if (!folded)
    return node.unsupported("CumSum of " + Twine(value->elements()) +
                            " elements");
  node.set(0, std::move(*folded));
}

void emitOneHot(NodeContext &node) {
  std::optional<int64_t> depth = node.integer(1);
  if (!depth)
    return;
  const Constant *values = node.constant(2);
  if (*depth < 1 || *depth > (1 << 24) || !values || values->elements() != 2 ||
      isFloating(node.dtype(0)))
    return node.unsupported("other than integers, a positive depth and two "
                            "constant values");
  int64_t rank = node.rank(0);
  std::optional<int64_t> axis =
      node.normalizedAxis(node.attr("axis", int64_t(-1)), rank + 1);
  if (!axis)
    return;
  Shape column = node.shape(0), row(rank + 1, 1);
  column.insert(column.begin() + *axis, 1);
  row[*axis] = *depth;
  Constant both = values->expanded();
  double off = both.isFloat() ? (*both.data)[0].f : double((*both.data)[0].i);
  double on = both.isFloat() ? (*both.data)[1].f : double((*both.data)[1].i);
  std::vector<int64_t> numbers(*depth);
  for (int64_t i = 0; i < *depth; ++i)
    numbers[i] = i;
  Constant classes = Constant::fromInts(numbers, node.dtype(0));
  classes.shape = classes.stored = row;
  mlir::Type element = node.element(2);
  auto fold = [&](ArrayRef<Scalar> x) {
    bool isHot = x[0].i == x[1].i || x[0].i + *depth == x[1].i;
    return (*both.data)[isHot];
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) {
    using Compare = ScalarBuilder::Compare;
    mlir::Value wrapped = s.add(x[0], s.constantLike(*depth, x[0]));
    mlir::Value isHot = s.logicalOr(s.compare(Compare::Equal, x[0], x[1]),
                                    s.compare(Compare::Equal, wrapped, x[1]));
    return s.select(isHot, s.constant(on, element), s.constant(off, element));
  };
  mlir::Value indices = node.nn.reshape(node.value(0), column);
  node.set(0, elementwise(
                  node, {tensorValue(indices), tensorValue(std::move(classes))},
                  both.dtype, {fold, body}));
}

} // namespace espalier::onnx
