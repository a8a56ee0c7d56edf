// RUN: espalier-opt %s --espalier-verify-imported --split-input-file --verify-diagnostics

// expected-error @+1 {{expects a function @forward}}
module {}

// -----

// expected-error @+1 {{expects a body of one block}}
func.func private @forward()

// -----

// expected-error @+1 {{expects to be the only function}}
func.func @forward() {
  return
}
func.func private @other()

// -----

// expected-error @+1 {{expects static ranked tensors, but argument 0 has type 'tensor<?xf32>'}}
func.func @forward(%x: tensor<?xf32>) {
  return
}

// -----

// expected-error @+1 {{expects 'espalier.name' on argument 0}}
func.func @forward(%x: tensor<2xf32>) {
  return
}

// -----

// expected-error @+1 {{expects roles in the order parameter, frozen, buffer, input, valid, rng, but argument 1, 'w', has role 'parameter'}}
func.func @forward(%x: tensor<2xf32> {espalier.name = "x", espalier.role = "input"},
    %w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"}) {
  return
}

// -----

// expected-error @+1 {{expects names once, but two arguments of role 'input' are named 'x'}}
func.func @forward(%x: tensor<2xf32> {espalier.name = "x", espalier.role = "input"},
    %y: tensor<2xf32> {espalier.name = "x", espalier.role = "input"}) {
  return
}

// -----

// expected-error @+1 {{expects 1 results that are buffers, but got 0}}
func.func @forward(%m: tensor<2xf32> {espalier.name = "m", espalier.role = "buffer"}) {
  return
}

// -----

// expected-error @+1 {{expects one 'valid', but got 0}}
func.func @forward(%x: tensor<2xf32> {espalier.name = "x", espalier.role = "input"}) {
  return
}

// -----

// expected-error @+1 {{expects 'rng' of type 'tensor<3xi64>', but got 'tensor<2xi64>'}}
func.func @forward(%valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"},
    %rng: tensor<2xi64> {espalier.name = "rng", espalier.role = "rng"}) {
  return
}

// -----

func.func @forward(%valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"},
    %rng: tensor<3xi64> {espalier.name = "rng", espalier.role = "rng"}) {
  // expected-error @+1 {{is not of the nn dialect}}
  %c = arith.constant 1.0 : f32
  return
}

// -----

func.func @forward(%valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"},
    %rng: tensor<3xi64> {espalier.name = "rng", espalier.role = "rng"}) {
  // expected-error @unknown {{does not say where it comes from}}
  %c = nn.constant dense<1.0> : tensor<f32> -> tensor<f32> loc(unknown)
  return
}
