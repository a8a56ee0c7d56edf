// RUN: espalier-opt %s --espalier-shard-training-program --espalier-verify-planned | FileCheck %s --check-prefix=PLANNED
// RUN: espalier-opt %s --espalier-shard-training-program --espalier-partition --espalier-combine-all-reduces --espalier-verify-partitioned | FileCheck %s --check-prefix=LOCAL

// A layer, its gradients and its update on two devices: the batch is cut, gradients
// and sums stay partial in @grad, and @update reduces all of them in one bucket.

dist.mesh @mesh [#dist.mesh_axis<"dp" = 2, "node">]

// PLANNED-LABEL: func.func @grad
// LOCAL-LABEL: func.func @grad
// LOCAL-SAME: tensor<2x8xf32>
func.func @grad(
    %w: tensor<8x3xf32> {espalier.name = "w", espalier.role = "parameter"},
    %x: tensor<4x8xf32> {espalier.name = "x", espalier.role = "input"},
    %dy: tensor<4x3xf32> {espalier.name = "y", espalier.role = "label"})
    -> (tensor<1x1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<8x3xf32> {espalier.name = "w", espalier.role = "grad"}) {
  // PLANNED: nn.contract {{.*}} -> tensor<4x3xf32, #dist.sharding<{{\[\[}}"dp"], []]>>
  // LOCAL: nn.contract {{.*}} -> tensor<2x3xf32>
  %y = nn.contract "mk,kn->mn" %x, %w : tensor<4x8xf32>, tensor<8x3xf32> -> tensor<4x3xf32>
  // PLANNED: nn.reduce {{.*}} partial {"dp": sum}
  %loss = nn.reduce sum %y dims = [0, 1] : tensor<4x3xf32> -> tensor<1x1xf32>
  // PLANNED: nn.contract {{.*}} partial {"dp": sum}
  %dw = nn.contract "mk,mn->kn" %x, %dy : tensor<4x8xf32>, tensor<4x3xf32> -> tensor<8x3xf32>
  // PLANNED-NOT: dist.reshard
  // LOCAL-NOT: dist.
  return %loss, %dw : tensor<1x1xf32>, tensor<8x3xf32>
}

// PLANNED-LABEL: func.func @update
// LOCAL-LABEL: func.func @update
func.func @update(
    %w: tensor<8x3xf32> {espalier.name = "w", espalier.role = "parameter"},
    %dw: tensor<8x3xf32> {espalier.name = "w", espalier.role = "grad"},
    %loss_sum: tensor<1x1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"})
    -> (tensor<8x3xf32> {espalier.name = "w", espalier.role = "parameter"},
        tensor<1x1xf32> {espalier.name = "loss", espalier.role = "loss"}) {
  // LOCAL: dist.all_reduce sum %{{.*}}, %{{.*}} axes = ["dp"]
  // LOCAL-NOT: dist.
  %new = nn.map %w, %dw : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32> {
  ^bb0(%p: f32, %g: f32):
    %0 = arith.subf %p, %g : f32
    nn.yield %0 : f32
  }
  return %new, %loss_sum : tensor<8x3xf32>, tensor<1x1xf32>
}
