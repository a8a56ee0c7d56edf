// RUN: espalier-opt %s --espalier-add-loss='kind=output output=loss weight=count' --split-input-file --verify-diagnostics | FileCheck %s

// A value and a weight for each sample: both are selected.

// CHECK-LABEL: func.func @loss
// CHECK-NOT: espalier.counts_invalid_samples
// CHECK: arith.select
// CHECK: arith.select
func.func @forward(%x: tensor<2xf32> {espalier.name = "x", espalier.role = "input"},
    %n: tensor<2xi64> {espalier.name = "n", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<2xf32> {espalier.name = "loss", espalier.role = "output"},
        tensor<2xi64> {espalier.name = "count", espalier.role = "output"}) {
  return %x, %n : tensor<2xf32>, tensor<2xi64>
}

// -----

// A sum with its weight: the model has counted samples that are not valid, and
// @loss says so.

// CHECK-LABEL: func.func @loss
// CHECK-SAME: espalier.counts_invalid_samples
func.func @forward(%x: tensor<f32> {espalier.name = "x", espalier.role = "input"},
    %n: tensor<1xi64> {espalier.name = "n", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<f32> {espalier.name = "loss", espalier.role = "output"},
        tensor<1xi64> {espalier.name = "count", espalier.role = "output"}) {
  return %x, %n : tensor<f32>, tensor<1xi64>
}

// -----

// expected-error @+1 {{train.loss: outputs 'loss' and 'count' have types 'tensor<f32>' and 'tensor<2x3xi64>', but expects one number each, or a value for each sample}}
func.func @forward(%x: tensor<f32> {espalier.name = "x", espalier.role = "input"},
    %n: tensor<2x3xi64> {espalier.name = "n", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<f32> {espalier.name = "loss", espalier.role = "output"},
        tensor<2x3xi64> {espalier.name = "count", espalier.role = "output"}) {
  return %x, %n : tensor<f32>, tensor<2x3xi64>
}
