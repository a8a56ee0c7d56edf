// RUN: espalier-opt %s --espalier-verify-imported

func.func @forward(
    %w: tensor<3xf32> {espalier.name = "w", espalier.role = "parameter"},
    %x: tensor<2x3xf32> {espalier.name = "x", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"},
    %rng: tensor<3xi64> {espalier.name = "rng", espalier.role = "rng"})
    -> (tensor<2x3xf32> {espalier.name = "y", espalier.role = "output"}) {
  return %x : tensor<2x3xf32>
}
