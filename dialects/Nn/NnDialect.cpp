//===- NnDialect.cpp - The nn dialect -------------------------------------===//

#include "dialects/Nn/Nn.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace espalier::nn;

#include "dialects/Nn/NnDialect.cpp.inc"

void NnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/Nn/NnOps.cpp.inc"
      >();
}
