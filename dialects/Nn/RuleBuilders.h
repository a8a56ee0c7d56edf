//===- RuleBuilders.h - What sharding rules are made of ---------*- C++ -*-===//

#ifndef ESPALIER_DIALECTS_NN_RULEBUILDERS_H
#define ESPALIER_DIALECTS_NN_RULEBUILDERS_H

#include "dialects/Interfaces/ShardingRule.h"

#include "mlir/IR/Attributes.h"

namespace espalier::nn {

/// A new factor for each dimension of `shape`.
TensorFactors newFactors(ShardingRule &rule, llvm::ArrayRef<int64_t> shape,
                         FactorKind kind = FactorKind::Parallel);

/// The factors of an operand of shape `from` that broadcasts to `to`, whose
/// dimensions have `factors`: none where it is repeated.
TensorFactors broadcastFactors(const TensorFactors &factors,
                               llvm::ArrayRef<int64_t> from,
                               llvm::ArrayRef<int64_t> to);

struct ReshapeFactors {
  TensorFactors input;
  TensorFactors result;
};

/// The factors that the dimensions of a reshape are made of. Reading both
/// shapes from the left, a dimension is split where the other side has a
/// divisor of it: [2, 6] to [2, 3, 2] is i(jk)->ijk, [4, 6] to [24] is
/// ij->(ij). Where neither size divides the other, the dimensions up to the
/// next common product are whole: [4, 6] to [3, 8].
ReshapeFactors reshapeFactors(ShardingRule &rule, llvm::ArrayRef<int64_t> input,
                              llvm::ArrayRef<int64_t> result);

/// Whether a number is zero.
bool isZero(mlir::Attribute number);

} // namespace espalier::nn

#endif // ESPALIER_DIALECTS_NN_RULEBUILDERS_H
