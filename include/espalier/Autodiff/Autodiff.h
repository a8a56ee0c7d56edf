//===- Autodiff.h - From a forward program to a training step ---*- C++ -*-===//
//
//   @forward(parameter..., frozen..., buffer..., input..., valid, rng)
//       -> (output..., buffer...)
//   @loss   (parameter..., frozen..., buffer..., input..., label, valid, rng)
//       -> (loss_sum, weight_sum, buffer...)
//   @grad   (as @loss) -> (loss_sum, weight_sum, grad..., buffer...)
//   @update (parameter..., state..., grad..., loss_sum, weight_sum, step)
//       -> (parameter..., state..., loss, grad_norm, lr)
//
// @loss and @grad work on one microbatch. What they return are sums: those of
// all microbatches and replicas are added and go to @update, which divides
// once.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_AUTODIFF_AUTODIFF_H
#define ESPALIER_AUTODIFF_AUTODIFF_H

#include "espalier/Autodiff/TrainingOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace espalier {

/// A unit attribute of @loss and @grad: the model sums its loss itself, so that
/// samples which are not valid are counted. A step must have none.
inline constexpr llvm::StringLiteral countsInvalidAttribute =
    "espalier.counts_invalid_samples";

/// Adds @loss, a copy of @forward with the loss in place of the outputs.
/// Samples that are not valid are selected away, never multiplied by zero.
/// Fails, with an error, where the options do not fit the model.
mlir::FailureOr<mlir::func::FuncOp> buildLoss(mlir::ModuleOp module,
                                              const LossOptions &options);

/// Adds @grad, a copy of @loss with the gradients of loss_sum. A parameter that
/// loss_sum does not depend on gets zeros and draws a remark. Fails, with an
/// error, where an op on the way has no derivative.
mlir::FailureOr<mlir::func::FuncOp> buildGrad(mlir::ModuleOp module);

/// Adds @update, which applies the gradients of @grad. Norm and learning rate
/// are computed once, each parameter is one map.
mlir::FailureOr<mlir::func::FuncOp> buildUpdate(mlir::ModuleOp module,
                                                const TrainingOptions &options);

/// All three; @forward and @loss are erased. The module is then
/// `differentiated`.
mlir::LogicalResult buildTrainingStep(mlir::ModuleOp module,
                                      const TrainingOptions &options);

/// The reverse sweep alone. Appends ops, at the builder's insertion point, that
/// compute the gradients of `targets` (arguments of `block`, or results of ops
/// in it) from those of other values of the block: `seeds` are pairs of a value
/// and its gradient. Takes time linear in the block. An entry is null where the
/// gradient is zero.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildGradients(mlir::OpBuilder &builder, mlir::Block &block,
               llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> seeds,
               mlir::ValueRange targets);

/// Adds to `builder` the learning rate at `step`, a tensor<i64>, as a
/// tensor<f64>.
mlir::Value buildLearningRate(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::Value step, double learningRate,
                              const ScheduleOptions &options);

} // namespace espalier

#endif // ESPALIER_AUTODIFF_AUTODIFF_H
