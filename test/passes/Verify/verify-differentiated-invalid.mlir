// RUN: espalier-opt %s --espalier-verify-differentiated --split-input-file --verify-diagnostics

// expected-error @+1 {{expects a function @update}}
module {
  func.func @grad(
      %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"},
      %rng: tensor<3xi64> {espalier.name = "rng", espalier.role = "rng"})
      -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
          tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}) {
    %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
    return %one, %one : tensor<f32>, tensor<f32>
  }
}

// -----

// expected-error @+1 {{expects 1 gradients, but got 0}}
func.func @grad(%w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"})
    -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}) {
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  return %one, %one : tensor<f32>, tensor<f32>
}

// -----

// expected-error @+1 {{expects gradients 'w' of type 'tensor<2xf32>', but got 'v' of type 'tensor<2xf32>'}}
func.func @grad(%w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"})
    -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"},
        tensor<2xf32> {espalier.name = "v", espalier.role = "grad"}) {
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  return %one, %one, %w : tensor<f32>, tensor<f32>, tensor<2xf32>
}
