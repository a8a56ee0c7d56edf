//===- Passes.h - Autodiff passes -------------------------------*- C++ -*-===//

#ifndef ESPALIER_PASSES_AUTODIFF_PASSES_H
#define ESPALIER_PASSES_AUTODIFF_PASSES_H

#include "dialects/Nn/Nn.h"
#include "espalier/Autodiff/TrainingOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace espalier {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Autodiff/Passes.h.inc"

/// From `imported` to `differentiated`.
void buildAutodiffPipeline(mlir::OpPassManager &manager,
                           const TrainingOptions &options);

/// Registers `espalier-autodiff`, that pipeline with the options of a loss.
void registerAutodiffPipelines();

} // namespace espalier

#endif // ESPALIER_PASSES_AUTODIFF_PASSES_H
