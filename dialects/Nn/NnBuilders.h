//===- NnBuilders.h - Short ways to build nn ops ----------------*- C++ -*-===//
//
// Each infers the result's type (without a sharding) and returns the result. A
// result that would equal its input is the input.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_DIALECTS_NN_NNBUILDERS_H
#define ESPALIER_DIALECTS_NN_NNBUILDERS_H

#include "dialects/Interfaces/ReductionKind.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace espalier::nn {

/// Builds a map's body from its scalar arguments.
using MapBody = llvm::function_ref<mlir::Value(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;
using MultiMapBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// A map whose shape is what the operands broadcast to; the element type is
/// what the body yields.
mlir::Value buildMap(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::ValueRange operands, MapBody body);

/// A map with several results, of the given shape.
llvm::SmallVector<mlir::Value> buildMultiMap(mlir::OpBuilder &builder,
                                             mlir::Location loc,
                                             mlir::ValueRange operands,
                                             llvm::ArrayRef<int64_t> shape,
                                             MultiMapBody body);

mlir::Value buildAdd(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value lhs, mlir::Value rhs);
mlir::Value buildMul(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value lhs, mlir::Value rhs);
/// input * factor.
mlir::Value buildScale(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value input, double factor);
/// Converts the elements (a float to an integer by truncation, a boolean is 0
/// or 1).
mlir::Value buildCast(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value input, mlir::Type elementType);

/// A tensor of one value.
mlir::Value buildSplat(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::RankedTensorType type, double value);

/// Reduced dimensions stay with size 1.
mlir::Value buildReduce(mlir::OpBuilder &builder, mlir::Location loc,
                        ReductionKind kind, mlir::Value input,
                        llvm::ArrayRef<int64_t> dims);

/// Sums `input` to `shape`, which broadcasts to its shape: the derivative of a
/// broadcast.
mlir::Value buildSumTo(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value input, llvm::ArrayRef<int64_t> shape);

mlir::Value buildContract(mlir::OpBuilder &builder, mlir::Location loc,
                          llvm::StringRef equation, mlir::Value lhs,
                          mlir::Value rhs);
mlir::Value buildReshape(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value input, llvm::ArrayRef<int64_t> shape);
mlir::Value buildTranspose(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value input,
                           llvm::ArrayRef<int64_t> permutation);
mlir::Value buildBroadcast(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::Value input, llvm::ArrayRef<int64_t> shape);
/// The part of `sizes` elements at `offsets`, with stride 1.
mlir::Value buildSlice(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value input, llvm::ArrayRef<int64_t> offsets,
                       llvm::ArrayRef<int64_t> sizes);
mlir::Value buildConcat(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::ValueRange inputs, int64_t dim);

/// The shape that two shapes broadcast to, or nothing.
std::optional<llvm::SmallVector<int64_t>>
broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);

} // namespace espalier::nn

#endif // ESPALIER_DIALECTS_NN_NNBUILDERS_H
