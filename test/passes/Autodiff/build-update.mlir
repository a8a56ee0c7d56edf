// RUN: espalier-opt %s --espalier-build-update='optimizer=sgd' | FileCheck %s --check-prefix=SGD
// RUN: espalier-opt %s --espalier-build-update='optimizer=sgd momentum=0.9 dampening=0.1' | FileCheck %s --check-prefix=MOMENTUM
// RUN: espalier-opt %s --espalier-build-update='grad-clip=1.0 schedule=cosine warmup-steps=10 total-steps=100' --canonicalize --cse | FileCheck %s --check-prefix=ADAMW

// SGD-LABEL: func.func @update(
// SGD-SAME: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"}
// SGD-SAME: tensor<2xf32> {espalier.name = "w", espalier.role = "grad"}
// SGD-SAME: tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"}
// SGD-SAME: tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}
// SGD-SAME: tensor<i64> {espalier.name = "step", espalier.role = "step"}

// MOMENTUM-LABEL: func.func @update(
// MOMENTUM-SAME: tensor<2xf32> {espalier.name = "momentum/w", espalier.role = "state"}

// The parameter and its state are one map of eight operands: parameter, gradient, two
// moments, whether the step counts, the gradient's factor and what depends on the step.

// ADAMW-LABEL: func.func @update(
// ADAMW-SAME: %[[W:[a-z0-9]*]]: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"}
// ADAMW-SAME: %[[M:[a-z0-9]*]]: tensor<2xf32> {espalier.name = "exp_avg/w", espalier.role = "state"}
// ADAMW-SAME: %[[V:[a-z0-9]*]]: tensor<2xf32> {espalier.name = "exp_avg_sq/w", espalier.role = "state"}
// ADAMW-SAME: %[[G:[a-z0-9]*]]: tensor<2xf32> {espalier.name = "w", espalier.role = "grad"}
// ADAMW: math.cos
// ADAMW: nn.reduce sum
// ADAMW: math.sqrt
// ADAMW: arith.minimumf
// ADAMW: %[[NEW:.*]]:3 = nn.map %[[W]], %[[G]], %[[M]], %[[V]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (
// ADAMW: return %[[NEW]]#0, %[[NEW]]#1, %[[NEW]]#2,
func.func @grad(%w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"})
    -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"},
        tensor<2xf32> {espalier.name = "w", espalier.role = "grad"}) {
  %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
  return %one, %one, %w : tensor<f32>, tensor<f32>, tensor<2xf32>
}
