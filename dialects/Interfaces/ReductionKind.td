//===- ReductionKind.td - How values are combined ----------*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_INTERFACES_REDUCTIONKIND_TD
#define ESPALIER_DIALECTS_INTERFACES_REDUCTIONKIND_TD

include "mlir/IR/EnumAttr.td"

def ReductionKind : I32EnumAttr<"ReductionKind",
    "How values are combined, by a reduction within a tensor or among ranks", [
      I32EnumAttrCase<"Sum", 0, "sum">,
      I32EnumAttrCase<"Max", 1, "max">,
      I32EnumAttrCase<"Min", 2, "min">,
      I32EnumAttrCase<"Prod", 3, "prod">
    ]> {
  let cppNamespace = "::espalier";
}

#endif // ESPALIER_DIALECTS_INTERFACES_REDUCTIONKIND_TD
