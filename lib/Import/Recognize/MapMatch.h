//===- MapMatch.h - Matching maps of one scalar op -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_RECOGNIZE_MAPMATCH_H
#define ESPALIER_LIB_IMPORT_RECOGNIZE_MAPMATCH_H

#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace espalier {

/// An operand of the scalar op in a map's body: a tensor, or a number.
struct MapOperand {
  mlir::Value tensor; // null if it is a number
  std::optional<double> number;
};

/// The operands of the one scalar op in the body of the map that makes `value`,
/// if it is an `Op`. Tensors of one element, known, count as numbers.
std::optional<llvm::SmallVector<MapOperand, 3>>
matchMap(mlir::Value value, llvm::StringRef scalarOp);

template <typename Op>
std::optional<llvm::SmallVector<MapOperand, 3>> matchMap(mlir::Value value) {
  return matchMap(value, Op::getOperationName());
}

/// A tensor and a number, in either order, under a commutative op.
struct TensorAndNumber {
  mlir::Value tensor;
  double number;
};
template <typename Op>
std::optional<TensorAndNumber> matchWithNumber(mlir::Value value) {
  auto operands = matchMap<Op>(value);
  if (!operands || operands->size() != 2)
    return std::nullopt;
  const MapOperand &a = (*operands)[0], &b = (*operands)[1];
  if (a.tensor && b.number)
    return TensorAndNumber{a.tensor, *b.number};
  if (b.tensor && a.number)
    return TensorAndNumber{b.tensor, *a.number};
  return std::nullopt;
}

/// `value` = tensor * factor, by a product or quotient with a number.
std::optional<TensorAndNumber> matchScaled(mlir::Value value);

/// `value` = 1 / sqrt(result), in any of the usual forms.
mlir::Value matchReciprocalRoot(mlir::Value value);

/// The number that all elements of a constant are.
std::optional<double> uniformNumber(mlir::Value value);

/// The elements of a constant.
mlir::DenseElementsAttr matchConstant(mlir::Value value);

/// Whether some argument of role `parameter` is among what makes the value.
bool dependsOnParameter(mlir::Value value);

class ConstantCache;

/// Pattern sets, by theme. The cache outlives the patterns.
void populateProducts(mlir::RewritePatternSet &patterns, ConstantCache &cache);
void populateNorms(mlir::RewritePatternSet &patterns, ConstantCache &cache);
void populateRotary(mlir::RewritePatternSet &patterns, ConstantCache &cache);
void populateAttention(mlir::RewritePatternSet &patterns, ConstantCache &cache);
void populateMasks(mlir::RewritePatternSet &patterns, ConstantCache &cache);

} // namespace espalier

#endif // ESPALIER_LIB_IMPORT_RECOGNIZE_MAPMATCH_H
