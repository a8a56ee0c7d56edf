//===- Nn.h - The nn dialect and its operations -----------------*- C++ -*-===//

#ifndef ESPALIER_DIALECTS_NN_NN_H
#define ESPALIER_DIALECTS_NN_NN_H

#include "dialects/Interfaces/AutodiffOpInterface.h"
#include "dialects/Interfaces/ReductionKind.h"
#include "dialects/Interfaces/ShardingRuleOpInterface.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Nn/NnDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Nn/NnOps.h.inc"

#endif // ESPALIER_DIALECTS_NN_NN_H
