//===- FuseUnaryMaps.cpp - Make one map of a function of one tensor -------===//

#include "passes/Import/Passes.h"

#include "espalier/Import/Recognize.h"

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
