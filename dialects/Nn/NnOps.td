//===- NnOps.td - Elementwise, structural and reducing ops -*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_NN_NNOPS_TD
#define ESPALIER_DIALECTS_NN_NNOPS_TD

include "dialects/Nn/NnBase.td"
include "dialects/Nn/NnLayerOps.td"

//===----------------------------------------------------------------------===//
// Values from nothing
//===----------------------------------------------------------------------===//

def Nn_ConstantOp : Nn_Op<"constant", [ConstantLike]> {
  let summary = "A tensor known at compile time";
  let description = [{
    The result's type is written too, since it can carry a sharding.

    Constraints:

    - (C1) `value` has the shape and element type of the result.

    Example:

    ```mlir
    %c = nn.constant dense<1.000000e+00> : tensor<4xf32> -> tensor<4xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$value attr-dict `->` type($result)";
  let builders = [
    OpBuilder<(ins "::mlir::ElementsAttr":$value), [{
      build($_builder, $_state, value.getShapedType(), value);
    }]>
  ];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_IotaOp : Nn_Op<"iota"> {
  let summary = "Numbers 0, 1, ... along one dimension";
  let description = [{
    `result[..., i, ...] = i + offset`, with i the index along `dim`. `offset`, where
    given, is that of a rank's block.

    Constraints:

    - (C1) `dim` is a dimension of the result.

    Example:

    ```mlir
    %i = nn.iota dim = 1 : tensor<4x8xi64>
    ```
  }];
  let arguments = (ins I64Attr:$dim, Optional<RankedTensorOf<[I64]>>:$offset);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    `dim` `=` $dim (`offset` $offset^ `:` type($offset))? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_RandomUniformOp : Nn_Op<"random_uniform"> {
  let summary = "Counter-based random numbers in [0, 1)";
  let description = [{
    Philox4x32-10 with key (seed, hash of `stream`) and counter (logical element,
    step): equal for every layout. `rng` holds seed, step and microbatch. The logical
    element is counted row-major over `logical_shape`, all microbatches of a step one
    after another; `offsets`, where given, has for each dimension where a rank's block
    begins.

    Constraints:

    - (C1) `logical_shape` has the rank of the result.

    Example:

    ```mlir
    %u = nn.random_uniform %rng stream = "dropout_1" logical_shape = [4, 8]
        : tensor<3xi64> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins
    RankedTensorOf<[I64]>:$rng,
    Optional<RankedTensorOf<[I64]>>:$offsets,
    StrAttr:$stream,
    DenseI64ArrayAttr:$logical_shape
  );
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $rng (`offsets` $offsets^ `:` type($offsets))? `stream` `=` $stream
    `logical_shape` `=` $logical_shape attr-dict `:` type($rng) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

def Nn_MapOp : Nn_Op<"map", [
    SingleBlock, IsolatedFromAbove, RecursiveMemoryEffects
  ]> {
  let summary = "One scalar computation for every element";
  let description = [{
    Computes each element of the results from the elements of the operands at the
    same place. All results have one shape; operands broadcast to it. The body works
    on scalars with ops of `arith` and `math`, and sees nothing but its arguments.

    Constraints:

    - (C1) There is a result, and all results have the same shape.
    - (C2) Every operand broadcasts to that shape.
    - (C3) The body has an argument for each operand, of its element type.
    - (C4) The body yields a value for each result, of its element type.
    - (C5) The body holds only ops of `arith` and `math` besides its terminator.

    Example:

    ```mlir
    %y = nn.map %x, %bias : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      nn.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$operands);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $operands attr-dict `:` functional-type($operands, $results) $body
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Nn_YieldOp : Op<Nn_Dialect, "yield", [
    Pure, Terminator, HasParent<"MapOp">
  ]> {
  let summary = "What a map's body computes";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

def Nn_ReshapeOp : Nn_Op<"reshape"> {
  let summary = "The same elements, row-major, in another shape";
  let description = [{
    Constraints:

    - (C1) Input and result have as many elements, of one type.

    Example:

    ```mlir
    %y = nn.reshape %x : tensor<4x6xf32> -> tensor<2x12xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Nn_TransposeOp : Nn_Op<"transpose"> {
  let summary = "Dimensions in another order";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of the input.

    Constraints:

    - (C1) `permutation` is a permutation of the input's dimensions.
    - (C2) The result has the permuted shape.

    Example:

    ```mlir
    %y = nn.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    $input $permutation attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_SliceOp : Nn_Op<"slice"> {
  let summary = "A regular part of a tensor";
  let description = [{
    `result[i, ...] = input[offsets[0] + i * strides[0], ...]`. The result's shape says
    how many are taken.

    Constraints:

    - (C1) `offsets` and `strides` have an entry for each dimension, strides are positive.
    - (C2) The part lies inside the input.

    Example:

    ```mlir
    %y = nn.slice %x offsets = [0, 2] strides = [1, 1] : tensor<4x8xf32> -> tensor<4x3xf32>
    ```
  }];
  let arguments = (ins
    Nn_Tensor:$input, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$strides);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    $input `offsets` `=` $offsets `strides` `=` $strides attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_ConcatOp : Nn_Op<"concat"> {
  let summary = "Tensors one after another along a dimension";
  let description = [{
    Constraints:

    - (C1) `dim` is a dimension of the inputs.
    - (C2) The inputs differ in no other dimension, and the result has the sum of
      their sizes there.

    Example:

    ```mlir
    %y = nn.concat %a, %b dim = 1 : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    $inputs `dim` `=` $dim attr-dict `:` functional-type($inputs, $result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_PadOp : Nn_Op<"pad"> {
  let summary = "A tensor with a margin of one value";
  let description = [{
    Constraints:

    - (C1) `low` and `high` have a size, not negative, for each dimension.
    - (C2) The result's sizes are the input's with the margins added.

    Example:

    ```mlir
    %y = nn.pad %x low = [0, 1] high = [0, 2] value = 0.000000e+00 : f32
        : tensor<4x5xf32> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins
    Nn_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
    TypedAttrInterface:$value);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    $input `low` `=` $low `high` `=` $high `value` `=` $value attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_BroadcastOp : Nn_Op<"broadcast"> {
  let summary = "A tensor repeated to a larger shape";
  let description = [{
    Constraints:

    - (C1) The input broadcasts to the result's shape.

    Example:

    ```mlir
    %y = nn.broadcast %x : tensor<4x1xf32> -> tensor<2x4x8xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Reductions and products
//===----------------------------------------------------------------------===//

def Nn_ReduceOp : Nn_Op<"reduce"> {
  let summary = "Elements combined along dimensions";
  let description = [{
    The reduced dimensions stay, with size 1, so that the result broadcasts to the
    input.

    Constraints:

    - (C1) `dims` are dimensions of the input, ascending.
    - (C2) The result has the input's shape with size 1 in these.

    Example:

    ```mlir
    %y = nn.reduce sum %x dims = [1] : tensor<4x8xf32> -> tensor<4x1xf32>
    ```
  }];
  let arguments = (ins
    ReductionKind:$kind, Nn_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = [{
    $kind $input `dims` `=` $dims attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Nn_ContractOp : Nn_Op<"contract"> {
  let summary = "A product of two tensors, summed over shared dimensions";
  let description = [{
    An einsum of two operands. `equation` names each dimension by a letter; a letter
    that the result lacks is summed over. Sums are taken in fp32, of f64 tensors in
    fp64.

    Constraints:

    - (C1) `equation` reads `letters,letters->letters`, and names each dimension of
      operands and result by a lower-case letter, none twice in one tensor.
    - (C2) A letter has one size.
    - (C3) A letter of one operand alone is in the result; a letter of the result is in
      an operand.

    Example:

    ```mlir
    %c = nn.contract "bmk,kn->bmn" %a, %b
        : tensor<2x4x8xf32>, tensor<8x3xf32> -> tensor<2x4x3xf32>
    ```
  }];
  let arguments = (ins
    StrAttr:$equation, Nn_FloatTensor:$lhs, Nn_FloatTensor:$rhs);
  let results = (outs Nn_FloatTensor:$result);
  let assemblyFormat = [{
    $equation $lhs `,` $rhs attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The letters of the left operand, the right operand and the result.
    std::array<::llvm::StringRef, 3> getLetters();
  }];
}

#endif // ESPALIER_DIALECTS_NN_NNOPS_TD
