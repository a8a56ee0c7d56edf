//===- Fusion.h - What fusing and lowering know of maps ---------*- C++ -*-===//

#ifndef ESPALIER_LIB_TARGET_CPU_FUSION_H
#define ESPALIER_LIB_TARGET_CPU_FUSION_H

#include "dialects/Nn/Nn.h"

namespace espalier::cpu {

/// Whether a map's result is the sum of its operands, each taken once.
bool addsItsArguments(nn::MapOp op);

} // namespace espalier::cpu

#endif // ESPALIER_LIB_TARGET_CPU_FUSION_H
