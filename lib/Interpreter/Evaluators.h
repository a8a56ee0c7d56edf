//===- Evaluators.h - Evaluators of the nn ops ------------------*- C++ -*-===//
//
// Private to lib/Interpreter. An evaluator gets the operands and results that
// are zeros of the right types; it fills these. Rounding is the caller's, but
// for nn.map, which rounds after each scalar op.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_INTERPRETER_EVALUATORS_H
#define ESPALIER_LIB_INTERPRETER_EVALUATORS_H

#include "dialects/Nn/Nn.h"
#include "espalier/Interpreter/Interpreter.h"

namespace espalier::interpreter {

/// What an evaluator reads and writes.
struct Evaluation {
  llvm::ArrayRef<const Tensor *> operands;
  Tensors &results;
  Precision precision;

  const Tensor &in(unsigned i) const { return *operands[i]; }
  Tensor &out(unsigned i = 0) const { return results[i]; }
};

/// The index strides of a row-major tensor.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// The strides with which a tensor of shape `from` is read as one of shape
/// `to`, to which it broadcasts: 0 along repeated dimensions.
llvm::SmallVector<int64_t> broadcastStrides(llvm::ArrayRef<int64_t> from,
                                            llvm::ArrayRef<int64_t> to);

/// Calls `visit(position, offset)` for each element of `shape` in row-major
/// order; `offset` is the sum of index times stride.
template <typename Visit>
void forEachElement(llvm::ArrayRef<int64_t> shape,
                    llvm::ArrayRef<int64_t> strides, int64_t base,
                    Visit visit) {
  int64_t rank = shape.size();
  if (llvm::is_contained(shape, 0))
    return;
  llvm::SmallVector<int64_t> index(rank, 0);
  int64_t offset = base;
  for (int64_t position = 0;; ++position) {
    visit(position, offset);
    int64_t dim = rank - 1;
    for (; dim >= 0 && ++index[dim] == shape[dim]; --dim) {
      offset -= (shape[dim] - 1) * strides[dim];
      index[dim] = 0;
    }
    if (dim < 0)
      return;
    offset += strides[dim];
  }
}

/// The number of rows along the last dimension.
inline int64_t rowCount(const Tensor &tensor) {
  return tensor.shape.back() == 0 ? 0 : tensor.size() / tensor.shape.back();
}

using mlir::LogicalResult;

// One for each op; those that cannot fail return success all the same.
LogicalResult evaluate(nn::MapOp op, const Evaluation &e);
LogicalResult evaluate(nn::ConstantOp op, const Evaluation &e);
LogicalResult evaluate(nn::IotaOp op, const Evaluation &e);
LogicalResult evaluate(nn::RandomUniformOp op, const Evaluation &e);
LogicalResult evaluate(nn::ReshapeOp op, const Evaluation &e);
LogicalResult evaluate(nn::TransposeOp op, const Evaluation &e);
LogicalResult evaluate(nn::SliceOp op, const Evaluation &e);
LogicalResult evaluate(nn::ConcatOp op, const Evaluation &e);
LogicalResult evaluate(nn::PadOp op, const Evaluation &e);
LogicalResult evaluate(nn::BroadcastOp op, const Evaluation &e);
LogicalResult evaluate(nn::ReduceOp op, const Evaluation &e);
LogicalResult evaluate(nn::ContractOp op, const Evaluation &e);
LogicalResult evaluate(nn::SoftmaxOp op, const Evaluation &e);
LogicalResult evaluate(nn::SoftmaxGradOp op, const Evaluation &e);
LogicalResult evaluate(nn::LayerNormOp op, const Evaluation &e);
LogicalResult evaluate(nn::LayerNormGradOp op, const Evaluation &e);
LogicalResult evaluate(nn::RmsNormOp op, const Evaluation &e);
LogicalResult evaluate(nn::RmsNormGradOp op, const Evaluation &e);
LogicalResult evaluate(nn::ConvOp op, const Evaluation &e);
LogicalResult evaluate(nn::ConvInputGradOp op, const Evaluation &e);
LogicalResult evaluate(nn::ConvFilterGradOp op, const Evaluation &e);
LogicalResult evaluate(nn::MaxPoolOp op, const Evaluation &e);
LogicalResult evaluate(nn::MaxPoolGradOp op, const Evaluation &e);
LogicalResult evaluate(nn::AvgPoolOp op, const Evaluation &e);
LogicalResult evaluate(nn::AvgPoolGradOp op, const Evaluation &e);
LogicalResult evaluate(nn::GatherOp op, const Evaluation &e);
LogicalResult evaluate(nn::ScatterAddOp op, const Evaluation &e);
LogicalResult evaluate(nn::AttentionOp op, const Evaluation &e);
LogicalResult evaluate(nn::AttentionGradOp op, const Evaluation &e);
LogicalResult evaluate(nn::RopeOp op, const Evaluation &e);
LogicalResult evaluate(nn::CrossEntropyOp op, const Evaluation &e);
LogicalResult evaluate(nn::CrossEntropyGradOp op, const Evaluation &e);

} // namespace espalier::interpreter

#endif // ESPALIER_LIB_INTERPRETER_EVALUATORS_H
