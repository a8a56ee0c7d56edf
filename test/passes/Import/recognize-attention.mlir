// RUN: espalier-opt %s --espalier-recognize --split-input-file --remarks-filter=import 2>&1 | FileCheck %s

// The root of the scale on both sides, a constant causal mask, keys and values of one head
// repeated for two, and a guard behind the softmax.

// CHECK-LABEL: func.func @causal
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x2x4xf32>, %[[K:.*]]: tensor<1x1x2x4xf32>, %[[V:.*]]: tensor<1x1x2x4xf32>)
func.func @causal(%q: tensor<1x2x2x4xf32>, %k: tensor<1x1x2x4xf32>, %v: tensor<1x1x2x4xf32>)
    -> tensor<1x2x2x4xf32> {
  // CHECK-NEXT: %[[OUT:.*]], %{{.*}} = nn.attention %[[Q]], %[[K]], %[[V]] causal scale = 2.500000e-01
  // CHECK-NEXT: return %[[OUT]]
  %mask = nn.constant dense<[[[[0.0, -3.4028234663852886e+38], [0.0, 0.0]]]]>
      : tensor<1x1x2x2xf32> -> tensor<1x1x2x2xf32>
  %k1 = nn.reshape %k : tensor<1x1x2x4xf32> -> tensor<1x1x1x2x4xf32>
  %k2 = nn.broadcast %k1 : tensor<1x1x1x2x4xf32> -> tensor<1x1x2x2x4xf32>
  %k3 = nn.reshape %k2 : tensor<1x1x2x2x4xf32> -> tensor<1x2x2x4xf32>
  %v1 = nn.reshape %v : tensor<1x1x2x4xf32> -> tensor<1x1x1x2x4xf32>
  %v2 = nn.broadcast %v1 : tensor<1x1x1x2x4xf32> -> tensor<1x1x2x2x4xf32>
  %v3 = nn.reshape %v2 : tensor<1x1x2x2x4xf32> -> tensor<1x2x2x4xf32>
  %k4 = nn.reshape %k3 : tensor<1x2x2x4xf32> -> tensor<2x2x4xf32>
  %k5 = nn.transpose %k4 [0, 2, 1] : tensor<2x2x4xf32> -> tensor<2x4x2xf32>
  %k6 = nn.reshape %k5 : tensor<2x4x2xf32> -> tensor<1x2x4x2xf32>
  %qs = nn.map %q : (tensor<1x2x2x4xf32>) -> tensor<1x2x2x4xf32> {
  ^bb0(%a: f32):
    %c = arith.constant 5.0e-1 : f32
    %m = arith.mulf %a, %c : f32
    nn.yield %m : f32
  }
  %ks = nn.map %k6 : (tensor<1x2x4x2xf32>) -> tensor<1x2x4x2xf32> {
  ^bb0(%a: f32):
    %c = arith.constant 5.0e-1 : f32
    %m = arith.mulf %a, %c : f32
    nn.yield %m : f32
  }
  %s = nn.contract "abxy,abyz->abxz" %qs, %ks
      : tensor<1x2x2x4xf32>, tensor<1x2x4x2xf32> -> tensor<1x2x2x2xf32>
  %t = nn.map %s, %mask : (tensor<1x2x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x2x2x2xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    nn.yield %m : f32
  }
  %p = nn.softmax %t : tensor<1x2x2x2xf32> -> tensor<1x2x2x2xf32>
  %isnan = nn.map %p : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xi1> {
  ^bb0(%a: f32):
    %m = arith.cmpf uno, %a, %a : f32
    nn.yield %m : i1
  }
  %g = nn.map %isnan, %p : (tensor<1x2x2x2xi1>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32> {
  ^bb0(%a: i1, %b: f32):
    %c = arith.constant 0.0 : f32
    %m = arith.select %a, %c, %b : f32
    nn.yield %m : f32
  }
  %y = nn.contract "abxy,abyz->abxz" %g, %v3
      : tensor<1x2x2x2xf32>, tensor<1x2x2x4xf32> -> tensor<1x2x2x4xf32>
  return %y : tensor<1x2x2x4xf32>
}

// -----

// A finite value is added where a mask of data says so, and nothing guards rows that are
// masked entirely: these attend to all keys alike, so that the mask stays one that is added.

// CHECK-LABEL: func.func @unguarded
func.func @unguarded(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>, %v: tensor<1x2x3x4xf32>,
                     %seen: tensor<1x1x1x3xi1>) -> tensor<1x2x3x4xf32> {
  // CHECK: %[[ADDED:.*]] = nn.map %{{.*}} : (tensor<1x1x1x3xi1>) -> tensor<1x1x1x3xf32>
  // CHECK: nn.attention %{{.*}} mask %[[ADDED]] scale = 1.000000e+00
  %added = nn.map %seen : (tensor<1x1x1x3xi1>) -> tensor<1x1x1x3xf32> {
  ^bb0(%a: i1):
    %c = arith.constant 0.0 : f32
    %d = arith.constant -3.0e+38 : f32
    %m = arith.select %a, %c, %d : f32
    nn.yield %m : f32
  }
  %s = nn.contract "bhsd,bhtd->bhst" %q, %k
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x3xf32>
  %t = nn.map %s, %added : (tensor<1x2x3x3xf32>, tensor<1x1x1x3xf32>) -> tensor<1x2x3x3xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    nn.yield %m : f32
  }
  %p = nn.softmax %t : tensor<1x2x3x3xf32> -> tensor<1x2x3x3xf32>
  %y = nn.contract "bhst,bhtd->bhsd" %p, %v
      : tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}

// -----

// Causal and not padding, by positions that are compared: a flag and what is left.

// CHECK-LABEL: func.func @mask_of_positions
// CHECK-SAME: %[[PAD:[a-z0-9]+]]: tensor<1x1x1x3xi1>
func.func @mask_of_positions(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>,
    %v: tensor<1x2x3x4xf32>, %pad: tensor<1x1x1x3xi1>) -> tensor<1x2x3x4xf32> {
  // CHECK: nn.attention %{{.*}} mask %[[PAD]] causal scale = 1.000000e+00
  %rows = nn.constant dense<[[0], [1], [2]]> : tensor<3x1xi64> -> tensor<3x1xi64>
  %columns = nn.constant dense<[0, 1, 2]> : tensor<3xi64> -> tensor<3xi64>
  %le = nn.map %columns, %rows : (tensor<3xi64>, tensor<3x1xi64>) -> tensor<1x1x3x3xi1> {
  ^bb0(%a: i64, %b: i64):
    %m = arith.cmpi sle, %a, %b : i64
    nn.yield %m : i1
  }
  %both = nn.map %le, %pad : (tensor<1x1x3x3xi1>, tensor<1x1x1x3xi1>) -> tensor<1x1x3x3xi1> {
  ^bb0(%a: i1, %b: i1):
    %m = arith.andi %a, %b : i1
    nn.yield %m : i1
  }
  %out, %lse = nn.attention %q, %k, %v mask %both scale = 1.000000e+00
      : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x1x3x3xi1>)
        -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  return %out : tensor<1x2x3x4xf32>
}

// -----

// A bias that is trained has a gradient, which attention's mask has not.

// CHECK-LABEL: func.func @trained_mask
// CHECK-NOT: nn.attention
func.func @trained_mask(%q: tensor<1x2x3x4xf32>, %k: tensor<1x2x3x4xf32>,
    %v: tensor<1x2x3x4xf32>,
    %bias: tensor<1x2x3x3xf32> {espalier.name = "bias", espalier.role = "parameter"})
    -> tensor<1x2x3x4xf32> {
  %s = nn.contract "bhsd,bhtd->bhst" %q, %k
      : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x3xf32>
  %t = nn.map %s, %bias : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> {
  ^bb0(%a: f32, %b: f32):
    %m = arith.addf %a, %b : f32
    nn.yield %m : f32
  }
  %p = nn.softmax %t : tensor<1x2x3x3xf32> -> tensor<1x2x3x3xf32>
  %y = nn.contract "bhst,bhtd->bhsd" %p, %v
      : tensor<1x2x3x3xf32>, tensor<1x2x3x4xf32> -> tensor<1x2x3x4xf32>
  return %y : tensor<1x2x3x4xf32>
}
