// RUN: espalier-opt %s --espalier-fuse-unary-maps --split-input-file | FileCheck %s

// A function of one tensor in two steps is one map.

// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[Y:.*]] = nn.map %[[X]] : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[E:.*]] = math.exp %[[A:.*]] : f32
  // CHECK-NEXT: %[[M:.*]] = arith.mulf %[[A]], %[[E]] : f32
  // CHECK-NEXT: nn.yield %[[M]] : f32
  // CHECK: return %[[Y]]
  %s = nn.map %x : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    nn.yield %e : f32
  }
  %y = nn.map %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    nn.yield %m : f32
  }
  return %y : tensor<4xf32>
}

// -----

// What is used elsewhere too stays: it would be computed twice.

// CHECK-LABEL: func.func @used_twice
func.func @used_twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: nn.map
  %s = nn.map %x : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    nn.yield %e : f32
  }
  %y = nn.map %s : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    %m = math.tanh %a : f32
    nn.yield %m : f32
  }
  return %s, %y : tensor<4xf32>, tensor<4xf32>
}

// -----

// Maps that join two tensors are left alone.

// CHECK-LABEL: func.func @two_tensors
func.func @two_tensors(%x: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-COUNT-2: nn.map
  %s = nn.map %x, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %c: f32):
    %e = arith.addf %a, %c : f32
    nn.yield %e : f32
  }
  %y = nn.map %s : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    %m = math.tanh %a : f32
    nn.yield %m : f32
  }
  return %y : tensor<4xf32>
}
