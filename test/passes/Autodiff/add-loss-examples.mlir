// RUN: espalier-opt %s --espalier-add-loss='output=logits target=labels' | FileCheck %s

// CHECK: func.func @loss
func.func @forward(%x: tensor<2x3xf32> {espalier.name = "x", espalier.role = "input"},
    %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
    -> (tensor<2x3xf32> {espalier.name = "logits", espalier.role = "output"}) {
  return %x : tensor<2x3xf32>
}
