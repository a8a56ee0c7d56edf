//===- Passes.td - Passes that check contracts -------------*- tablegen -*-===//

#ifndef ESPALIER_PASSES_VERIFY_PASSES_TD
#define ESPALIER_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyImportedPass : Pass<"espalier-verify-imported", "::mlir::ModuleOp"> {
  let summary = "Check the contract `imported`";
  let description = [{
    There is one entry, `@forward`, on static ranked tensors; its arguments are
    parameters, frozen values, buffers, inputs, `valid` and `rng`, in this order, its
    results outputs and the buffers; all have names. Its ops are of the nn dialect,
    and each says where it comes from. Changes nothing.

    Example:

    ```mlir
    func.func @forward(
        %w: tensor<3xf32> {espalier.name = "w", espalier.role = "parameter"},
        %x: tensor<2x3xf32> {espalier.name = "x", espalier.role = "input"},
        %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"},
        %rng: tensor<3xi64> {espalier.name = "rng", espalier.role = "rng"})
        -> (tensor<2x3xf32> {espalier.name = "y", espalier.role = "output"}) {
      return %x : tensor<2x3xf32>
    }
    ```
  }];
}

def VerifyDifferentiatedPass
    : Pass<"espalier-verify-differentiated", "::mlir::ModuleOp"> {
  let summary = "Check the contract `differentiated`";
  let description = [{
    There are `@grad` and `@update`, on static ranked tensors, with the arguments and
    results that lib/Autodiff lists: a gradient for each parameter, of its type; state
    that returns as it came. Changes nothing.

    Example:

    ```mlir
    func.func @grad(
        %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"},
        %rng: tensor<3xi64> {espalier.name = "rng", espalier.role = "rng"})
        -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
            tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}) {
      %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
      return %one, %one : tensor<f32>, tensor<f32>
    }
    ```
  }];
}

#endif // ESPALIER_PASSES_VERIFY_PASSES_TD
