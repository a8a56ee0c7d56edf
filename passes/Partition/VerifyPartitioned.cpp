//===- VerifyPartitioned.cpp - Check the contract `partitioned` -----------===//

#include "passes/Partition/Passes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace espalier;

namespace espalier {
#define GEN_PASS_DEF_VERIFYPARTITIONEDPASS
#include "passes/Partition/Passes.h.inc"
} // namespace espalier

static LogicalResult checkOp(Operation *op,
                             const llvm::StringSet<> &axisNames) {
  if (isa<dist::ReshardOp>(op))
    return op->emitOpError("is left after partitioning");
  for (Value result : op->getResults())
    if (dist::shardingOf(result.getType()))
      return op->emitOpError("has a result that still carries a sharding: ")
             << result.getType();
  if (auto axes = op->getAttrOfType<ArrayAttr>("axes");
      axes && isa<dist::DistDialect>(op->getDialect()))
    for (auto name : axes.getAsRange<StringAttr>())
      if (!axisNames.contains(name.getValue()))
        return op->emitOpError("names an axis that the mesh does not have: ")
               << name;
  return success();
}

namespace {

struct VerifyPartitioned
    : public espalier::impl::VerifyPartitionedPassBase<VerifyPartitioned> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    dist::MeshOp mesh = dist::meshOf(getOperation());
    if (!mesh) {
      getOperation().emitError("has no dist.mesh");
      return signalPassFailure();
    }
    llvm::StringSet<> axisNames;
    for (auto axis : mesh.getAxes().getAsRange<dist::MeshAxisAttr>())
      axisNames.insert(axis.getName());
    WalkResult walked = getOperation().walk([&](Operation *op) {
      if (isa<dist::MeshOp>(op))
        return WalkResult::advance();
      return failed(checkOp(op, axisNames)) ? WalkResult::interrupt()
                                            : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
