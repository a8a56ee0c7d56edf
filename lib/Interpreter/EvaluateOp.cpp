//===- EvaluateOp.cpp - From an op to its evaluator -----------------------===//

#include "llvm/ADT/TypeSwitch.h"

#include "Evaluators.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

SmallVector<int64_t> interpreter::rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

SmallVector<int64_t> interpreter::broadcastStrides(ArrayRef<int64_t> from,
                                                   ArrayRef<int64_t> to) {
  SmallVector<int64_t> strides(to.size(), 0);
  SmallVector<int64_t> own = rowMajorStrides(from);
  size_t missing = to.size() - from.size();
  for (size_t dim = 0; dim < from.size(); ++dim)
    if (from[dim] != 1)
      strides[missing + dim] = own[dim];
  return strides;
}

/// Only a map's body has it, and that is not run op by op.
static LogicalResult evaluate(nn::YieldOp op, const Evaluation &) {
  return op.emitOpError("is no whole-tensor op");
}

/// Every op of the dialect is here: one without an evaluator does not compile.
template <typename... OpTs>
static LogicalResult dispatch(Operation *op, const Evaluation &e) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<OpTs...>([&](auto typed) { return evaluate(typed, e); })
      .Default([](Operation *op) {
        return op->emitOpError("is no op that the interpreter knows");
      });
}

FailureOr<Tensors> espalier::evaluateOp(Operation *op,
                                        ArrayRef<const Tensor *> operands,
                                        Precision precision) {
  Tensors results;
  for (Type type : op->getResultTypes())
    results.emplace_back(cast<RankedTensorType>(type));
  Evaluation evaluation{operands, results, precision};
  LogicalResult evaluated = dispatch<
#define GET_OP_LIST
#include "dialects/Nn/NnOps.cpp.inc"
      >(op, evaluation);
  if (failed(evaluated))
    return failure();
  if (precision == Precision::AsTyped)
    for (Tensor &result : results)
      result.round();
  return results;
}
