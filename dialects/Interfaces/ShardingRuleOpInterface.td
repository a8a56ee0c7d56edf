//===- ShardingRuleOpInterface.td --------------------------*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_INTERFACES_SHARDINGRULEOPINTERFACE_TD
#define ESPALIER_DIALECTS_INTERFACES_SHARDINGRULEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::espalier";
  let description = [{
    States how an op's operand and result dimensions correspond; see
    `ShardingRule.h`. For a matrix product the rule is `ik,kj->ij` with `k`
    reduced: sharding `i` or `j` needs no communication, sharding `k` leaves
    partial sums.
  }];

  let methods = [
    InterfaceMethod<
      "Returns the rule of this op, as its current types and attributes have "
      "it.",
      "::espalier::ShardingRule", "getShardingRule">
  ];
}

#endif // ESPALIER_DIALECTS_INTERFACES_SHARDINGRULEOPINTERFACE_TD
