// RUN: espalier-opt %s --verify-roundtrip | FileCheck %s

// CHECK: dist.mesh @mesh [#dist.mesh_axis<"dp" = 4, "network">, #dist.mesh_axis<"tp" = 2, "node">]
dist.mesh @mesh [#dist.mesh_axis<"dp" = 4, "network">, #dist.mesh_axis<"tp" = 2, "node">]

// CHECK-LABEL: func.func @reshard
func.func @reshard(%x: tensor<4x8xf32, #dist.sharding<[["dp"], []]>>) {
  // CHECK: dist.reshard
  %y = dist.reshard %x : tensor<4x8xf32, #dist.sharding<[["dp"], []]>>
      -> tensor<4x8xf32, #dist.sharding<[[], []]>>
  return
}

// The text of a sharding with partial axes, several axes to a dimension.

// CHECK-LABEL: func.func @sharding
// CHECK-SAME: tensor<4x8xf32, #dist.sharding<{{\[\[}}], ["tp", "cp"{{\]\]}} partial {"dp": sum}>>
func.func @sharding(%x: tensor<4x8xf32, #dist.sharding<[[], ["tp", "cp"]] partial {"dp": sum}>>) {
  return
}

// CHECK-LABEL: func.func @all_reduce
func.func @all_reduce(%x: tensor<4x8xf32>) {
  // CHECK: dist.all_reduce sum %{{.*}} axes = ["dp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  %y = dist.all_reduce sum %x axes = ["dp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @all_gather
func.func @all_gather(%x: tensor<2x8xf32>) {
  // CHECK: dist.all_gather
  %y = dist.all_gather %x dim = 0 axes = ["dp"] : tensor<2x8xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @reduce_scatter
func.func @reduce_scatter(%x: tensor<4x8xf32>) {
  // CHECK: dist.reduce_scatter sum
  %y = dist.reduce_scatter sum %x dim = 0 axes = ["dp"]
      : tensor<4x8xf32> -> tensor<2x8xf32>
  return
}

// CHECK-LABEL: func.func @all_to_all
func.func @all_to_all(%x: tensor<2x8xf32>) {
  // CHECK: dist.all_to_all
  %y = dist.all_to_all %x split_dim = 1 concat_dim = 0 axes = ["tp"]
      : tensor<2x8xf32> -> tensor<4x4xf32>
  return
}

// CHECK-LABEL: func.func @shard_slice
func.func @shard_slice(%x: tensor<4x8xf32>) {
  // CHECK: dist.shard_slice
  %y = dist.shard_slice %x dim = 0 axes = ["dp"] : tensor<4x8xf32> -> tensor<2x8xf32>
  return
}

// CHECK-LABEL: func.func @block_index
func.func @block_index() {
  // CHECK: dist.block_index
  %i = dist.block_index axes = ["dp"] scale = 4 : tensor<i64>
  return
}
