// RUN: espalier-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: func.func @constant
func.func @constant() {
  // CHECK: nn.constant
  %c = nn.constant dense<1.000000e+00> : tensor<4xf32> -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @iota
func.func @iota() {
  // CHECK: nn.iota
  %i = nn.iota dim = 1 : tensor<4x8xi64>
  return
}

// CHECK-LABEL: func.func @random_uniform
func.func @random_uniform(%rng: tensor<3xi64>) {
  // CHECK: nn.random_uniform
  %u = nn.random_uniform %rng stream = "dropout_1" logical_shape = [4, 8]
      : tensor<3xi64> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @map
func.func @map(%x: tensor<4x8xf32>, %bias: tensor<8xf32>) {
  // CHECK: nn.map
  %y = nn.map %x, %bias : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    nn.yield %s : f32
  }
  return
}

// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<4x6xf32>) {
  // CHECK: nn.reshape
  %y = nn.reshape %x : tensor<4x6xf32> -> tensor<2x12xf32>
  return
}

// CHECK-LABEL: func.func @transpose
func.func @transpose(%x: tensor<4x8xf32>) {
  // CHECK: nn.transpose
  %y = nn.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// CHECK-LABEL: func.func @slice
func.func @slice(%x: tensor<4x8xf32>) {
  // CHECK: nn.slice
  %y = nn.slice %x offsets = [0, 2] strides = [1, 1] : tensor<4x8xf32> -> tensor<4x3xf32>
  return
}

// CHECK-LABEL: func.func @concat
func.func @concat(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>) {
  // CHECK: nn.concat
  %y = nn.concat %a, %b dim = 1 : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @pad
func.func @pad(%x: tensor<4x5xf32>) {
  // CHECK: nn.pad
  %y = nn.pad %x low = [0, 1] high = [0, 2] value = 0.000000e+00 : f32
      : tensor<4x5xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<4x1xf32>) {
  // CHECK: nn.broadcast
  %y = nn.broadcast %x : tensor<4x1xf32> -> tensor<2x4x8xf32>
  return
}

// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<4x8xf32>) {
  // CHECK: nn.reduce
  %y = nn.reduce sum %x dims = [1] : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}

// CHECK-LABEL: func.func @contract
func.func @contract(%a: tensor<2x4x8xf32>, %b: tensor<8x3xf32>) {
  // CHECK: nn.contract
  %c = nn.contract "bmk,kn->bmn" %a, %b
      : tensor<2x4x8xf32>, tensor<8x3xf32> -> tensor<2x4x3xf32>
  return
}

// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<4x8xf32>) {
  // CHECK: nn.softmax
  %y = nn.softmax %x : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @softmax_grad
func.func @softmax_grad(%y: tensor<4x8xf32>, %dy: tensor<4x8xf32>) {
  // CHECK: nn.softmax_grad
  %dx = nn.softmax_grad %y, %dy : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @layer_norm
func.func @layer_norm(%x: tensor<4x8xf32>, %scale: tensor<8xf32>, %bias: tensor<8xf32>) {
  // CHECK: nn.layer_norm
  %y = nn.layer_norm %x scale %scale bias %bias epsilon = 1.000000e-05
      : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @layer_norm_grad
func.func @layer_norm_grad(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>, %scale: tensor<8xf32>) {
  // CHECK: nn.layer_norm_grad
  %dx, %dscale, %dbias = nn.layer_norm_grad %x, %dy scale %scale epsilon = 1.000000e-05
      : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>)
        -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// CHECK-LABEL: func.func @rms_norm
func.func @rms_norm(%x: tensor<4x8xf32>, %scale: tensor<8xf32>) {
  // CHECK: nn.rms_norm
  %y = nn.rms_norm %x scale %scale epsilon = 1.000000e-05
      : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @rms_norm_grad
func.func @rms_norm_grad(%x: tensor<4x8xf32>, %dy: tensor<4x8xf32>, %scale: tensor<8xf32>) {
  // CHECK: nn.rms_norm_grad
  %dx, %dscale = nn.rms_norm_grad %x, %dy scale %scale epsilon = 1.000000e-05
      : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>)
        -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// CHECK-LABEL: func.func @conv
func.func @conv(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // CHECK: nn.conv
  %y = nn.conv %x, %w strides = [1, 1] pads = [1, 1] - [1, 1] dilations = [1, 1] groups = 1
      : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<2x4x8x8xf32>
  return
}

// CHECK-LABEL: func.func @conv_input_grad
func.func @conv_input_grad(%dy: tensor<2x4x8x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // CHECK: nn.conv_input_grad
  %dx = nn.conv_input_grad %dy, %w strides = [1, 1] pads = [1, 1] - [1, 1]
      dilations = [1, 1] groups = 1
      : tensor<2x4x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<2x3x8x8xf32>
  return
}

// CHECK-LABEL: func.func @conv_filter_grad
func.func @conv_filter_grad(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x4x8x8xf32>) {
  // CHECK: nn.conv_filter_grad
  %dw = nn.conv_filter_grad %x, %dy strides = [1, 1] pads = [1, 1] - [1, 1]
      dilations = [1, 1] groups = 1
      : tensor<2x3x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<4x3x3x3xf32>
  return
}

// CHECK-LABEL: func.func @max_pool
func.func @max_pool(%x: tensor<2x3x8x8xf32>) {
  // CHECK: nn.max_pool
  %y = nn.max_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0] - [0, 0]
      dilations = [1, 1] : tensor<2x3x8x8xf32> -> tensor<2x3x4x4xf32>
  return
}

// CHECK-LABEL: func.func @max_pool_grad
func.func @max_pool_grad(%x: tensor<2x3x8x8xf32>, %dy: tensor<2x3x4x4xf32>) {
  // CHECK: nn.max_pool_grad
  %dx = nn.max_pool_grad %x, %dy kernel = [2, 2] strides = [2, 2]
      pads = [0, 0] - [0, 0] dilations = [1, 1]
      : tensor<2x3x8x8xf32>, tensor<2x3x4x4xf32> -> tensor<2x3x8x8xf32>
  return
}

// CHECK-LABEL: func.func @avg_pool
func.func @avg_pool(%x: tensor<2x3x8x8xf32>) {
  // CHECK: nn.avg_pool
  %y = nn.avg_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0] - [0, 0]
      dilations = [1, 1] : tensor<2x3x8x8xf32> -> tensor<2x3x4x4xf32>
  return
}

// CHECK-LABEL: func.func @avg_pool_grad
func.func @avg_pool_grad(%dy: tensor<2x3x4x4xf32>) {
  // CHECK: nn.avg_pool_grad
  %dx = nn.avg_pool_grad %dy kernel = [2, 2] strides = [2, 2] pads = [0, 0] - [0, 0]
      dilations = [1, 1] : tensor<2x3x4x4xf32> -> tensor<2x3x8x8xf32>
  return
}

// CHECK-LABEL: func.func @gather
func.func @gather(%table: tensor<10x8xf32>, %indices: tensor<2x4xi64>) {
  // CHECK: nn.gather
  %y = nn.gather %table, %indices
      : tensor<10x8xf32>, tensor<2x4xi64> -> tensor<2x4x8xf32>
  return
}

// CHECK-LABEL: func.func @scatter_add
func.func @scatter_add(%indices: tensor<2x4xi64>, %updates: tensor<2x4x8xf32>) {
  // CHECK: nn.scatter_add
  %t = nn.scatter_add %indices, %updates
      : tensor<2x4xi64>, tensor<2x4x8xf32> -> tensor<10x8xf32>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x4x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>) {
  // CHECK: nn.attention
  %out, %lse = nn.attention %q, %k, %v causal scale = 5.000000e-01
      : (tensor<2x4x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>)
        -> (tensor<2x4x6x4xf32>, tensor<2x4x6xf32>)
  return
}

// CHECK-LABEL: func.func @attention_grad
func.func @attention_grad(%q: tensor<2x4x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %out: tensor<2x4x6x4xf32>, %lse: tensor<2x4x6xf32>, %dout: tensor<2x4x6x4xf32>) {
  // CHECK: nn.attention_grad
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %out, %lse, %dout causal
      scale = 5.000000e-01
      : (tensor<2x4x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>,
         tensor<2x4x6x4xf32>, tensor<2x4x6xf32>, tensor<2x4x6x4xf32>)
        -> (tensor<2x4x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>)
  return
}

// CHECK-LABEL: func.func @rope
func.func @rope(%x: tensor<2x4x6x8xf32>, %cos: tensor<6x4xf32>, %sin: tensor<6x4xf32>) {
  // CHECK: nn.rope
  %y = nn.rope %x, %cos, %sin
      : tensor<2x4x6x8xf32>, tensor<6x4xf32>, tensor<6x4xf32> -> tensor<2x4x6x8xf32>
  return
}

// CHECK-LABEL: func.func @cross_entropy
func.func @cross_entropy(%logits: tensor<4x6x10xf32>, %labels: tensor<4x6xi64>) {
  // CHECK: nn.cross_entropy
  %loss, %lse = nn.cross_entropy %logits, %labels ignore_index = -100
      : tensor<4x6x10xf32>, tensor<4x6xi64> -> tensor<4x6xf32>, tensor<4x6xf32>
  return
}

// CHECK-LABEL: func.func @cross_entropy_grad
func.func @cross_entropy_grad(%logits: tensor<4x6x10xf32>, %labels: tensor<4x6xi64>, %lse: tensor<4x6xf32>, %dloss: tensor<4x6xf32>) {
  // CHECK: nn.cross_entropy_grad
  %dlogits = nn.cross_entropy_grad %logits, %labels, %lse, %dloss ignore_index = -100
      : (tensor<4x6x10xf32>, tensor<4x6xi64>, tensor<4x6xf32>, tensor<4x6xf32>)
        -> tensor<4x6x10xf32>
  return
}
