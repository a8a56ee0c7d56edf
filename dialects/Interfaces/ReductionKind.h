//===- ReductionKind.h - How values are combined ----------------*- C++ -*-===//

#ifndef ESPALIER_DIALECTS_INTERFACES_REDUCTIONKIND_H
#define ESPALIER_DIALECTS_INTERFACES_REDUCTIONKIND_H

#include "mlir/IR/BuiltinAttributes.h"

#include "dialects/Interfaces/ReductionKind.h.inc"

#endif // ESPALIER_DIALECTS_INTERFACES_REDUCTIONKIND_H
