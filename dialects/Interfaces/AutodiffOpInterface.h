//===- AutodiffOpInterface.h -*- C++ -*-===//

#ifndef ESPALIER_DIALECTS_INTERFACES_AUTODIFFOPINTERFACE_H
#define ESPALIER_DIALECTS_INTERFACES_AUTODIFFOPINTERFACE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "dialects/Interfaces/AutodiffOpInterface.h.inc"

#endif // ESPALIER_DIALECTS_INTERFACES_AUTODIFFOPINTERFACE_H
