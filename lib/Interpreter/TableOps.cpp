//===- TableOps.cpp - Evaluates gather and scatter_add --------------------===//

#include "Evaluators.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

static LogicalResult checkIndices(Operation *op, const Tensor &indices,
                                  int64_t rows) {
  for (int64_t index : indices.integers)
    if (index < 0 || index >= rows)
      return op->emitOpError("expects indices in [0, ")
             << rows << "), but got " << index;
  return success();
}

static int64_t rowSize(const Tensor &table) {
  int64_t size = 1;
  for (int64_t dim : ArrayRef<int64_t>(table.shape).drop_front())
    size *= dim;
  return size;
}

template <typename T>
static void gather(const std::vector<T> &table, const Tensor &indices,
                   int64_t size, std::vector<T> &result) {
  for (auto [row, index] : llvm::enumerate(indices.integers))
    std::copy_n(table.begin() + index * size, size,
                result.begin() + row * size);
}

LogicalResult interpreter::evaluate(nn::GatherOp op, const Evaluation &e) {
  const Tensor &table = e.in(0), &indices = e.in(1);
  if (failed(checkIndices(op, indices, table.shape.front())))
    return failure();
  if (table.isFloat())
    gather(table.floats, indices, rowSize(table), e.out().floats);
  else
    gather(table.integers, indices, rowSize(table), e.out().integers);
  return success();
}

LogicalResult interpreter::evaluate(nn::ScatterAddOp op, const Evaluation &e) {
  const Tensor &indices = e.in(0), &updates = e.in(1);
  if (failed(checkIndices(op, indices, e.out().shape.front())))
    return failure();
  int64_t size = rowSize(e.out());
  for (auto [row, index] : llvm::enumerate(indices.integers))
    for (int64_t j = 0; j < size; ++j)
      e.out().floats[index * size + j] += updates.floats[row * size + j];
  return success();
}
