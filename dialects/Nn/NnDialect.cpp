//===- NnDialect.cpp - The nn dialect -------------------------------------===//

#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/FoldInterfaces.h"

using namespace espalier::nn;

#include "dialects/Nn/NnDialect.cpp.inc"

namespace {

/// Constants of a map's body stay in it: a body stands for itself.
struct NnFoldInterface : public mlir::DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(mlir::Region *region) const final {
    return llvm::isa<MapOp>(region->getParentOp());
  }
};

} // namespace

void NnDialect::initialize() {
  addInterfaces<NnFoldInterface>();
  addOperations<
#define GET_OP_LIST
#include "dialects/Nn/NnOps.cpp.inc"
      >();
}
