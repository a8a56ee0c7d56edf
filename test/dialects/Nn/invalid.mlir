// RUN: espalier-opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// Values from nothing
//===----------------------------------------------------------------------===//

func.func @constant_c1() {
  // expected-error @+1 {{expects a value of the result's shape and type, but got 'tensor<4xf32>'}}
  %c = nn.constant dense<1.0> : tensor<4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @iota_c1() {
  // expected-error @+1 {{expects a dimension of the result, but got 2}}
  %i = nn.iota dim = 2 : tensor<4x8xi64>
  return
}

// -----

func.func @random_uniform_c1(%rng: tensor<3xi64>) {
  // expected-error @+1 {{expects a logical shape of rank 2, but got 1 sizes}}
  %u = nn.random_uniform %rng stream = "d" logical_shape = [4] : tensor<3xi64> -> tensor<4x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

func.func @map_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects results of one shape, but got 'tensor<1xf32>' beside 'tensor<4xf32>'}}
  %y:2 = nn.map %x : (tensor<4xf32>) -> (tensor<4xf32>, tensor<1xf32>) {
  ^bb0(%a: f32):
    nn.yield %a, %a : f32, f32
  }
  return
}

// -----

func.func @map_c1_nothing(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a result}}
  nn.map %x : (tensor<4xf32>) -> () {
  ^bb0(%a: f32):
    nn.yield
  }
  return
}

// -----

func.func @map_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects operands that broadcast to the results, but got 'tensor<4xf32>' for 'tensor<4x3xf32>'}}
  %y = nn.map %x : (tensor<4xf32>) -> tensor<4x3xf32> {
  ^bb0(%a: f32):
    nn.yield %a : f32
  }
  return
}

// -----

func.func @map_c3(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a body with an argument for each operand, of its element type}}
  %y = nn.map %x : (tensor<4xf32>) -> tensor<4xf64> {
  ^bb0(%a: f64):
    nn.yield %a : f64
  }
  return
}

// -----

func.func @map_c4(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a body that yields a value for each result, of its element type}}
  %y = nn.map %x : (tensor<4xf32>) -> tensor<4xf64> {
  ^bb0(%a: f32):
    nn.yield %a : f32
  }
  return
}

// -----

func.func @map_c5(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects a body of arith and math ops, but got builtin.unrealized_conversion_cast}}
  %y = nn.map %x : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    %b = builtin.unrealized_conversion_cast %a : f32 to f32
    nn.yield %b : f32
  }
  return
}

// -----

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

func.func @reshape_c1(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{expects as many elements, of one type, but got 'tensor<4x6xf32>' and 'tensor<5x5xf32>'}}
  %y = nn.reshape %x : tensor<4x6xf32> -> tensor<5x5xf32>
  return
}

// -----

func.func @transpose_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a permutation of the dimensions, but got [1, 1]}}
  %y = nn.transpose %x [1, 1] : tensor<4x8xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @transpose_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the permuted shape, [8, 4], but got 'tensor<4x8xf32>'}}
  %y = nn.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects an offset and a positive stride for each dimension}}
  %y = nn.slice %x offsets = [0, 2] strides = [1, 0] : tensor<4x8xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @slice_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a part inside the input, but dimension 1 of size 8 is read up to 8}}
  %y = nn.slice %x offsets = [0, 2] strides = [1, 3] : tensor<4x8xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @concat_c1(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{expects a dimension of the inputs, but got 2}}
  %y = nn.concat %a, %a dim = 2 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @concat_c2(%a: tensor<4x3xf32>, %b: tensor<5x3xf32>) {
  // expected-error @+1 {{expects inputs that differ only in dimension 1, but got 'tensor<5x3xf32>'}}
  %y = nn.concat %a, %b dim = 1 : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @concat_c2_sum(%a: tensor<4x3xf32>) {
  // expected-error @+1 {{expects the sum of the sizes, [4, 6], but got 'tensor<4x7xf32>'}}
  %y = nn.concat %a, %a dim = 1 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x7xf32>
  return
}

// -----

func.func @pad_c1(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{expects a margin, not negative, for each dimension}}
  %y = nn.pad %x low = [0, -1] high = [0, 2] value = 0.0 : f32 : tensor<4x5xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @pad_c2(%x: tensor<4x5xf32>) {
  // expected-error @+1 {{expects the margins added, [4, 8], but got 'tensor<4x7xf32>'}}
  %y = nn.pad %x low = [0, 1] high = [0, 2] value = 0.0 : f32 : tensor<4x5xf32> -> tensor<4x7xf32>
  return
}

// -----

func.func @broadcast_c1(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{expects an input that broadcasts to the result, but got 'tensor<4x2xf32>' for 'tensor<4x8xf32>'}}
  %y = nn.broadcast %x : tensor<4x2xf32> -> tensor<4x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Reductions and products
//===----------------------------------------------------------------------===//

func.func @reduce_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects ascending dimensions of the input, but got [1, 0]}}
  %y = nn.reduce sum %x dims = [1, 0] : tensor<4x8xf32> -> tensor<1x1xf32>
  return
}

// -----

func.func @reduce_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects size 1 where reduced, [4, 1], but got 'tensor<4xf32>'}}
  %y = nn.reduce sum %x dims = [1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @contract_c1(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error @+1 {{expects an equation with a letter for each dimension, but got "mk,kk->mn"}}
  %c = nn.contract "mk,kk->mn" %a, %b : tensor<4x8xf32>, tensor<8x3xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @contract_c2(%a: tensor<4x8xf32>, %b: tensor<7x3xf32>) {
  // expected-error @+1 {{expects one size for 'k', but got 8 and 7}}
  %c = nn.contract "mk,kn->mn" %a, %b : tensor<4x8xf32>, tensor<7x3xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @contract_c3(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) {
  // expected-error @+1 {{expects a letter of one operand to be in the result, and one of the result in an operand, but got 'm' in "mk,kn->n"}}
  %c = nn.contract "mk,kn->n" %a, %b : tensor<4x8xf32>, tensor<8x3xf32> -> tensor<3xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Softmax and norms
//===----------------------------------------------------------------------===//

func.func @softmax_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the input's shape, [4, 8], but got 'tensor<8x4xf32>'}}
  %y = nn.softmax %x : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @softmax_c1_rank(%x: tensor<f32>) {
  // expected-error @+1 {{expects an input of at least one dimension}}
  %y = nn.softmax %x : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @softmax_grad_c1(%y: tensor<4x8xf32>, %dy: tensor<4xf32>) {
  // expected-error @+1 {{expects y's shape, [4, 8], but got 'tensor<4xf32>'}}
  %dx = nn.softmax_grad %y, %dy : tensor<4x8xf32>, tensor<4xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @layer_norm_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the input's shape, [4, 8], but got 'tensor<8xf32>'}}
  %y = nn.layer_norm %x epsilon = 1.0e-5 : (tensor<4x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @layer_norm_c2(%x: tensor<4x8xf32>, %scale: tensor<4xf32>) {
  // expected-error @+1 {{expects the size of the last dimension, [8], but got 'tensor<4xf32>'}}
  %y = nn.layer_norm %x scale %scale epsilon = 1.0e-5
      : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @layer_norm_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects epsilon not to be negative, but got -1}}
  %y = nn.layer_norm %x epsilon = -1.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @layer_norm_grad_c1(%x: tensor<4x8xf32>, %dy: tensor<4xf32>) {
  // expected-error @+1 {{expects the input's shape, [4, 8], but got 'tensor<4xf32>'}}
  %dx, %ds, %db = nn.layer_norm_grad %x, %dy epsilon = 1.0e-5
      : (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @layer_norm_grad_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the size of the last dimension, [8], but got 'tensor<4xf32>'}}
  %dx, %ds, %db = nn.layer_norm_grad %x, %x epsilon = 1.0e-5
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_c1(%x: tensor<f32>) {
  // expected-error @+1 {{expects an input of at least one dimension, but got 'tensor<f32>'}}
  %y = nn.rms_norm %x epsilon = 1.0e-5 : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<4x8xf32>, %scale: tensor<1x8xf32>) {
  // expected-error @+1 {{expects the size of the last dimension, [8], but got 'tensor<1x8xf32>'}}
  %y = nn.rms_norm %x scale %scale epsilon = 1.0e-5
      : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @rms_norm_c3(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects epsilon not to be negative, but got -1}}
  %y = nn.rms_norm %x epsilon = -1.0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @rms_norm_grad_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the input's shape, [4, 8], but got 'tensor<8xf32>'}}
  %dx, %ds = nn.rms_norm_grad %x, %x epsilon = 1.0e-5
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @rms_norm_grad_c2(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the size of the last dimension, [8], but got 'tensor<4xf32>'}}
  %dx, %ds = nn.rms_norm_grad %x, %x epsilon = 1.0e-5
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return
}

// -----

//===----------------------------------------------------------------------===//
// Convolution and pooling
//===----------------------------------------------------------------------===//

func.func @conv_c1(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{expects a window with an entry for each of one to three spatial dimensions; strides and dilations positive, pads not negative}}
  %y = nn.conv %x, %w strides = [0] pads = [0] - [0] dilations = [1] groups = 1
      : tensor<2x3x8xf32>, tensor<4x3x3xf32> -> tensor<2x4x6xf32>
  return
}

// -----

func.func @conv_c1_rank(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3x3xf32>) {
  // expected-error @+1 {{expects tensors of one rank}}
  %y = nn.conv %x, %w strides = [1] pads = [0] - [0] dilations = [1] groups = 1
      : tensor<2x3x8xf32>, tensor<4x3x3x3xf32> -> tensor<2x4x6xf32>
  return
}

// -----

func.func @conv_c2(%x: tensor<2x3x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error @+1 {{expects 2 channels in each of 2 groups and features that they divide, but got 3 channels and 4 features}}
  %y = nn.conv %x, %w strides = [1] pads = [0] - [0] dilations = [1] groups = 2
      : tensor<2x3x8xf32>, tensor<4x2x3xf32> -> tensor<2x4x6xf32>
  return
}

// -----

func.func @conv_c3(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{expects the convolution's shape, [2, 4, 6], but got 'tensor<2x4x8xf32>'}}
  %y = nn.conv %x, %w strides = [1] pads = [0] - [0] dilations = [1] groups = 1
      : tensor<2x3x8xf32>, tensor<4x3x3xf32> -> tensor<2x4x8xf32>
  return
}

// -----

func.func @conv_input_grad_c1(%dy: tensor<2x4x8xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error @+1 {{expects the convolution's shape, [2, 4, 6], but got 'tensor<2x4x8xf32>'}}
  %dx = nn.conv_input_grad %dy, %w strides = [1] pads = [0] - [0] dilations = [1] groups = 1
      : tensor<2x4x8xf32>, tensor<4x3x3xf32> -> tensor<2x3x8xf32>
  return
}

// -----

func.func @conv_filter_grad_c1(%x: tensor<2x3x8xf32>, %dy: tensor<2x4x8xf32>) {
  // expected-error @+1 {{expects the convolution's shape, [2, 4, 6], but got 'tensor<2x4x8xf32>'}}
  %dw = nn.conv_filter_grad %x, %dy strides = [1] pads = [0] - [0] dilations = [1] groups = 1
      : tensor<2x3x8xf32>, tensor<2x4x8xf32> -> tensor<4x3x3xf32>
  return
}

// -----

func.func @max_pool_c1(%x: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expects pads smaller than the kernel's extent 2}}
  %y = nn.max_pool %x kernel = [2] strides = [2] pads = [2] - [0] dilations = [1]
      : tensor<2x3x8xf32> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @max_pool_c2(%x: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expects the pooled shape, [2, 3, 4], but got 'tensor<2x3x5xf32>'}}
  %y = nn.max_pool %x kernel = [2] strides = [2] pads = [0] - [0] dilations = [1]
      : tensor<2x3x8xf32> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @max_pool_grad_c1(%x: tensor<2x3x8xf32>, %dy: tensor<2x3x4xf32>) {
  // expected-error @+1 {{expects the input's shape, [2, 3, 8], but got 'tensor<2x3x4xf32>'}}
  %dx = nn.max_pool_grad %x, %dy kernel = [2] strides = [2] pads = [0] - [0] dilations = [1]
      : tensor<2x3x8xf32>, tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @avg_pool_c1(%x: tensor<2x3x8xf32>) {
  // expected-error @+1 {{expects a window with an entry for each of one to three spatial dimensions}}
  %y = nn.avg_pool %x kernel = [2] strides = [2, 2] pads = [0] - [0] dilations = [1]
      : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @avg_pool_grad_c1(%dy: tensor<2x3x5xf32>) {
  // expected-error @+1 {{expects the pooled shape, [2, 3, 4], but got 'tensor<2x3x5xf32>'}}
  %dx = nn.avg_pool_grad %dy kernel = [2] strides = [2] pads = [0] - [0] dilations = [1]
      : tensor<2x3x5xf32> -> tensor<2x3x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

func.func @gather_c1(%table: tensor<10x8xf32>, %indices: tensor<2x4xi64>) {
  // expected-error @+1 {{expects the indices' dimensions, then the table's, [2, 4, 8], but got 'tensor<8x8xf32>'}}
  %y = nn.gather %table, %indices : tensor<10x8xf32>, tensor<2x4xi64> -> tensor<8x8xf32>
  return
}

// -----

func.func @gather_c1_rank(%table: tensor<f32>, %indices: tensor<2xi64>) {
  // expected-error @+1 {{expects a table of at least one dimension}}
  %y = nn.gather %table, %indices : tensor<f32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @scatter_add_c1(%indices: tensor<2x4xi64>, %updates: tensor<2x4x7xf32>) {
  // expected-error @+1 {{expects the indices' dimensions, then the table's, [2, 4, 8], but got 'tensor<2x4x7xf32>'}}
  %t = nn.scatter_add %indices, %updates : tensor<2x4xi64>, tensor<2x4x7xf32> -> tensor<10x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

func.func @attention_c1(%q: tensor<2x4x6x4xf32>, %k: tensor<2x3x6x4xf32>) {
  // expected-error @+1 {{expects keys and values of one length for a divisor of the heads, but got}}
  %out, %lse = nn.attention %q, %k, %k scale = 0.5
      : (tensor<2x4x6x4xf32>, tensor<2x3x6x4xf32>, tensor<2x3x6x4xf32>)
        -> (tensor<2x4x6x4xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @attention_c1_lse(%q: tensor<2x4x6x4xf32>) {
  // expected-error @+1 {{expects one lse for each query, [2, 4, 6], but got 'tensor<2x4xf32>'}}
  %out, %lse = nn.attention %q, %q, %q scale = 0.5
      : (tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>)
        -> (tensor<2x4x6x4xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<2x4x6x4xf32>, %mask: tensor<6x6xi1>) {
  // expected-error @+1 {{expects a mask that broadcasts to [batch, heads, queries, keys], but got 'tensor<6x6xi1>'}}
  %out, %lse = nn.attention %q, %q, %q mask %mask scale = 0.5
      : (tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>, tensor<6x6xi1>)
        -> (tensor<2x4x6x4xf32>, tensor<2x4x6xf32>)
  return
}

// -----

func.func @attention_grad_c1(%q: tensor<2x4x6x4xf32>, %lse: tensor<2x4x6xf32>, %dout: tensor<2x4x6x5xf32>) {
  // expected-error @+1 {{expects a gradient of its tensor's shape, [2, 4, 6, 4], but got 'tensor<2x4x6x5xf32>'}}
  %dq, %dk, %dv = nn.attention_grad %q, %q, %q, %q, %lse, %dout scale = 0.5
      : (tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>,
         tensor<2x4x6x4xf32>, tensor<2x4x6xf32>, tensor<2x4x6x5xf32>)
        -> (tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>)
  return
}

// -----

func.func @rope_c1(%x: tensor<2x6x7xf32>, %cos: tensor<6x3xf32>) {
  // expected-error @+1 {{expects an even last dimension, but got 'tensor<2x6x7xf32>'}}
  %y = nn.rope %x, %cos, %cos : tensor<2x6x7xf32>, tensor<6x3xf32>, tensor<6x3xf32> -> tensor<2x6x7xf32>
  return
}

// -----

func.func @rope_c2(%x: tensor<2x6x8xf32>, %cos: tensor<6x4xf32>, %sin: tensor<4xf32>) {
  // expected-error @+1 {{expects cosines and sines that broadcast to [2, 6, 4], but got 'tensor<6x4xf32>' and 'tensor<4xf32>'}}
  %y = nn.rope %x, %cos, %sin : tensor<2x6x8xf32>, tensor<6x4xf32>, tensor<4xf32> -> tensor<2x6x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

func.func @cross_entropy_c1(%logits: tensor<4x6x10xf32>, %labels: tensor<4xi64>) {
  // expected-error @+1 {{expects one for each row of logits, [4, 6], but got 'tensor<4xi64>'}}
  %loss, %lse = nn.cross_entropy %logits, %labels ignore_index = -100
      : tensor<4x6x10xf32>, tensor<4xi64> -> tensor<4x6xf32>, tensor<4x6xf32>
  return
}

// -----

func.func @cross_entropy_grad_c1(%logits: tensor<4x10xf32>, %labels: tensor<4xi64>, %lse: tensor<4xf32>) {
  // expected-error @+1 {{expects the logits' shape, [4, 10], but got 'tensor<4x9xf32>'}}
  %dlogits = nn.cross_entropy_grad %logits, %labels, %lse, %lse ignore_index = -100
      : (tensor<4x10xf32>, tensor<4xi64>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x9xf32>
  return
}
