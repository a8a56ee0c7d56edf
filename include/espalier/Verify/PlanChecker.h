//===- PlanChecker.h - Types a planned program by the ops' rules *- C++ -*-===//
//
// Decides whether a planned program computes what the unsharded one does, by
// looking at each op alone. It shares no code with propagation or partitioning;
// what it trusts is each op's rule, and these are tested against the
// interpreter.
//
// An op is accepted if
//
//   1. every tensor carries a sharding of its rank, with axes of the mesh, none
//      twice;
//   2. every factor is cut along one list of axes, the same in all tensors that
//   have
//      it; a dimension of several factors is cut major to minor, a minor factor
//      only where the major ones are cut to single elements;
//   3. factors that must be whole are not cut, nor are factors whose size the
//   axes do
//      not divide;
//   4. for each axis that no factor uses: the operands that are partial over it
//   are
//      none, or one of the sets in which the op is linear, with a sum; the
//      results are then all not partial, or all partial with a sum;
//   5. for each axis that a factor uses: no operand is partial over it, and a
//   result
//      is partial over it exactly if it lacks the factor, which must be
//      reduced, with its reduction.
//
// dist.reshard keeps the value whatever the shardings, unless it makes a
// replicated value partial or changes a reduction.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_VERIFY_PLANCHECKER_H
#define ESPALIER_VERIFY_PLANCHECKER_H

#include "mlir/IR/BuiltinOps.h"

namespace espalier {

/// Checks every function of a planned module. Fails with an error on the first
/// op of each function that is at fault.
mlir::LogicalResult checkPlan(mlir::ModuleOp module);

} // namespace espalier

#endif // ESPALIER_VERIFY_PLANCHECKER_H
