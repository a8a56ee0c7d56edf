//===- Dist.h - The dist dialect: meshes, shardings, collectives *- C++ -*-===//

#ifndef ESPALIER_DIALECTS_DIST_DIST_H
#define ESPALIER_DIALECTS_DIST_DIST_H

#include "dialects/Interfaces/ReductionKind.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Dist/DistDialect.h.inc"

namespace espalier::dist {
/// The wires: see DistOps.td.
struct NetworkResource
    : public mlir::SideEffects::Resource::Base<NetworkResource> {
  llvm::StringRef getName() final { return "network"; }
};
} // namespace espalier::dist

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.h.inc"

namespace espalier::dist {

/// The sharding in a tensor's type, or null.
ShardingAttr shardingOf(mlir::Type type);

/// The module's mesh, or null.
MeshOp meshOf(mlir::Operation *op);

} // namespace espalier::dist

#endif // ESPALIER_DIALECTS_DIST_DIST_H
