//===- Passes.h - Sharding passes -*- C++ -*-===//

#ifndef ESPALIER_PASSES_SHARDING_PASSES_H
#define ESPALIER_PASSES_SHARDING_PASSES_H

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace espalier {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/Sharding/Passes.h.inc"

} // namespace espalier

#endif // ESPALIER_PASSES_SHARDING_PASSES_H
