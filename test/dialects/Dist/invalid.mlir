// RUN: espalier-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{'dist.mesh' op expects axes of different names, but got 'dp' twice}}
dist.mesh @mesh_c1 [#dist.mesh_axis<"dp" = 4, "network">, #dist.mesh_axis<"dp" = 2, "node">]

// -----

// expected-error @+1 {{expects an axis with a name and a positive size, but got 'dp' = 0}}
dist.mesh @mesh_axis [#dist.mesh_axis<"dp" = 0, "network">]

// -----

// expected-error @+1 {{expects each axis once, by its name}}
func.func @sharding_c1(%x: tensor<4x8xf32, #dist.sharding<[["dp"], ["dp"]]>>) {
  return
}

// -----

// expected-error @+1 {{expects no partial axis to occur twice}}
func.func @sharding_c1_partial(%x: tensor<4x8xf32, #dist.sharding<[["dp"], []] partial {"dp": sum}>>) {
  return
}

// -----

func.func @reshard_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'dist.reshard' op expects one shape and element type, but got 'tensor<4x8xf32>' and 'tensor<8x4xf32>'}}
  %y = dist.reshard %x : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @all_reduce_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'dist.all_reduce' op expects results of the operands' types}}
  %y = dist.all_reduce sum %x axes = ["dp"] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @all_gather_c1(%x: tensor<3x8xf32>) {
  // expected-error @+1 {{'dist.all_gather' op expects blocks along a dimension, but got 'tensor<3x8xf32>' and 'tensor<4x8xf32>' along 0}}
  %y = dist.all_gather %x dim = 0 axes = ["dp"] : tensor<3x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @reduce_scatter_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'dist.reduce_scatter' op expects shapes that differ only in dimension 0}}
  %y = dist.reduce_scatter sum %x dim = 0 axes = ["dp"] : tensor<4x8xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @all_to_all_c1(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{'dist.all_to_all' op expects a cut moved between two dimensions}}
  %y = dist.all_to_all %x split_dim = 1 concat_dim = 1 axes = ["tp"] : tensor<2x8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @shard_slice_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{'dist.shard_slice' op expects blocks along a dimension}}
  %y = dist.shard_slice %x dim = 2 axes = ["dp"] : tensor<4x8xf32> -> tensor<2x8xf32>
  return
}
