// RUN: espalier-opt %s --espalier-add-loss='output=logits target=labels' | FileCheck %s
// RUN: espalier-opt %s --espalier-add-loss='kind=mse output=logits target=wanted' | FileCheck %s --check-prefix=MSE

// The labels come before what says which samples count; an output that the loss does
// not use is gone. Samples that do not count get the label that is ignored.

// CHECK-LABEL: func.func @loss(
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32> {espalier.name = "x", espalier.role = "input"}
// CHECK-SAME: %[[L:.*]]: tensor<2xi64> {espalier.name = "labels", espalier.role = "label"}
// CHECK-SAME: %[[V:.*]]: tensor<2xi1>
// CHECK-SAME: -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"}, tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"})
// CHECK-NOT: nn.softmax
// CHECK: %[[COUNTED:.*]] = nn.map %[[L]], %[[V]]
// CHECK: arith.select
// CHECK: %[[LOSS:.*]], %{{.*}} = nn.cross_entropy %[[X]], %[[COUNTED]] ignore_index = -100
// CHECK: nn.map %[[COUNTED]]
// CHECK: nn.reduce sum %[[LOSS]] dims = [0]

// A squared error's weight is the number of elements of valid samples.

// MSE-LABEL: func.func @loss(
// MSE-SAME: tensor<2x3xf32> {espalier.name = "wanted", espalier.role = "label"}
// MSE: arith.subf
// MSE: arith.select
// MSE: arith.mulf
// MSE: arith.constant 3.0
func.func @forward(%x: tensor<2x3xf32> {espalier.name = "x", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<2x3xf32> {espalier.name = "logits", espalier.role = "output"},
        tensor<2x3xf32> {espalier.name = "probabilities", espalier.role = "output"}) {
  %p = nn.softmax %x : tensor<2x3xf32> -> tensor<2x3xf32>
  return %x, %p : tensor<2x3xf32>, tensor<2x3xf32>
}
