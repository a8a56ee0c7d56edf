// RUN: espalier-opt %s --espalier-differentiate --split-input-file --verify-diagnostics

// expected-error @+1 {{expects a function @loss}}
module {}

// -----

func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32>

func.func @loss(%w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"})
    -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}) {
  // expected-error @+1 {{'func.call' op has no derivative}}
  %y = func.call @layer(%w) : (tensor<2xf32>) -> tensor<2xf32>
  %s = nn.reduce sum %y dims = [0] : tensor<2xf32> -> tensor<1xf32>
  %l = nn.reshape %s : tensor<1xf32> -> tensor<f32>
  return %l, %l : tensor<f32>, tensor<f32>
}

// -----

func.func @loss(%w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"})
    -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}) {
  // expected-error @+1 {{'nn.softmax_grad' op has no second derivative}}
  %y = nn.softmax_grad %w, %w : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  %s = nn.reduce sum %y dims = [0] : tensor<2xf32> -> tensor<1xf32>
  %l = nn.reshape %s : tensor<1xf32> -> tensor<f32>
  return %l, %l : tensor<f32>, tensor<f32>
}
