//===- Product.h - A contraction as products of matrices --------*- C++ -*-===//
//
// The letters of an einsum fall into four classes: batch (in both operands and
// the result), m (left operand and result), n (right operand and result), k
// (both operands). Letters of a class that lie behind one another in both
// tensors merge into one. Of what is left one m, one n, one k and one batch
// become a call; the others become calls one after another.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_TARGET_CPU_PRODUCT_H
#define ESPALIER_LIB_TARGET_CPU_PRODUCT_H

#include "llvm/ADT/StringRef.h"

#include <array>

#include "View.h"

namespace espalier::cpu {

/// One or several merged letters; strides in the left operand, the right
/// operand and the result, 0 where it does not occur.
struct ProductDim {
  int64_t size = 1;
  std::array<int64_t, 3> strides = {0, 0, 0};
};

struct Product {
  std::array<View, 3> views; // left, right, result
  ProductDim m, n, k, batch;
  llvm::SmallVector<ProductDim> outer;    // loops that write different parts
  llvm::SmallVector<ProductDim> outerSum; // loops that add to the same part

  int64_t calls() const;
};

/// Plans a contraction of the views as they are, or nothing if a matrix would
/// have no dimension of stride 1, or if there would be too many calls.
std::optional<Product> planProduct(std::array<llvm::StringRef, 3> letters,
                                   const std::array<View, 3> &views);

/// The letters in the order in which a dense copy of that tensor is a stack of
/// matrices: batch, rows, columns.
llvm::SmallVector<char> matrixOrder(std::array<llvm::StringRef, 3> letters,
                                    unsigned tensor);

} // namespace espalier::cpu

#endif // ESPALIER_LIB_TARGET_CPU_PRODUCT_H
