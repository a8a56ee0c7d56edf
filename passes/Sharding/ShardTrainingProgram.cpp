//===- ShardTrainingProgram.cpp - Give every tensor its sharding ----------===//

#include "espalier/Sharding/TrainingLayout.h"
#include "passes/Sharding/Passes.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace espalier;

namespace espalier {
#define GEN_PASS_DEF_SHARDTRAININGPROGRAMPASS
#include "passes/Sharding/Passes.h.inc"
} // namespace espalier

namespace {

struct ShardTrainingProgram
    : public espalier::impl::ShardTrainingProgramPassBase<
          ShardTrainingProgram> {
  using ShardTrainingProgramPassBase::ShardTrainingProgramPassBase;

  void runOnOperation() override {
    FailureOr<TrainingLayout> layout = layoutFromOptions();
    if (failed(layout))
      return signalPassFailure();
    auto conflicts = shardTrainingProgram(getOperation(), *layout);
    if (failed(conflicts))
      return signalPassFailure();
    for (const std::string &conflict : *conflicts)
      remark::missed(getOperation().getLoc(),
                     remark::RemarkOpts::name("NotCut").category("sharding"))
          << remark::reason("{0}", conflict);
  }

  FailureOr<TrainingLayout> layoutFromOptions() {
    dist::MeshOp meshOp = dist::meshOf(getOperation());
    if (!meshOp)
      return getOperation().emitError("has no dist.mesh to be sharded on"),
             failure();
    Mesh mesh = Mesh::from(meshOp);
    TrainingLayout layout;
    std::vector<std::string> names(batchAxes.begin(), batchAxes.end());
    if (names.empty())
      names.push_back("dp");
    for (const std::string &name : names) {
      std::optional<Axis> axis = mesh.find(name);
      if (!axis)
        return meshOp.emitError("has no axis '") << name << "'", failure();
      layout.batchAxes.push_back(*axis);
    }
    return layout;
  }
};

} // namespace
