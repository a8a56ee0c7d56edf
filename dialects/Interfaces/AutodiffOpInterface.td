//===- AutodiffOpInterface.td - Derivatives of ops ---------*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_INTERFACES_AUTODIFFOPINTERFACE_TD
#define ESPALIER_DIALECTS_INTERFACES_AUTODIFFOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def AutodiffOpInterface : OpInterface<"AutodiffOpInterface"> {
  let cppNamespace = "::espalier";
  let description = [{
    Builds the reverse-mode derivative (the vector-Jacobian product) of an op
    from whole-tensor ops.
  }];

  let methods = [
    InterfaceMethod<[{
        Builds ops that compute, from the gradients of this op's results, the
        gradients of its operands.

        `resultGradients` has an entry for each result, null where no gradient
        arrives (at least one is there). `wanted[i]` says whether the gradient of
        operand i is needed. Returns an entry for each operand, null where the
        gradient is not wanted or zero. Fails, with an error on the op, where
        there is no derivative.
      }],
      "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>",
      "buildDerivative",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::ArrayRef<::mlir::Value>":$resultGradients,
           "::llvm::ArrayRef<bool>":$wanted)>
  ];
}

#endif // ESPALIER_DIALECTS_INTERFACES_AUTODIFFOPINTERFACE_TD
