//===- ExitStatus.h - What each exit status says ----------------*- C++ -*-===//

#ifndef ESPALIER_SUPPORT_EXITSTATUS_H
#define ESPALIER_SUPPORT_EXITSTATUS_H

namespace espalier {

/// The exit status of the tool's commands.
enum ExitStatus : int {
  Done = 0,
  InputAtFault = 1, // the message is in the terms of the input
  WrongUsage = 2,
  Infeasible = 3,    // constraints that cannot hold together
  NotEquivalent = 4, // a program that computes something else
};

} // namespace espalier

#endif // ESPALIER_SUPPORT_EXITSTATUS_H
