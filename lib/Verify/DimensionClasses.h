//===- DimensionClasses.h - Which dimensions have one size ------*- C++ -*-===//

#ifndef ESPALIER_LIB_VERIFY_DIMENSIONCLASSES_H
#define ESPALIER_LIB_VERIFY_DIMENSIONCLASSES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <vector>

namespace espalier {

/// Sets of dimensions of one size (a union-find), and how the sizes of some
/// follow from others.
class DimensionClasses {
public:
  using Id = unsigned;

  Id add(int64_t size);
  /// Makes two dimensions one class. Their sizes are equal, or both are kept.
  void unite(Id a, Id b);
  /// The size of `id` is the product (the sum) of those of `parts`.
  void setProduct(Id id, llvm::ArrayRef<Id> parts) { define(id, parts, true); }
  void setSum(Id id, llvm::ArrayRef<Id> parts) { define(id, parts, false); }
  /// Keeps the size of a class, and of all that it is made of.
  void keep(Id id);
  /// Gives a class the size `size`, unless it is kept or follows from others.
  void fix(Id id, int64_t size);

  /// Gives every other class a size from 2 to `largest`, at most its own.
  void chooseSizes(int64_t largest);
  /// The size of a dimension, after chooseSizes.
  int64_t sizeOf(Id id);

private:
  struct Class {
    Id parent;
    int64_t size;        // the original one
    int64_t chosen = -1; // not yet
    bool kept = false;
    bool isProduct = false; // of parts, else their sum
    llvm::SmallVector<Id, 2> parts;
  };

  Id find(Id id);
  void define(Id id, llvm::ArrayRef<Id> parts, bool isProduct);

  std::vector<Class> classes;
};

} // namespace espalier

#endif // ESPALIER_LIB_VERIFY_DIMENSIONCLASSES_H
