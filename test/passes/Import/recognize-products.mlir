// RUN: espalier-opt %s --espalier-recognize --split-input-file | FileCheck %s

// A product needs no transpose of an operand.

// CHECK-LABEL: func.func @transpose
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<3x8xf32>)
func.func @transpose(%x: tensor<4x8xf32>, %w: tensor<3x8xf32>) -> tensor<4x3xf32> {
  // CHECK-NEXT: nn.contract "mk,nk->mn" %[[X]], %[[W]]
  %t = nn.transpose %w [1, 0] : tensor<3x8xf32> -> tensor<8x3xf32>
  %y = nn.contract "mk,kn->mn" %x, %t
      : tensor<4x8xf32>, tensor<8x3xf32> -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

// Batch and sequence, merged for a product with a bias, stay apart.

// CHECK-LABEL: func.func @merged_rows
// CHECK-SAME: (%[[X:.*]]: tensor<2x5x8xf32>
func.func @merged_rows(%x: tensor<2x5x8xf32>, %w: tensor<8x3xf32>, %b: tensor<3xf32>)
    -> tensor<2x5x3xf32> {
  // CHECK-NEXT: nn.contract "abk,kn->abn" %[[X]]
  // CHECK-NEXT: nn.map {{.*}} -> tensor<2x5x3xf32>
  // CHECK-NOT: nn.reshape
  %r = nn.reshape %x : tensor<2x5x8xf32> -> tensor<10x8xf32>
  %p = nn.contract "mk,kn->mn" %r, %w
      : tensor<10x8xf32>, tensor<8x3xf32> -> tensor<10x3xf32>
  %s = nn.map %p, %b : (tensor<10x3xf32>, tensor<3xf32>) -> tensor<10x3xf32> {
  ^bb0(%a: f32, %c: f32):
    %t = arith.addf %a, %c : f32
    nn.yield %t : f32
  }
  %y = nn.reshape %s : tensor<10x3xf32> -> tensor<2x5x3xf32>
  return %y : tensor<2x5x3xf32>
}

// -----

// Dimensions of size 1 that go are no merged rows.

// CHECK-LABEL: func.func @unit_dimension
func.func @unit_dimension(%x: tensor<4x1x8xf32>, %w: tensor<8x3xf32>) -> tensor<4x3xf32> {
  // CHECK: nn.reshape
  // CHECK-NEXT: nn.contract "mk,kn->mn"
  %r = nn.reshape %x : tensor<4x1x8xf32> -> tensor<4x8xf32>
  %y = nn.contract "mk,kn->mn" %r, %w
      : tensor<4x8xf32>, tensor<8x3xf32> -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
