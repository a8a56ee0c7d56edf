//===- CombineAllReduces.cpp - Put all-reduces into buckets ---------------===//

#include "espalier/Partition/PartitionModule.h"
#include "passes/Partition/Passes.h"

using namespace espalier;

namespace espalier {
#define GEN_PASS_DEF_COMBINEALLREDUCESPASS
#include "passes/Partition/Passes.h.inc"
} // namespace espalier

namespace {

struct CombineAllReduces
    : public espalier::impl::CombineAllReducesPassBase<CombineAllReduces> {
  void runOnOperation() override {
    numCombined += combineAllReduces(getOperation());
  }
};

} // namespace
