//===- Shrink.h - The same program at small sizes ---------------*- C++ -*-===//
//
// Whether a partitioned program computes what one device would does not hang on
// how large its dimensions are, so that it is tried at sizes that take no time.
// Shrinking gives each independent dimension of a forward program a small size
// and derives all others:
//
//   - dimensions that an op's rule ties (the rows of a product and of its
//   result)
//     are one class, with one size;
//   - a dimension that a reshape splits is the product of its parts, one that a
//     concatenation makes or slices tile is their sum;
//   - what a class must not change for (spatial sizes of a convolution, a table
//   that
//     is indexed by constants) keeps its size.
//
// Constants are cut to their leading part. The shrunk program is another
// program than the original, but it has the same ops in the same order; what is
// shown of its partitioning holds for the original's.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_VERIFY_SHRINK_H
#define ESPALIER_VERIFY_SHRINK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace espalier {

struct ShrinkOptions {
  /// The new size of the batch: the first dimension of the arguments with role
  /// input, label or valid.
  int64_t batch;
  /// The largest size given to any other independent dimension, from 2 on.
  /// Sizes vary below it, so that equal sizes by chance do not hide a mistake.
  int64_t largest = 5;
};

/// Shrinks `forward` in place. Fails, with an error, where the result is not a
/// valid program; `forward` is then broken.
mlir::LogicalResult shrinkFunction(mlir::func::FuncOp forward,
                                   const ShrinkOptions &options);

} // namespace espalier

#endif // ESPALIER_VERIFY_SHRINK_H
