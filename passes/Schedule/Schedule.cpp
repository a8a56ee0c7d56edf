//===- Schedule.cpp - Lay out a rank's step as a sequence of functions ----===//

#include "espalier/Schedule/Schedule.h"

#include "passes/Schedule/Passes.h"

using namespace espalier;

namespace espalier {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Schedule/Passes.h.inc"
} // namespace espalier

namespace {

struct Schedule : public espalier::impl::SchedulePassBase<Schedule> {
  using SchedulePassBase::SchedulePassBase;

  void runOnOperation() override {
    if (mlir::failed(scheduleModule(getOperation(), microBatches)))
      signalPassFailure();
  }
};

} // namespace
