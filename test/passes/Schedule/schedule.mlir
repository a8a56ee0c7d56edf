// RUN: espalier-opt %s --espalier-schedule=micro-batches=2 | FileCheck %s
// RUN: espalier-opt %s --espalier-schedule | FileCheck %s --check-prefix=ONE

// With several microbatches a second function adds to the sums so far.

// CHECK-LABEL: func.func @first(
// CHECK-SAME: %{{.*}}: tensor<4xf32>
// CHECK-NOT: nn.map

// CHECK-LABEL: func.func @next(
// CHECK-SAME: %[[SUM:[a-z0-9]*]]: tensor<1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"})
// CHECK: %[[OWN:.*]] = nn.reduce
// CHECK: %[[NEW:.*]] = nn.map %[[SUM]], %[[OWN]]
// CHECK: return %[[NEW]]

// ONE: func.func @first(
// ONE-NOT: func.func @next(
func.func @grad(%x: tensor<4xf32> {espalier.name = "x", espalier.role = "input"})
    -> (tensor<1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"}) {
  %s = nn.reduce sum %x dims = [0] : tensor<4xf32> -> tensor<1xf32>
  return %s : tensor<1xf32>
}
