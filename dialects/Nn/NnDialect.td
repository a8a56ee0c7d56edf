//===- NnDialect.td - The nn dialect -----------------------*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_NN_NNDIALECT_TD
#define ESPALIER_DIALECTS_NN_NNDIALECT_TD

include "mlir/IR/DialectBase.td"

def Nn_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::espalier::nn";
  let summary = "Whole-tensor operations of a training step";
  let description = [{
    The dialect that the importer produces and that differentiation, sharding
    and planning work on. Its ops take and give immutable tensors, and know
    nothing of devices. Broadcasting is NumPy's (aligned at the last dimension; a
    dimension that is absent or of size 1 is repeated) and happens only in
    `nn.map`, `nn.broadcast` and the mask of `nn.attention`.
  }];
  let hasConstantMaterializer = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"
  ];
}

#endif // ESPALIER_DIALECTS_NN_NNDIALECT_TD
