//===- Recognize.h - The layers that a model was written in -*- C++ -*-===//
//
// Exporters write attention, norms and rotary positions in pieces. These
// functions find the pieces in an imported program and put one op in their
// place, whose derivative, sharding rule and kernel are better than those of
// the pieces. What is not recognized stays as it is, which is right but slow.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_IMPORT_RECOGNIZE_H
#define ESPALIER_IMPORT_RECOGNIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace espalier {

/// A product of a softmax that is no attention, and why.
struct MissedAttention {
  mlir::Location location;
  std::string reason;
};

/// What recognizeLayers found.
struct RecognizedLayers {
  unsigned attentions = 0, norms = 0, rotaries = 0;
  std::vector<MissedAttention> missed;
};

/// Puts layers back together: see the pass espalier-recognize. Fails only if
/// the patterns do not come to an end.
mlir::FailureOr<RecognizedLayers> recognizeLayers(mlir::func::FuncOp function);

/// Makes one map of chains of maps that compute one tensor from one other: see
/// the pass espalier-fuse-unary-maps. Returns how many maps went into another.
unsigned fuseUnaryMaps(mlir::func::FuncOp function);

/// Both, with common subexpressions eliminated before and after: what follows
/// the importer.
mlir::FailureOr<RecognizedLayers> tidyImported(mlir::func::FuncOp function);

} // namespace espalier

#endif // ESPALIER_IMPORT_RECOGNIZE_H
