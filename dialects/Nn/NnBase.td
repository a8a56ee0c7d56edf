//===- NnBase.td - What the ops of the nn dialect share ----*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_NN_NNBASE_TD
#define ESPALIER_DIALECTS_NN_NNBASE_TD

include "dialects/Interfaces/AutodiffOpInterface.td"
include "dialects/Interfaces/ReductionKind.td"
include "dialects/Interfaces/ShardingRuleOpInterface.td"
include "dialects/Nn/NnDialect.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Nn_Tensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;
def Nn_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
def Nn_IndexTensor : StaticShapeTensorOf<[I64, I32]>;

/// An op on whole tensors. It has a sharding rule and a derivative: an op
/// without one does not link.
class Nn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Nn_Dialect, mnemonic, !listconcat([
        Pure, DeclareOpInterfaceMethods<ShardingRuleOpInterface>,
        DeclareOpInterfaceMethods<AutodiffOpInterface>
      ], traits)>;

#endif // ESPALIER_DIALECTS_NN_NNBASE_TD
