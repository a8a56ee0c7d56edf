// RUN: espalier-translate --scheduled-to-rt %s | FileCheck %s

// A product's bias and activation are one loop, which overwrites the product; the
// reduction of what it computes joins it.

// CHECK-LABEL: func.func @first
// CHECK: rt.gemm
// CHECK: rt.loops {{.*}} kinds = ["sum", "store"]
// CHECK: arith.addf
// CHECK: math.tanh
// CHECK: rt.yield
// CHECK-NOT: rt.loops
// CHECK: return
func.func @first(
    %x: tensor<4x8xf32> {espalier.name = "x", espalier.role = "input"},
    %w: tensor<8x6xf32> {espalier.name = "w", espalier.role = "parameter"},
    %b: tensor<6xf32> {espalier.name = "b", espalier.role = "parameter"})
    -> (tensor<4x6xf32> {espalier.name = "y", espalier.role = "output"},
        tensor<1x6xf32> {espalier.name = "s", espalier.role = "output"}) {
  %h = nn.contract "mk,kn->mn" %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %z = nn.map %h, %b : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32> {
  ^bb0(%u: f32, %v: f32):
    %1 = arith.addf %u, %v : f32
    nn.yield %1 : f32
  }
  %y = nn.map %z : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%u: f32):
    %1 = math.tanh %u : f32
    nn.yield %1 : f32
  }
  %s = nn.reduce sum %y dims = [0] : tensor<4x6xf32> -> tensor<1x6xf32>
  return %y, %s : tensor<4x6xf32>, tensor<1x6xf32>
}

// The parameter is updated where it lies: one loop, and no copy.

// CHECK-LABEL: func.func @update
// CHECK: %[[W:.*]] = rt.buffer [[PLACE:[0-9]+]] :
// CHECK: %[[OUT:.*]] = rt.buffer [[PLACE]] :
// CHECK: rt.loops {{.*}} ins(%[[W]]) outs(%[[OUT]])
// CHECK-NOT: rt.loops
// CHECK: return
func.func @update(
    %w: tensor<8x6xf32> {espalier.name = "w", espalier.role = "parameter"})
    -> (tensor<8x6xf32> {espalier.name = "w", espalier.role = "parameter"}) {
  %v = nn.map %w : (tensor<8x6xf32>) -> tensor<8x6xf32> {
  ^bb0(%u: f32):
    %half = arith.constant 5.000000e-01 : f32
    %1 = arith.mulf %u, %half : f32
    nn.yield %1 : f32
  }
  return %v : tensor<8x6xf32>
}
