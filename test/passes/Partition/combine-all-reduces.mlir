// RUN: espalier-opt %s --pass-pipeline='builtin.module(func.func(espalier-combine-all-reduces))' | FileCheck %s

// Two tensors that are there at once go into one bucket.

// CHECK-LABEL: func.func @together
func.func @together(%a: tensor<4x8xf32>, %b: tensor<3xf32>) -> (tensor<4x8xf32>, tensor<3xf32>) {
  // CHECK: %[[R:.*]]:2 = dist.all_reduce sum %{{.*}}, %{{.*}} axes = ["dp"]
  // CHECK-NOT: dist.all_reduce
  %0 = dist.all_reduce sum %a axes = ["dp"] : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = dist.all_reduce sum %b axes = ["dp"] : tensor<3xf32> -> tensor<3xf32>
  // CHECK: return %[[R]]#0, %[[R]]#1
  return %0, %1 : tensor<4x8xf32>, tensor<3xf32>
}

// What needs the first's result, another group or another reduction stays apart.

// CHECK-LABEL: func.func @apart
func.func @apart(%a: tensor<3xf32>, %b: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  // CHECK-COUNT-4: dist.all_reduce {{(sum|max)}} %{{[^,]*}} axes
  %0 = dist.all_reduce sum %a axes = ["dp"] : tensor<3xf32> -> tensor<3xf32>
  %1 = dist.all_reduce sum %0 axes = ["dp"] : tensor<3xf32> -> tensor<3xf32>
  %2 = dist.all_reduce max %b axes = ["dp"] : tensor<3xf32> -> tensor<3xf32>
  %3 = dist.all_reduce sum %b axes = ["tp"] : tensor<3xf32> -> tensor<3xf32>
  return %1, %2, %3 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
