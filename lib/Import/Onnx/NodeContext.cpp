//===- NodeContext.cpp - What the handler of an op sees -*- C++ -*-===//

#include "NodeContext.h"

#include "llvm/ADT/STLExtras.h"

#include "Checks.h"

using namespace llvm;

namespace espalier::onnx {

bool NodeContext::allConstant() const {
  for (unsigned i = 0; i < inputs(); ++i)
    if (has(i) && !in(i).constant)
      return false;
  return true;
}

mlir::Value NodeContext::compact(const ImportedValue &value) {
  if (!value.constant)
    return value.value;
  // One op for each constant: those that are broadcast differ in shape alone.
  ConstantOps &made = state.constants[value.constant->data.get()];
  for (auto &[constant, op] : made)
    if (constant.stored == value.constant->stored)
      return op;
  mlir::OpBuilder::InsertionGuard guard(state.builder);
  state.builder.setInsertionPointToStart(state.body);
  mlir::Value op = nn.constant(*value.constant);
  made.push_back({*value.constant, op});
  return op;
}

mlir::Value NodeContext::materialize(const ImportedValue &value) {
  if (!value.constant)
    return value.value;
  mlir::Value small = compact(value);
  return nn.broadcast(small, value.shape);
}

std::optional<std::vector<int64_t>> NodeContext::ints(unsigned i) {
  const Constant *value = constant(i);
  if (!value) {
    unsupported("input " + Twine(i) + " " +
                quoted(state.values.empty() ? "" : node.proto->input(i)) +
                " that depends on data; expects a constant");
    return std::nullopt;
  }
  if (value->isFloat() || value->elements() > (1 << 20)) {
    fail("input " + Twine(i) + " expects a small integer tensor, but got " +
         shapeText(value->shape) + " of " + dtypeName(value->dtype));
    return std::nullopt;
  }
  return value->ints();
}

std::optional<int64_t> NodeContext::integer(unsigned i) {
  std::optional<std::vector<int64_t>> values = ints(i);
  if (!values)
    return std::nullopt;
  if (values->size() != 1) {
    fail("input " + Twine(i) + " expects one element, but got " +
         Twine(values->size()));
    return std::nullopt;
  }
  return values->front();
}

const proto::AttributeProto *NodeContext::attribute(StringRef name) const {
  for (auto [key, value] : node.attributes)
    if (key == name)
      return value;
  return nullptr;
}

int64_t NodeContext::attr(StringRef name, int64_t fallback) const {
  const proto::AttributeProto *found = attribute(name);
  return found ? found->i() : fallback;
}

double NodeContext::attr(StringRef name, double fallback) const {
  const proto::AttributeProto *found = attribute(name);
  return found ? found->f() : fallback;
}

StringRef NodeContext::attr(StringRef name, StringRef fallback) const {
  const proto::AttributeProto *found = attribute(name);
  return found ? StringRef(found->s()) : fallback;
}

std::optional<std::vector<int64_t>>
NodeContext::attrInts(StringRef name) const {
  const proto::AttributeProto *found = attribute(name);
  if (!found)
    return std::nullopt;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

std::optional<int64_t> NodeContext::normalizedAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    fail("axis " + Twine(axis) + " is out of range for rank " + Twine(rank));
    return std::nullopt;
  }
  return axis < 0 ? axis + rank : axis;
}

std::optional<int64_t> NodeContext::axis(int64_t fallback, int64_t rank) {
  return normalizedAxis(attr("axis", fallback), rank);
}

std::optional<Shape> NodeContext::axes(ArrayRef<int64_t> given, int64_t rank) {
  Shape result;
  for (int64_t axis : given) {
    std::optional<int64_t> normalized = normalizedAxis(axis, rank);
    if (!normalized)
      return std::nullopt;
    if (llvm::is_contained(result, *normalized)) {
      fail("axis " + Twine(axis) + " is given twice");
      return std::nullopt;
    }
    result.push_back(*normalized);
  }
  llvm::sort(result);
  return result;
}

void NodeContext::set(unsigned i, ImportedValue value) {
  if (i < node.outputs.size())
    state.values[node.outputs[i]] = std::move(value);
}

void NodeContext::set(unsigned i, mlir::Value value) {
  if (!value)
    return;
  ImportedValue result;
  result.kind = ImportedValue::Kind::Tensor;
  auto type = cast<mlir::RankedTensorType>(value.getType());
  result.dtype = dtypeOf(type.getElementType());
  result.shape.assign(type.getShape().begin(), type.getShape().end());
  result.value = value;
  set(i, std::move(result));
}

void NodeContext::setRearranged(mlir::Value value, unsigned i) {
  set(0, value);
  if (!node.outputs.empty())
    state.values[node.outputs[0]].input = in(i).input;
}

void NodeContext::set(unsigned i, Constant constant) {
  ImportedValue result;
  result.kind = ImportedValue::Kind::Tensor;
  result.dtype = constant.dtype;
  result.shape = constant.shape;
  result.constant = std::move(constant);
  set(i, std::move(result));
}

void NodeContext::fail(const Twine &message) {
  if (!hasFailed)
    state.errors.add(nodeText(node) + ": " + message);
  hasFailed = true;
}

void NodeContext::remark(const Twine &message) {
  state.remarks.push_back((nodeText(node) + ": " + message).str());
}

bool NodeContext::mayFold(int64_t elements) {
  if (elements <= 1024)
    return true;
  const ImportLimits &limits = state.options.limits;
  if (uint64_t(elements) > limits.foldedElements ||
      state.foldedTotal + elements > limits.foldedTotal)
    return false;
  state.foldedTotal += elements;
  return true;
}

} // namespace espalier::onnx
