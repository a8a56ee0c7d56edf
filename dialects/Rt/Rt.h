//===- Rt.h - The rt dialect and its operations -----------------*- C++ -*-===//

#ifndef ESPALIER_DIALECTS_RT_RT_H
#define ESPALIER_DIALECTS_RT_RT_H

#include "dialects/Interfaces/ReductionKind.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Rt/RtDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/Rt/RtOps.h.inc"

#endif // ESPALIER_DIALECTS_RT_RT_H
