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

// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<4x8xf32>, %b: tensor<2x8xf32>) {
  // CHECK: dist.all_reduce sum %{{.*}} axes = ["dp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  %0 = dist.all_reduce sum %x axes = ["dp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: dist.all_gather
  %1 = dist.all_gather %b dim = 0 axes = ["dp"] : tensor<2x8xf32> -> tensor<4x8xf32>
  // CHECK: dist.reduce_scatter sum
  %2 = dist.reduce_scatter sum %x dim = 0 axes = ["dp"]
      : tensor<4x8xf32> -> tensor<2x8xf32>
  // CHECK: dist.all_to_all
  %3 = dist.all_to_all %b split_dim = 1 concat_dim = 0 axes = ["tp"]
      : tensor<2x8xf32> -> tensor<4x4xf32>
  // CHECK: dist.shard_slice
  %4 = dist.shard_slice %x dim = 0 axes = ["dp"] : tensor<4x8xf32> -> tensor<2x8xf32>
  // CHECK: dist.block_index
  %5 = dist.block_index axes = ["dp"] scale = 4 : tensor<i64>
  return
}
