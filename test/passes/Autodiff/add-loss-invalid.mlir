// RUN: espalier-opt %s --espalier-add-loss='output=logits target=labels' --split-input-file --verify-diagnostics
// RUN: not espalier-opt %s --espalier-add-loss='kind=output output=mean' --split-input-file 2>&1 | FileCheck %s --check-prefix=OWN

// expected-error @+1 {{expects a function @forward}}
module {}

// -----

// expected-error @+2 {{train.loss: logits 'logits' is no output of the model; it has 'mean', 'other'}}
// OWN: train.loss: output 'mean' has type 'tensor<f32>', one number for the microbatch; a mean cannot be combined exactly over microbatches and replicas: give a value for each sample, or a sum with its 'weight'
func.func @forward(%x: tensor<f32> {espalier.name = "x", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<f32> {espalier.name = "mean", espalier.role = "output"},
        tensor<f32> {espalier.name = "other", espalier.role = "output"}) {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// expected-error @+1 {{train.loss: output 'logits' has type 'tensor<2xf32>', but expects at least 2 dimensions, the first being the batch}}
func.func @forward(%x: tensor<2xf32> {espalier.name = "x", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<2xf32> {espalier.name = "logits", espalier.role = "output"}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error @+1 {{train.loss: output 'logits' has type 'tensor<2x3xi64>', but expects floating-point elements}}
func.func @forward(%x: tensor<2x3xi64> {espalier.name = "x", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<2x3xi64> {espalier.name = "logits", espalier.role = "output"}) {
  return %x : tensor<2x3xi64>
}

// -----

// expected-error @+1 {{expects an argument with role 'valid'}}
func.func @forward(%x: tensor<2x3xf32> {espalier.name = "x", espalier.role = "input"})
    -> (tensor<2x3xf32> {espalier.name = "logits", espalier.role = "output"}) {
  return %x : tensor<2x3xf32>
}

// -----

// expected-error @+1 {{train.loss: the model already has an input or initializer 'labels'; choose another name}}
func.func @forward(%x: tensor<2x3xf32> {espalier.name = "labels", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<2x3xf32> {espalier.name = "logits", espalier.role = "output"}) {
  return %x : tensor<2x3xf32>
}
