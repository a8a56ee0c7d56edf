//===- Passes.h - Passes that check contracts -------------------*- C++ -*-===//

#ifndef ESPALIER_PASSES_VERIFY_PASSES_H
#define ESPALIER_PASSES_VERIFY_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace espalier {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Verify/Passes.h.inc"

} // namespace espalier

#endif // ESPALIER_PASSES_VERIFY_PASSES_H
