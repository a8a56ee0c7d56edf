// RUN: espalier-opt %s --espalier-verify-imported --espalier-autodiff --espalier-verify-differentiated | FileCheck %s

// CHECK: func.func @grad
// CHECK: nn.cross_entropy_grad
// CHECK: func.func @update
func.func @forward(
    %w: tensor<3x4xf32> {espalier.name = "w", espalier.role = "parameter"},
    %mean: tensor<4xf32> {espalier.name = "mean", espalier.role = "buffer"},
    %x: tensor<2x3xf32> {espalier.name = "x", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"},
    %rng: tensor<3xi64> {espalier.name = "rng", espalier.role = "rng"})
    -> (tensor<2x4xf32> {espalier.name = "logits", espalier.role = "output"},
        tensor<4xf32> {espalier.name = "mean", espalier.role = "buffer"}) {
  %y = nn.contract "ab,bc->ac" %x, %w : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
  return %y, %mean : tensor<2x4xf32>, tensor<4xf32>
}
