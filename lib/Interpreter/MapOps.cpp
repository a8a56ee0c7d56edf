//===- MapOps.cpp - Evaluates nn.map --------------------------------------===//
//
// The body is turned into steps once; these run on chunks of elements that stay
// in the cache.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <numeric>

#include "Evaluators.h"
#include "Scalars.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

namespace {

constexpr int64_t chunkLength = 1024;

/// A map's body as steps on lanes.
class CompiledBody {
public:
  CompiledBody(Precision precision) : precision(precision) {}

  LogicalResult compile(Block &block);
  void run(int64_t n) {
    for (const Step &step : steps)
      step(n);
  }
  Lane &lane(Value value) { return *lanes.find(value)->second; }

private:
  Lane &addLane(Value value) {
    auto lane = std::make_unique<Lane>(value.getType(), chunkLength);
    return *(lanes[value] = std::move(lane));
  }
  void addRounding(Lane &lane);
  LogicalResult addConstant(arith::ConstantOp op);

  Precision precision;
  llvm::DenseMap<Value, std::unique_ptr<Lane>> lanes;
  std::vector<Step> steps;
};

/// Reads one operand along the elements of the result.
class OperandReader {
public:
  OperandReader(const Tensor &tensor, ArrayRef<int64_t> shape)
      : tensor(tensor), shape(shape),
        strides(broadcastStrides(tensor.shape, shape)),
        isWhole(ArrayRef<int64_t>(tensor.shape) == shape) {}

  void read(int64_t begin, int64_t n, Lane &lane) const {
    if (tensor.isFloat())
      read(tensor.floats.data(), begin, n, lane.floats.data());
    else
      read(tensor.integers.data(), begin, n, lane.integers.data());
  }

private:
  template <typename T>
  void read(const T *from, int64_t begin, int64_t n, T *to) const;

  const Tensor &tensor;
  ArrayRef<int64_t> shape;
  SmallVector<int64_t> strides;
  bool isWhole;
};

} // namespace

/// Walks along runs of the last dimension, along which the stride is 0 or 1.
template <typename T>
void OperandReader::read(const T *from, int64_t begin, int64_t n, T *to) const {
  if (isWhole || shape.empty()) {
    std::copy_n(from + begin, n, to);
    return;
  }
  int64_t last = shape.back(), lastStride = strides.back();
  while (n > 0) {
    int64_t row = begin / last, column = begin % last;
    int64_t offset = column * lastStride;
    for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim) {
      offset += row % shape[dim] * strides[dim];
      row /= shape[dim];
    }
    int64_t run = std::min(n, last - column);
    if (lastStride == 0)
      std::fill_n(to, run, from[offset]);
    else
      std::copy_n(from + offset, run, to);
    to += run;
    begin += run;
    n -= run;
  }
}

void CompiledBody::addRounding(Lane &lane) {
  if (precision == Precision::Double || lane.floats.empty() ||
      lane.type.isF64())
    return;
  double *values = lane.floats.data();
  if (lane.type.isF32()) {
    steps.push_back([=](int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        values[i] = static_cast<float>(values[i]);
    });
    return;
  }
  steps.push_back([values, type = lane.type](int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      values[i] = roundToType(values[i], type);
  });
}

LogicalResult CompiledBody::addConstant(arith::ConstantOp op) {
  Lane &lane = addLane(op.getResult());
  if (auto number = dyn_cast<FloatAttr>(op.getValue()))
    llvm::fill(lane.floats, number.getValueAsDouble());
  else if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    llvm::fill(lane.integers, wrapInteger(integer.getInt(),
                                          lane.type.getIntOrFloatBitWidth()));
  else
    return op.emitOpError("is no scalar constant");
  return success();
}

LogicalResult CompiledBody::compile(Block &block) {
  for (Value argument : block.getArguments())
    addLane(argument);
  for (Operation &op : block.without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (failed(addConstant(constant)))
        return failure();
      continue;
    }
    SmallVector<const Lane *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&lane(operand));
    if (op.getNumResults() != 1)
      return op.emitOpError("is no scalar op that the interpreter knows");
    Lane &result = addLane(op.getResult(0));
    FailureOr<Step> step = makeStep(&op, operands, result);
    if (failed(step))
      return failure();
    steps.push_back(std::move(*step));
    addRounding(result);
  }
  return success();
}

LogicalResult interpreter::evaluate(nn::MapOp op, const Evaluation &e) {
  Block &block = op.getBody().front();
  CompiledBody body(e.precision);
  if (failed(body.compile(block)))
    return failure();
  ArrayRef<int64_t> shape = e.out().shape;
  std::vector<OperandReader> readers;
  for (const Tensor *operand : e.operands)
    readers.emplace_back(*operand, shape);
  int64_t size = e.out().size();
  for (int64_t begin = 0; begin < size; begin += chunkLength) {
    int64_t n = std::min(chunkLength, size - begin);
    for (auto [reader, argument] : llvm::zip(readers, block.getArguments()))
      reader.read(begin, n, body.lane(argument));
    body.run(n);
    auto yielded = block.getTerminator()->getOperands();
    for (auto [value, result] : llvm::zip(yielded, e.results)) {
      const Lane &lane = body.lane(value);
      if (result.isFloat())
        std::copy_n(lane.floats.begin(), n, result.floats.begin() + begin);
      else
        std::copy_n(lane.integers.begin(), n, result.integers.begin() + begin);
    }
  }
  return success();
}
