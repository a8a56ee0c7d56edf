//===- ConstantOps.h - Rearranging constants -*- C++ -*-===//
//
// Each works on stored elements: a dimension that does not vary before does not
// vary after, wherever the op allows. Arguments have been checked by the
// caller. An empty result means that it would exceed `mayFold`.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_CONSTANTOPS_H
#define ESPALIER_LIB_IMPORT_ONNX_CONSTANTOPS_H

#include <optional>

#include "Constant.h"

namespace espalier::onnx {

using MayFold = llvm::function_ref<bool(int64_t elements)>;
using Folded = std::optional<Constant>;

/// The same tensor with the given dimensions stored in full.
Folded withStored(const Constant &value, llvm::ArrayRef<int64_t> dims,
                  MayFold mayFold);

Folded reshapeConstant(const Constant &value, llvm::ArrayRef<int64_t> shape,
                       MayFold mayFold);
Folded transposeConstant(const Constant &value, llvm::ArrayRef<int64_t> perm,
                         MayFold mayFold);
/// The shape is one that the value's broadcasts to.
Folded expandConstant(const Constant &value, llvm::ArrayRef<int64_t> shape);
/// Steps may be negative.
Folded sliceConstant(const Constant &value, llvm::ArrayRef<int64_t> offsets,
                     llvm::ArrayRef<int64_t> sizes,
                     llvm::ArrayRef<int64_t> steps, MayFold mayFold);
Folded concatConstants(llvm::ArrayRef<const Constant *> values, int64_t dim,
                       MayFold mayFold);
/// numpy's take: indices are in range, not negative.
Folded gatherConstant(const Constant &table, const Constant &indices,
                      int64_t axis, MayFold mayFold);
/// GatherND without batch dimensions. There is a constant of indices for each
/// of the table's first dimensions, all of one shape, in range, not negative.
Folded gatherNdConstant(const Constant &table, llvm::ArrayRef<Constant> indices,
                        MayFold mayFold);
Folded cumulateConstant(const Constant &value, int64_t axis, bool exclusive,
                        bool reverse, MayFold mayFold);

/// Reductions of ONNX by name: Sum, Mean, Max, Min, Prod.
enum class Reduction { Sum, Mean, Max, Min, Prod };
/// Reduced dimensions stay with size 1.
Folded reduceConstant(const Constant &value, Reduction kind,
                      llvm::ArrayRef<int64_t> dims, MayFold mayFold);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_CONSTANTOPS_H
