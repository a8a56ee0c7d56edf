//===- Rendezvous.cpp - Ranks that another launcher has started -----------===//

#include "runtime/Support.h"
#include "runtime/Training.h"

namespace espalier::runtime {

LauncherEnvironment launcherEnvironment() { return {}; }

int joinRanks(const Training &, const LauncherEnvironment &) {
  printError("not supported");
  return ExitInput;
}

} // namespace espalier::runtime
