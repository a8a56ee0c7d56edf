// RUN: espalier-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @buffers
func.func @buffers() {
  // CHECK: rt.buffer 64 : memref<32xf32>
  %x = rt.buffer 64 : memref<32xf32>
  // CHECK: rt.constant
  %c = rt.constant dense<[1.0, 2.0]> : tensor<2xf32> : memref<2xf32>
  // CHECK: rt.mark 3
  rt.mark 3
  return
}

// CHECK-LABEL: func.func @loops
func.func @loops(%x: memref<32xf32>, %b: memref<8xf32>, %y: memref<32xf32>) {
  // CHECK: rt.loops [4, 8]
  rt.loops [4, 8] ins(%x, %b) outs(%y) strides = [[8, 1], [0, 1], [8, 1]] kinds = ["store"]
      : (memref<32xf32>, memref<8xf32>) -> (memref<32xf32>) {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    rt.yield %w : f32
  }
  return
}

// CHECK-LABEL: func.func @launch
func.func @launch(%x: memref<32xf32>, %y: memref<32xf32>) {
  // CHECK: rt.launch "softmax"
  rt.launch "softmax" (%x, %y) constants = [4, 8] : memref<32xf32>, memref<32xf32>
  return
}

// CHECK-LABEL: func.func @gemm
func.func @gemm(%a: memref<8xf32>, %b: memref<16xf32>, %c: memref<32xf32>) {
  // CHECK: rt.gemm
  rt.gemm %a, %b, %c m = 4 n = 8 k = 2 alpha = 1.000000e+00 beta = 0.000000e+00
      leading = [2, 8, 8] transpose = [false, false] batch = 1 strides = [0, 0, 0]
      : memref<8xf32>, memref<16xf32>, memref<32xf32>
  return
}

// CHECK-LABEL: func.func @all_reduce
func.func @all_reduce(%x: memref<32xf32>) {
  // CHECK: rt.all_reduce sum
  rt.all_reduce sum %x groups = [0, 0] op = 3 : memref<32xf32>
  return
}

// CHECK-LABEL: func.func @all_gather
func.func @all_gather(%x: memref<8xf32>, %y: memref<16xf32>) {
  // CHECK: rt.all_gather
  rt.all_gather %x, %y outer = 1 count = 8 groups = [0, 0] op = 3
      : memref<8xf32>, memref<16xf32>
  return
}

// CHECK-LABEL: func.func @all_to_all
func.func @all_to_all(%x: memref<16xf32>, %y: memref<16xf32>) {
  // CHECK: rt.all_to_all
  rt.all_to_all %x, %y outer = 1 count = 8 groups = [0, 0] op = 3
      : memref<16xf32>, memref<16xf32>
  return
}

// CHECK-LABEL: func.func @reduce_scatter
func.func @reduce_scatter(%x: memref<16xf32>, %y: memref<8xf32>) {
  // CHECK: rt.reduce_scatter sum
  rt.reduce_scatter sum %x, %y outer = 1 count = 8 groups = [0, 0] op = 3
      : memref<16xf32>, memref<8xf32>
  return
}
