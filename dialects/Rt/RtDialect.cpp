//===- RtDialect.cpp - The rt dialect -------------------------------------===//

#include "dialects/Rt/Rt.h"

using namespace espalier::rt;

#include "dialects/Rt/RtDialect.cpp.inc"

void RtDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Rt/RtOps.cpp.inc"
      >();
}
