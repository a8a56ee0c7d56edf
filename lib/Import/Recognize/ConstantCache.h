//===- ConstantCache.h - What is known of constants -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_RECOGNIZE_CONSTANTCACHE_H
#define ESPALIER_LIB_IMPORT_RECOGNIZE_CONSTANTCACHE_H

#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace espalier {

/// Masked scores are at most this: exp of them is zero beside any other.
inline bool isMasking(double value) { return value <= -1e30; }

/// A constant mask of attention, boolean or added.
struct MaskFacts {
  /// It is boolean, or adds only 0 and masking values.
  bool isMask = false;
  bool allSeen = false;
  /// Query s sees exactly the keys t <= s + T - S, of the last dimensions
  /// [S, T]; others have size 1.
  bool causal = false;
  bool everyRowSees = false;
  mlir::DenseElementsAttr boolean; // the same, true where a key is seen
};

/// Facts on large constants, found once however many layers use them. Keyed by
/// attributes, which outlive every op.
class ConstantCache {
public:
  const MaskFacts &mask(mlir::DenseElementsAttr elements);
  /// A constant with equal halves along the last dimension, as its half; null
  /// if they differ.
  mlir::DenseElementsAttr half(mlir::DenseElementsAttr elements);

private:
  llvm::DenseMap<mlir::Attribute, MaskFacts> masks;
  llvm::DenseMap<mlir::Attribute, mlir::DenseElementsAttr> halves;
};

} // namespace espalier

#endif // ESPALIER_LIB_IMPORT_RECOGNIZE_CONSTANTCACHE_H
