//===- FuseUnaryMaps.cpp - Make one map of a function of one tensor -------===//

#include "espalier/Import/Recognize.h"
#include "passes/Import/Passes.h"

namespace espalier {
#define GEN_PASS_DEF_FUSEUNARYMAPSPASS
#include "passes/Import/Passes.h.inc"
} // namespace espalier

namespace {

struct FuseUnaryMaps
    : public espalier::impl::FuseUnaryMapsPassBase<FuseUnaryMaps> {
  void runOnOperation() override {
    numFused += espalier::fuseUnaryMaps(getOperation());
  }
};

} // namespace
