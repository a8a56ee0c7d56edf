//===- Fusion.cpp - Merging elementwise ops -------------------------------===//

#include "espalier/Target/Cpu.h"

using namespace mlir;
using namespace espalier;

void cpu::fuseElementwise(func::FuncOp function) {}
