//===- Partition.cpp - Turn whole tensors into one rank's blocks ----------===//

#include "espalier/Partition/PartitionModule.h"
#include "passes/Partition/Passes.h"

using namespace espalier;

namespace espalier {
#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/Partition/Passes.h.inc"
} // namespace espalier

namespace {

struct Partition : public espalier::impl::PartitionPassBase<Partition> {
  void runOnOperation() override {
    if (mlir::failed(partitionModule(getOperation())))
      signalPassFailure();
  }
};

} // namespace
