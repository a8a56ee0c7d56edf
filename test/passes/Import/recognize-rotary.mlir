// RUN: espalier-opt %s --espalier-recognize --split-input-file | FileCheck %s

// Tables that are computed from the positions: half of each is enough.

// CHECK-LABEL: func.func @computed_tables
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x5x4xf32>, %[[T:.*]]: tensor<5x2xf32>)
func.func @computed_tables(%x: tensor<2x3x5x4xf32>, %t: tensor<5x2xf32>)
    -> tensor<2x3x5x4xf32> {
  // CHECK: %[[COS:.*]] = nn.map %[[T]]
  // CHECK: math.cos
  // CHECK: %[[SIN:.*]] = nn.map %[[T]]
  // CHECK: math.sin
  // CHECK: nn.rope %[[X]], %[[COS]], %[[SIN]]
  %angles = nn.concat %t, %t dim = 1 : (tensor<5x2xf32>, tensor<5x2xf32>) -> tensor<5x4xf32>
  %cos = nn.map %angles : (tensor<5x4xf32>) -> tensor<5x4xf32> {
  ^bb0(%a: f32):
    %c = math.cos %a : f32
    nn.yield %c : f32
  }
  %sin = nn.map %angles : (tensor<5x4xf32>) -> tensor<5x4xf32> {
  ^bb0(%a: f32):
    %c = math.sin %a : f32
    nn.yield %c : f32
  }
  %x1 = nn.slice %x offsets = [0, 0, 0, 0] strides = [1, 1, 1, 1]
      : tensor<2x3x5x4xf32> -> tensor<2x3x5x2xf32>
  %x2 = nn.slice %x offsets = [0, 0, 0, 2] strides = [1, 1, 1, 1]
      : tensor<2x3x5x4xf32> -> tensor<2x3x5x2xf32>
  %n = nn.map %x2 : (tensor<2x3x5x2xf32>) -> tensor<2x3x5x2xf32> {
  ^bb0(%a: f32):
    %m = arith.negf %a : f32
    nn.yield %m : f32
  }
  %r = nn.concat %n, %x1 dim = 3
      : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x4xf32>
  %p = nn.map %x, %cos : (tensor<2x3x5x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    nn.yield %m : f32
  }
  %q = nn.map %r, %sin : (tensor<2x3x5x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    nn.yield %m : f32
  }
  %y = nn.map %p, %q : (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    nn.yield %m : f32
  }
  return %y : tensor<2x3x5x4xf32>
}

// -----

// Constant tables whose halves differ are none of a rotation.

// CHECK-LABEL: func.func @unequal_halves
func.func @unequal_halves(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  // CHECK-NOT: nn.rope
  %cos = nn.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32> -> tensor<1x2xf32>
  %x1 = nn.slice %x offsets = [0, 0] strides = [1, 1] : tensor<1x2xf32> -> tensor<1x1xf32>
  %x2 = nn.slice %x offsets = [0, 1] strides = [1, 1] : tensor<1x2xf32> -> tensor<1x1xf32>
  %n = nn.map %x2 : (tensor<1x1xf32>) -> tensor<1x1xf32> {
  ^bb0(%a: f32):
    %m = arith.negf %a : f32
    nn.yield %m : f32
  }
  %r = nn.concat %n, %x1 dim = 1 : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x2xf32>
  %p = nn.map %x, %cos : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    nn.yield %m : f32
  }
  %q = nn.map %r, %cos : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    nn.yield %m : f32
  }
  %y = nn.map %p, %q : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    nn.yield %m : f32
  }
  return %y : tensor<1x2xf32>
}
