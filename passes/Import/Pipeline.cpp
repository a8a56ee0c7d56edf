//===- Pipeline.cpp - What follows the importer -*- C++ -*-===//

#include "passes/Import/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void espalier::buildImportPipeline(OpPassManager &manager) {
  OpPassManager &functions = manager.nest<func::FuncOp>();
  // Exporters write masks and positions once for each layer, and patterns
  // compare operands by identity.
  functions.addPass(createCSEPass());
  functions.addPass(createRecognizePass());
  // After recognition, whose patterns are on single steps.
  functions.addPass(createFuseUnaryMapsPass());
  functions.addPass(createCSEPass());
}

void espalier::registerImportPipeline() {
  PassPipelineRegistration<>("espalier-import-pipeline",
                             "Recognize layers in an imported program",
                             buildImportPipeline);
}
