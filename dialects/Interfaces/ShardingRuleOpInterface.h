//===- ShardingRuleOpInterface.h -*- C++ -*-===//

#ifndef ESPALIER_DIALECTS_INTERFACES_SHARDINGRULEOPINTERFACE_H
#define ESPALIER_DIALECTS_INTERFACES_SHARDINGRULEOPINTERFACE_H

#include "dialects/Interfaces/ShardingRule.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "dialects/Interfaces/ShardingRuleOpInterface.h.inc"

#endif // ESPALIER_DIALECTS_INTERFACES_SHARDINGRULEOPINTERFACE_H
