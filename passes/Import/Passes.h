//===- Passes.h - Passes on imported programs -*- C++ -*-===//

#ifndef ESPALIER_PASSES_IMPORT_PASSES_H
#define ESPALIER_PASSES_IMPORT_PASSES_H

#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace espalier {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Import/Passes.h.inc"

/// What follows the importer, on its module: recognition, fusion of
/// activations, and what is left over removed.
void buildImportPipeline(mlir::OpPassManager &manager);

/// Registers it as `espalier-import-pipeline`.
void registerImportPipeline();

} // namespace espalier

#endif // ESPALIER_PASSES_IMPORT_PASSES_H
