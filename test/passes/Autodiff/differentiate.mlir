// RUN: espalier-opt %s --espalier-differentiate --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @grad(
// CHECK-SAME: -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"}, tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}, tensor<2xf32> {espalier.name = "w", espalier.role = "grad"})
// CHECK: %[[ONE:.*]] = nn.constant
// CHECK: %[[SUM:.*]] = nn.reduce
// CHECK: %[[LOSS:.*]] = nn.reshape %[[SUM]]
// CHECK: %[[SEED:.*]] = nn.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[R:.*]] = nn.reshape %[[SEED]] : tensor<f32> -> tensor<1xf32>
// CHECK: %[[DW:.*]] = nn.broadcast %[[R]] : tensor<1xf32> -> tensor<2xf32>
// CHECK: return %[[LOSS]], %[[ONE]], %[[DW]]
func.func @loss(%w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"})
    -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}) {
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %s = nn.reduce sum %w dims = [0] : tensor<2xf32> -> tensor<1xf32>
  %l = nn.reshape %s : tensor<1xf32> -> tensor<f32>
  return %l, %one : tensor<f32>, tensor<f32>
}

// -----

// Three uses give one map that adds three terms; the input's gradient is not
// computed, and a parameter that nothing uses gets zeros.

// CHECK-LABEL: func.func @grad(
// CHECK-SAME: %[[W:[a-z0-9]*]]: tensor<2x2xf32>
// CHECK-COUNT-2: nn.contract
// CHECK: nn.contract "ac,bc->ab"
// CHECK: nn.contract "ac,ab->bc"
// CHECK-NOT: nn.contract "ac,bc->ab"
// CHECK: nn.contract "ac,ab->bc"
// CHECK: nn.map %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK: nn.constant dense<0.000000e+00> : tensor<3xf32>
// CHECK-NOT: @loss
func.func @loss(%w: tensor<2x2xf32> {espalier.name = "w", espalier.role = "parameter"},
    // expected-remark @+1 {{parameter 'unused' has gradient zero: the loss does not depend on it}}
    %unused: tensor<3xf32> {espalier.name = "unused", espalier.role = "parameter"},
    %x: tensor<2x2xf32> {espalier.name = "x", espalier.role = "input"})
    -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}) {
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a = nn.contract "ab,bc->ac" %x, %w : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %b = nn.contract "ab,bc->ac" %a, %w : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %c = nn.map %b, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    nn.yield %r : f32
  }
  %s = nn.reduce sum %c dims = [0, 1] : tensor<2x2xf32> -> tensor<1x1xf32>
  %l = nn.reshape %s : tensor<1x1xf32> -> tensor<f32>
  return %l, %one : tensor<f32>, tensor<f32>
}
