//===- Schedule.h - A rank's step as a sequence of functions ----*- C++ -*-===//

#ifndef ESPALIER_SCHEDULE_SCHEDULE_H
#define ESPALIER_SCHEDULE_SCHEDULE_H

#include "mlir/IR/BuiltinOps.h"

namespace espalier {

/// Replaces @grad of a `partitioned` module by @first, which starts an
/// accumulation, and, where a step has several microbatches, @next, which takes
/// the sums so far and adds its own. A step runs @first, then @next for each
/// further microbatch, then
/// @update, which also returns the weight of the whole step (role weight), for
/// the log. Fails, with an error, where there is no @grad.
mlir::LogicalResult scheduleModule(mlir::ModuleOp module, int64_t microBatches);

} // namespace espalier

#endif // ESPALIER_SCHEDULE_SCHEDULE_H
