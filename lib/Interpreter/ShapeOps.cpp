//===- ShapeOps.cpp - Evaluates values from nothing and structural ops ----===//

#include "dialects/Nn/NnShapes.h"
#include "espalier/Support/Philox.h"

#include "Evaluators.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

/// Calls `f` with the elements of the result and of `tensors`, as what they
/// are.
template <typename F>
static void onElements(Tensor &result, const Tensor &tensor, F f) {
  if (result.isFloat())
    f(result.floats.data(), tensor.floats.data());
  else
    f(result.integers.data(), tensor.integers.data());
}

/// Reads the result's elements from `base` with `strides` of the input.
static void readStrided(const Evaluation &e, ArrayRef<int64_t> strides,
                        int64_t base) {
  onElements(e.out(), e.in(0), [&](auto *to, const auto *from) {
    forEachElement(
        e.out().shape, strides, base,
        [&](int64_t position, int64_t offset) { to[position] = from[offset]; });
  });
}

//===----------------------------------------------------------------------===//
// Values from nothing
//===----------------------------------------------------------------------===//

LogicalResult interpreter::evaluate(nn::ConstantOp op, const Evaluation &e) {
  auto tensor =
      Tensor::fromAttribute(op.getValue(), nn::tensorTypeOf(op.getResult()));
  if (failed(tensor))
    return op.emitOpError("has elements that are not in the program");
  e.out() = std::move(*tensor);
  return success();
}

LogicalResult interpreter::evaluate(nn::IotaOp op, const Evaluation &e) {
  Tensor &out = e.out();
  int64_t start = e.operands.empty() ? 0 : e.in(0).integers.front();
  SmallVector<int64_t> alongDim(out.shape.size(), 0);
  alongDim[op.getDim()] = 1;
  forEachElement(out.shape, alongDim, start,
                 [&](int64_t position, int64_t number) {
                   if (out.isFloat())
                     out.floats[position] = number;
                   else
                     out.integers[position] = number;
                 });
  return success();
}

LogicalResult interpreter::evaluate(nn::RandomUniformOp op,
                                    const Evaluation &e) {
  if (e.in(0).size() != 3)
    return op.emitOpError("expects seed, step and microbatch");
  int64_t seed = e.in(0).integers[0], step = e.in(0).integers[1];
  int64_t microbatch = e.in(0).integers[2];
  ArrayRef<int64_t> logical = op.getLogicalShape();
  SmallVector<int64_t> strides = rowMajorStrides(logical);
  int64_t base = microbatch;
  for (int64_t size : logical)
    base *= size;
  if (op.getOffsets())
    for (auto [offset, stride] : llvm::zip(e.in(1).integers, strides))
      base += offset * stride;
  uint32_t stream = hashOfStream(op.getStream());
  forEachElement(
      e.out().shape, strides, base, [&](int64_t position, int64_t element) {
        e.out().floats[position] = uniformAt(seed, stream, element, step);
      });
  return success();
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

LogicalResult interpreter::evaluate(nn::ReshapeOp, const Evaluation &e) {
  e.out().floats = e.in(0).floats;
  e.out().integers = e.in(0).integers;
  return success();
}

LogicalResult interpreter::evaluate(nn::TransposeOp op, const Evaluation &e) {
  SmallVector<int64_t> own = rowMajorStrides(e.in(0).shape), strides;
  for (int64_t dim : op.getPermutation())
    strides.push_back(own[dim]);
  readStrided(e, strides, /*base=*/0);
  return success();
}

LogicalResult interpreter::evaluate(nn::SliceOp op, const Evaluation &e) {
  SmallVector<int64_t> strides = rowMajorStrides(e.in(0).shape);
  int64_t base = 0;
  for (auto [stride, offset, step] :
       llvm::zip(strides, op.getOffsets(), op.getStrides())) {
    base += offset * stride;
    stride *= step;
  }
  readStrided(e, strides, base);
  return success();
}

/// Writes the elements of `tensor` into the result, its first at `base`.
static void writeBlock(Tensor &result, const Tensor &tensor, int64_t base) {
  onElements(result, tensor, [&](auto *to, const auto *from) {
    forEachElement(
        tensor.shape, rowMajorStrides(result.shape), base,
        [&](int64_t position, int64_t offset) { to[offset] = from[position]; });
  });
}

LogicalResult interpreter::evaluate(nn::ConcatOp op, const Evaluation &e) {
  int64_t stride = rowMajorStrides(e.out().shape)[op.getDim()], start = 0;
  for (const Tensor *input : e.operands) {
    writeBlock(e.out(), *input, start * stride);
    start += input->shape[op.getDim()];
  }
  return success();
}

LogicalResult interpreter::evaluate(nn::PadOp op, const Evaluation &e) {
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    llvm::fill(e.out().floats, number.getValueAsDouble());
  else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    llvm::fill(e.out().integers, e.out().elementType.isInteger(1)
                                     ? integer.getValue().getZExtValue()
                                     : integer.getInt());
  else
    return op.emitOpError("pads with what is no number");
  int64_t base = 0;
  for (auto [low, stride] :
       llvm::zip(op.getLow(), rowMajorStrides(e.out().shape)))
    base += low * stride;
  writeBlock(e.out(), e.in(0), base);
  return success();
}

LogicalResult interpreter::evaluate(nn::BroadcastOp, const Evaluation &e) {
  readStrided(e, broadcastStrides(e.in(0).shape, e.out().shape), /*base=*/0);
  return success();
}
