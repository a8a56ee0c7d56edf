// RUN: espalier-opt %s --espalier-recognize --split-input-file | FileCheck %s

// x / sqrt(mean(x * x) + epsilon) * scale.

// CHECK-LABEL: func.func @rms_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[S:.*]]: tensor<4xf32>)
func.func @rms_norm(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: nn.rms_norm %[[X]] scale %[[S]] epsilon = 9.99{{[0-9]*}}E-6
  // CHECK-NEXT: return
  %square = nn.map %x : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    %m = arith.mulf %a, %a : f32
    nn.yield %m : f32
  }
  %sum = nn.reduce sum %square dims = [1] : tensor<2x4xf32> -> tensor<2x1xf32>
  %mean = nn.map %sum : (tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%a: f32):
    %n = arith.constant 4.0 : f32
    %m = arith.divf %a, %n : f32
    nn.yield %m : f32
  }
  %shifted = nn.map %mean : (tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%a: f32):
    %e = arith.constant 1.0e-5 : f32
    %m = arith.addf %a, %e : f32
    nn.yield %m : f32
  }
  %root = nn.map %shifted : (tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%a: f32):
    %m = math.sqrt %a : f32
    nn.yield %m : f32
  }
  %inverse = nn.map %root : (tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    %m = arith.divf %one, %a : f32
    nn.yield %m : f32
  }
  %unit = nn.map %x, %inverse : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    nn.yield %m : f32
  }
  %y = nn.map %s, %unit : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.mulf %a, %b : f32
    nn.yield %m : f32
  }
  return %y : tensor<2x4xf32>
}

// -----

// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) * scale + bias.

// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[S:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>)
func.func @layer_norm(%x: tensor<2x4xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>)
    -> tensor<2x4xf32> {
  // CHECK-NEXT: nn.layer_norm %[[X]] scale %[[S]] bias %[[B]] epsilon = 9.99{{[0-9]*}}E-6
  // CHECK-NEXT: return
  %total = nn.reduce sum %x dims = [1] : tensor<2x4xf32> -> tensor<2x1xf32>
  %mean = nn.map %total : (tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%a: f32):
    %n = arith.constant 4.0 : f32
    %m = arith.divf %a, %n : f32
    nn.yield %m : f32
  }
  %d = nn.map %x, %mean : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %c: f32):
    %m = arith.subf %a, %c : f32
    nn.yield %m : f32
  }
  %square = nn.map %d : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    %m = arith.mulf %a, %a : f32
    nn.yield %m : f32
  }
  %sum = nn.reduce sum %square dims = [1] : tensor<2x4xf32> -> tensor<2x1xf32>
  %variance = nn.map %sum : (tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%a: f32):
    %n = arith.constant 2.5e-1 : f32
    %m = arith.mulf %a, %n : f32
    nn.yield %m : f32
  }
  %shifted = nn.map %variance : (tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%a: f32):
    %e = arith.constant 1.0e-5 : f32
    %m = arith.addf %a, %e : f32
    nn.yield %m : f32
  }
  %root = nn.map %shifted : (tensor<2x1xf32>) -> tensor<2x1xf32> {
  ^bb0(%a: f32):
    %m = math.sqrt %a : f32
    nn.yield %m : f32
  }
  %unit = nn.map %d, %root : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %c: f32):
    %m = arith.divf %a, %c : f32
    nn.yield %m : f32
  }
  %scaled = nn.map %unit, %s : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %c: f32):
    %m = arith.mulf %a, %c : f32
    nn.yield %m : f32
  }
  %y = nn.map %scaled, %b : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %c: f32):
    %m = arith.addf %a, %c : f32
    nn.yield %m : f32
  }
  return %y : tensor<2x4xf32>
}
