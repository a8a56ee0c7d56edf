//===- Passes.td - Passes on imported programs -------------*- tablegen -*-===//

#ifndef ESPALIER_PASSES_IMPORT_PASSES_TD
#define ESPALIER_PASSES_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def RecognizePass : Pass<"espalier-recognize", "::mlir::func::FuncOp"> {
  let summary = "Find the layers that a model was written in";
  let description = [{
    Exporters write attention, norms and rotary positions in pieces. This puts the
    pieces back together, in this order: transposes go into the products that use
    them, and reshapes that only merge leading dimensions move behind products and
    maps (so that a linear layer on [batch, sequence, features] is one product of
    rank 3); then rotary embeddings, RMS norms and layer norms, attention with its
    scale, masks and grouped heads, and what is left of a mask once its causal part is
    a flag.

    Runs before differentiation, which has a derivative for each of these that is better
    than that of the pieces. Computes what the program computed before, but for
    rows of attention that are masked entirely: they give zeros, where the pieces
    give NaN, or zeros by a guard. A product of a softmax that stays as it is gets a
    missed remark with the reason.

    Example:

    ```mlir
    %t = nn.transpose %w [1, 0] : tensor<3x8xf32> -> tensor<8x3xf32>
    %y = nn.contract "mk,kn->mn" %x, %t
        : tensor<4x8xf32>, tensor<8x3xf32> -> tensor<4x3xf32>
    ```

    becomes

    ```
    %y = nn.contract "mk,nk->mn" %x, %w
        : tensor<4x8xf32>, tensor<3x8xf32> -> tensor<4x3xf32>
    ```
  }];
  let statistics = [
    Statistic<"numAttention", "attention", "Attentions recognized">,
    Statistic<"numNorms", "norms", "Norms recognized">,
    Statistic<"numRotary", "rotary", "Rotary embeddings recognized">,
    Statistic<"numMissed", "missed", "Softmax products not recognized">
  ];
  let dependentDialects = ["::espalier::nn::NnDialect"];
}

def FuseUnaryMapsPass
    : Pass<"espalier-fuse-unary-maps", "::mlir::func::FuncOp"> {
  let summary = "Make one map of a function of one tensor";
  let description = [{
    Activations come as chains of maps: the tanh form of GELU is eight. Maps that
    compute one tensor from one other (and constants of one element) become one map,
    whose derivative is then computed from that one tensor, and nothing between is
    kept. Chains that join several tensors are left to the targets' fusion, which
    knows the cost.

    Example:

    ```mlir
    %s = nn.map %x : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: f32):
      %e = math.exp %a : f32
      nn.yield %e : f32
    }
    %y = nn.map %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: f32, %b: f32):
      %m = arith.mulf %a, %b : f32
      nn.yield %m : f32
    }
    ```

    becomes

    ```
    %y = nn.map %x : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: f32):
      %e = math.exp %a : f32
      %m = arith.mulf %a, %e : f32
      nn.yield %m : f32
    }
    ```
  }];
  let statistics = [Statistic<"numFused", "fused", "Maps merged into another">];
  let dependentDialects = ["::espalier::nn::NnDialect"];
}

#endif // ESPALIER_PASSES_IMPORT_PASSES_TD
