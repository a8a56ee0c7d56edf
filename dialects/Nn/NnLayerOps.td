//===- NnLayerOps.td - Layers with a derivative or kernel of their own ----===//
//
// Included by NnOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_DIALECTS_NN_NNLAYEROPS_TD
#define ESPALIER_DIALECTS_NN_NNLAYEROPS_TD

include "dialects/Nn/NnBase.td"

//===----------------------------------------------------------------------===//
// Softmax and norms, all along the last dimension
//===----------------------------------------------------------------------===//

def Nn_SoftmaxOp : Nn_Op<"softmax"> {
  let summary = "Exponentials of a row divided by their sum";
  let description = [{
    Along the last dimension. With `zero_masked_rows`, a row that holds nothing but
    minus infinity gives zeros, with gradient zero, where it else is not a number.

    Constraints:

    - (C1) Input and result have the same shape, of at least one dimension.

    Example:

    ```mlir
    %y = nn.softmax %x : tensor<4x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Nn_FloatTensor:$input, UnitAttr:$zero_masked_rows);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    (`zero_masked_rows` $zero_masked_rows^)? $input attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_SoftmaxGradOp : Nn_Op<"softmax_grad"> {
  let summary = "Gradient of a softmax's input";
  let description = [{
    `result = y * (dy - sum(y * dy))` along the last dimension.

    Constraints:

    - (C1) Operands and result have the same shape, of at least one dimension.

    Example:

    ```mlir
    %dx = nn.softmax_grad %y, %dy : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Nn_FloatTensor:$y, Nn_FloatTensor:$dy);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $y `,` $dy attr-dict `:` type($y) `,` type($dy) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_LayerNormOp : Nn_Op<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "Rows with mean zero and variance one, scaled and shifted";
  let description = [{
    `result[..., j] = scale[j] * (x[..., j] - mean) / sqrt(variance + epsilon) + bias[j]`
    with the mean and the biased variance of the row.

    Constraints:

    - (C1) `input` has at least one dimension and the result its shape.
    - (C2) `scale` and `bias` have one dimension, of the size of the last of `input`.
    - (C3) `epsilon` is not negative.

    Example:

    ```mlir
    %y = nn.layer_norm %x scale %scale bias %bias epsilon = 1.000000e-05
        : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$input, Optional<Nn_FloatTensor>:$scale,
    Optional<Nn_FloatTensor>:$bias, F64Attr:$epsilon);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`scale` $scale^)? (`bias` $bias^)? `epsilon` `=` $epsilon attr-dict
    `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
}

def Nn_LayerNormGradOp : Nn_Op<"layer_norm_grad"> {
  let summary = "Gradients of a layer norm's input, scale and bias";
  let description = [{
    The row's statistics are computed again from `input`.

    Constraints:

    - (C1) `dy` and `dx` have the shape of `input`.
    - (C2) `scale`, `dscale` and `dbias` have one dimension, of the size of the last of
      `input`.

    Example:

    ```mlir
    %dx, %dscale, %dbias = nn.layer_norm_grad %x, %dy scale %scale epsilon = 1.000000e-05
        : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>)
          -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$input, Nn_FloatTensor:$dy, Optional<Nn_FloatTensor>:$scale,
    F64Attr:$epsilon);
  let results = (outs
    Nn_FloatTensor:$dx, Nn_FloatTensor:$dscale, Nn_FloatTensor:$dbias);
  let assemblyFormat = [{
    $input `,` $dy (`scale` $scale^)? `epsilon` `=` $epsilon attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Nn_RmsNormOp : Nn_Op<"rms_norm"> {
  let summary = "Rows divided by their root mean square, scaled";
  let description = [{
    `result[..., j] = scale[j] * x[..., j] / sqrt(mean(x^2) + epsilon)`.

    Constraints:

    - (C1) `input` has at least one dimension and the result its shape.
    - (C2) `scale` has one dimension, of the size of the last of `input`.
    - (C3) `epsilon` is not negative.

    Example:

    ```mlir
    %y = nn.rms_norm %x scale %scale epsilon = 1.000000e-05
        : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$input, Optional<Nn_FloatTensor>:$scale, F64Attr:$epsilon);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $input (`scale` $scale^)? `epsilon` `=` $epsilon attr-dict
    `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
}

def Nn_RmsNormGradOp : Nn_Op<"rms_norm_grad"> {
  let summary = "Gradients of an RMS norm's input and scale";
  let description = [{
    The row's statistics are computed again from `input`.

    Constraints:

    - (C1) `dy` and `dx` have the shape of `input`.
    - (C2) `scale` and `dscale` have one dimension, of the size of the last of `input`.

    Example:

    ```mlir
    %dx, %dscale = nn.rms_norm_grad %x, %dy scale %scale epsilon = 1.000000e-05
        : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>)
          -> (tensor<4x8xf32>, tensor<8xf32>)
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$input, Nn_FloatTensor:$dy, Optional<Nn_FloatTensor>:$scale,
    F64Attr:$epsilon);
  let results = (outs Nn_FloatTensor:$dx, Nn_FloatTensor:$dscale);
  let assemblyFormat = [{
    $input `,` $dy (`scale` $scale^)? `epsilon` `=` $epsilon attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Convolution and pooling: [batch, channels, spatial...]
//===----------------------------------------------------------------------===//

defvar Nn_window = (ins
  DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads_low,
  DenseI64ArrayAttr:$pads_high, DenseI64ArrayAttr:$dilations);

def Nn_ConvOp : Nn_Op<"conv"> {
  let summary = "Convolution";
  let description = [{
    Of an input [batch, channels, spatial...] with a filter [features, channels /
    groups, spatial...].

    Constraints:

    - (C1) Strides, pads and dilations have an entry for each spatial dimension, of one
      to three; strides and dilations are positive, pads not negative.
    - (C2) Channels are `groups` times the filter's, and features a multiple of `groups`.
    - (C3) The result is [batch, features, spatial...] with
      `(size + pads - dilation * (filter - 1) - 1) / stride + 1` elements.

    Example:

    ```mlir
    %y = nn.conv %x, %w strides = [1, 1] pads = [1, 1] - [1, 1] dilations = [1, 1] groups = 1
        : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<2x4x8x8xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$input, Nn_FloatTensor:$filter),
                       Nn_window, (ins I64Attr:$groups));
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $filter `strides` `=` $strides `pads` `=` $pads_low `-` $pads_high
    `dilations` `=` $dilations `groups` `=` $groups attr-dict
    `:` type($input) `,` type($filter) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_ConvInputGradOp : Nn_Op<"conv_input_grad"> {
  let summary = "Gradient of a convolution's input";
  let description = [{
    Also a transposed convolution.

    Constraints:

    - (C1) As `nn.conv` of the result and `filter`, whose result is `dy`.

    Example:

    ```mlir
    %dx = nn.conv_input_grad %dy, %w strides = [1, 1] pads = [1, 1] - [1, 1]
        dilations = [1, 1] groups = 1
        : tensor<2x4x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<2x3x8x8xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$dy, Nn_FloatTensor:$filter),
                       Nn_window, (ins I64Attr:$groups));
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $dy `,` $filter `strides` `=` $strides `pads` `=` $pads_low `-` $pads_high
    `dilations` `=` $dilations `groups` `=` $groups attr-dict
    `:` type($dy) `,` type($filter) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_ConvFilterGradOp : Nn_Op<"conv_filter_grad"> {
  let summary = "Gradient of a convolution's filter";
  let description = [{
    Constraints:

    - (C1) As `nn.conv` of `input` and the result, whose result is `dy`.

    Example:

    ```mlir
    %dw = nn.conv_filter_grad %x, %dy strides = [1, 1] pads = [1, 1] - [1, 1]
        dilations = [1, 1] groups = 1
        : tensor<2x3x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<4x3x3x3xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$input, Nn_FloatTensor:$dy),
                       Nn_window, (ins I64Attr:$groups));
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $dy `strides` `=` $strides `pads` `=` $pads_low `-` $pads_high
    `dilations` `=` $dilations `groups` `=` $groups attr-dict
    `:` type($input) `,` type($dy) `->` type($result)
  }];
  let hasVerifier = 1;
}

class Nn_PoolOp<string mnemonic, dag operands, dag more = (ins)>
    : Nn_Op<mnemonic> {
  let arguments = !con(operands, (ins DenseI64ArrayAttr:$kernel), Nn_window, more);
  let results = (outs Nn_FloatTensor:$result);
  let hasVerifier = 1;
}

def Nn_MaxPoolOp : Nn_PoolOp<"max_pool", (ins Nn_FloatTensor:$input)> {
  let summary = "Largest element of each window";
  let description = [{
    Padding is never the largest.

    Constraints:

    - (C1) Kernel, strides, pads and dilations have an entry for each spatial dimension;
      pads are smaller than the kernel's extent.
    - (C2) Batch and channels are the input's, spatial sizes as those of `nn.conv`.

    Example:

    ```mlir
    %y = nn.max_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0] - [0, 0]
        dilations = [1, 1] : tensor<2x3x8x8xf32> -> tensor<2x3x4x4xf32>
    ```
  }];
  let assemblyFormat = [{
    $input `kernel` `=` $kernel `strides` `=` $strides `pads` `=` $pads_low `-` $pads_high
    `dilations` `=` $dilations attr-dict `:` type($input) `->` type($result)
  }];
}

def Nn_MaxPoolGradOp
    : Nn_PoolOp<"max_pool_grad", (ins Nn_FloatTensor:$input, Nn_FloatTensor:$dy)> {
  let summary = "Gradient of a maximum pooling's input";
  let description = [{
    The first of a window's largest elements, row-major, gets its gradient.

    Constraints:

    - (C1) As `nn.max_pool` of `input`, whose result is `dy`; the result has the shape
      of `input`.

    Example:

    ```mlir
    %dx = nn.max_pool_grad %x, %dy kernel = [2, 2] strides = [2, 2]
        pads = [0, 0] - [0, 0] dilations = [1, 1]
        : tensor<2x3x8x8xf32>, tensor<2x3x4x4xf32> -> tensor<2x3x8x8xf32>
    ```
  }];
  let assemblyFormat = [{
    $input `,` $dy `kernel` `=` $kernel `strides` `=` $strides
    `pads` `=` $pads_low `-` $pads_high `dilations` `=` $dilations attr-dict
    `:` type($input) `,` type($dy) `->` type($result)
  }];
}

def Nn_AvgPoolOp : Nn_PoolOp<"avg_pool", (ins Nn_FloatTensor:$input),
                             (ins UnitAttr:$count_pads)> {
  let summary = "Mean of each window";
  let description = [{
    Without `count_pads` padding counts neither in the sum nor in the number.

    Constraints:

    - (C1) As for `nn.max_pool`.

    Example:

    ```mlir
    %y = nn.avg_pool %x kernel = [2, 2] strides = [2, 2] pads = [0, 0] - [0, 0]
        dilations = [1, 1] : tensor<2x3x8x8xf32> -> tensor<2x3x4x4xf32>
    ```
  }];
  let assemblyFormat = [{
    $input `kernel` `=` $kernel `strides` `=` $strides `pads` `=` $pads_low `-` $pads_high
    `dilations` `=` $dilations (`count_pads` $count_pads^)? attr-dict
    `:` type($input) `->` type($result)
  }];
}

def Nn_AvgPoolGradOp : Nn_PoolOp<"avg_pool_grad", (ins Nn_FloatTensor:$dy),
                                 (ins UnitAttr:$count_pads)> {
  let summary = "Gradient of a mean pooling's input";
  let description = [{
    Constraints:

    - (C1) As `nn.avg_pool` of the result, whose result is `dy`.

    Example:

    ```mlir
    %dx = nn.avg_pool_grad %dy kernel = [2, 2] strides = [2, 2] pads = [0, 0] - [0, 0]
        dilations = [1, 1] : tensor<2x3x4x4xf32> -> tensor<2x3x8x8xf32>
    ```
  }];
  let assemblyFormat = [{
    $dy `kernel` `=` $kernel `strides` `=` $strides `pads` `=` $pads_low `-` $pads_high
    `dilations` `=` $dilations (`count_pads` $count_pads^)? attr-dict
    `:` type($dy) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

def Nn_GatherOp : Nn_Op<"gather"> {
  let summary = "Rows of a table";
  let description = [{
    `result[i..., :] = table[indices[i...], :]`. Indices lie in the table: whoever makes
    them sees to it.

    Constraints:

    - (C1) `table` has at least one dimension, and the result the indices' dimensions,
      then those of the table but the first.

    Example:

    ```mlir
    %y = nn.gather %table, %indices
        : tensor<10x8xf32>, tensor<2x4xi64> -> tensor<2x4x8xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$table, Nn_IndexTensor:$indices);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    $table `,` $indices attr-dict `:` type($table) `,` type($indices) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_ScatterAddOp : Nn_Op<"scatter_add"> {
  let summary = "Rows summed into a table";
  let description = [{
    Row r of the result is the sum of the rows of `updates` whose index is r, taken in
    order.

    Constraints:

    - (C1) As `nn.gather` of the result and `indices`, whose result is `updates`.

    Example:

    ```mlir
    %t = nn.scatter_add %indices, %updates
        : tensor<2x4xi64>, tensor<2x4x8xf32> -> tensor<10x8xf32>
    ```
  }];
  let arguments = (ins Nn_IndexTensor:$indices, Nn_FloatTensor:$updates);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $indices `,` $updates attr-dict
    `:` type($indices) `,` type($updates) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Nn_AttentionOp : Nn_Op<"attention"> {
  let summary = "Scaled dot-product attention";
  let description = [{
    Of queries [batch, heads, S, D] to keys [batch, groups, T, D] and values
    [batch, groups, T, E], heads being a multiple of groups: head h looks at group
    `h / (heads / groups)`.

    `out = softmax(scale * q k^T + mask) v`. A boolean mask says who may be looked at,
    a floating-point one is added; it broadcasts to [batch, heads, S, T]. With `causal`,
    query s sees keys `t <= s + T - S`. A query that sees nothing (all scores minus
    infinity) gives zeros and has gradient zero. `lse` is the logarithm of the sum of
    exponentials of the scores, which the gradient needs.

    Constraints:

    - (C1) Shapes are as above; `lse` is [batch, heads, S].
    - (C2) The mask has four dimensions and broadcasts.

    Example:

    ```mlir
    %out, %lse = nn.attention %q, %k, %v causal scale = 5.000000e-01
        : (tensor<2x4x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>)
          -> (tensor<2x4x6x4xf32>, tensor<2x4x6xf32>)
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$query, Nn_FloatTensor:$key, Nn_FloatTensor:$value,
    Optional<Nn_Tensor>:$mask, UnitAttr:$causal, F64Attr:$scale);
  let results = (outs Nn_FloatTensor:$out, Nn_FloatTensor:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? (`causal` $causal^)?
    `scale` `=` $scale attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Nn_AttentionGradOp : Nn_Op<"attention_grad"> {
  let summary = "Gradients of attention's queries, keys and values";
  let description = [{
    The scores are computed again. The mask gets no gradient.

    Constraints:

    - (C1) As `nn.attention` of the first operands, with results `out` and `lse`; `dout`
      has the shape of `out`, the results those of query, key and value.

    Example:

    ```mlir
    %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %out, %lse, %dout causal
        scale = 5.000000e-01
        : (tensor<2x4x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>,
           tensor<2x4x6x4xf32>, tensor<2x4x6xf32>, tensor<2x4x6x4xf32>)
          -> (tensor<2x4x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>)
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$query, Nn_FloatTensor:$key, Nn_FloatTensor:$value,
    Nn_FloatTensor:$out, Nn_FloatTensor:$lse, Nn_FloatTensor:$dout,
    Optional<Nn_Tensor>:$mask, UnitAttr:$causal, F64Attr:$scale);
  let results = (outs
    Nn_FloatTensor:$dquery, Nn_FloatTensor:$dkey, Nn_FloatTensor:$dvalue);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $out `,` $lse `,` $dout (`mask` $mask^)?
    (`causal` $causal^)? `scale` `=` $scale attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Nn_RopeOp : Nn_Op<"rope"> {
  let summary = "Rotary position embedding";
  let description = [{
    Rotates pairs of the last dimension D by the angles whose cosines and sines are
    given, of D/2 pairs: `y1 = x1 * cos - x2 * sin, y2 = x2 * cos + x1 * sin`. x1 and x2
    are the halves of the dimension or, `interleaved`, its even and odd elements. With
    `inverse` by the opposite angles, which is the derivative.

    Constraints:

    - (C1) The last dimension is even, and the result has the input's shape.
    - (C2) `cos` and `sin` have one shape, which broadcasts to the input's with D/2 last.

    Example:

    ```mlir
    %y = nn.rope %x, %cos, %sin
        : tensor<2x4x6x8xf32>, tensor<6x4xf32>, tensor<6x4xf32> -> tensor<2x4x6x8xf32>
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$input, Nn_FloatTensor:$cos, Nn_FloatTensor:$sin,
    UnitAttr:$interleaved, UnitAttr:$inverse);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $cos `,` $sin (`interleaved` $interleaved^)? (`inverse` $inverse^)?
    attr-dict `:` type($input) `,` type($cos) `,` type($sin) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def Nn_CrossEntropyOp : Nn_Op<"cross_entropy"> {
  let summary = "Cross-entropy of each row of logits";
  let description = [{
    `lse - logits[label]` for each row, 0 where the label is `ignore_index`; `lse` is the
    logarithm of the sum of exponentials of the row.

    Constraints:

    - (C1) The labels have the logits' shape without the last dimension, as the results.

    Example:

    ```mlir
    %loss, %lse = nn.cross_entropy %logits, %labels ignore_index = -100
        : tensor<4x6x10xf32>, tensor<4x6xi64> -> tensor<4x6xf32>, tensor<4x6xf32>
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$logits, Nn_IndexTensor:$labels, I64Attr:$ignore_index);
  let results = (outs Nn_FloatTensor:$loss, Nn_FloatTensor:$lse);
  let assemblyFormat = [{
    $logits `,` $labels `ignore_index` `=` $ignore_index attr-dict
    `:` type($logits) `,` type($labels) `->` type($loss) `,` type($lse)
  }];
  let hasVerifier = 1;
}

def Nn_CrossEntropyGradOp : Nn_Op<"cross_entropy_grad"> {
  let summary = "Gradient of the logits of a cross-entropy";
  let description = [{
    `(exp(logits - lse) - onehot(label)) * dloss`, zeros in rows whose label is
    `ignore_index`.

    Constraints:

    - (C1) Labels, `lse` and `dloss` have the logits' shape without the last dimension;
      the result has the logits' shape.

    Example:

    ```mlir
    %dlogits = nn.cross_entropy_grad %logits, %labels, %lse, %dloss ignore_index = -100
        : (tensor<4x6x10xf32>, tensor<4x6xi64>, tensor<4x6xf32>, tensor<4x6xf32>)
          -> tensor<4x6x10xf32>
    ```
  }];
  let arguments = (ins
    Nn_FloatTensor:$logits, Nn_IndexTensor:$labels, Nn_FloatTensor:$lse,
    Nn_FloatTensor:$dloss, I64Attr:$ignore_index);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $logits `,` $labels `,` $lse `,` $dloss `ignore_index` `=` $ignore_index attr-dict
    `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
}

#endif // ESPALIER_DIALECTS_NN_NNLAYEROPS_TD
