//===- RtOps.td - Buffers, kernels and calls of the runtime -*- tablegen -*-==//

#ifndef ESPALIER_DIALECTS_RT_RTOPS_TD
#define ESPALIER_DIALECTS_RT_RTOPS_TD

include "dialects/Interfaces/ReductionKind.td"
include "dialects/Rt/RtDialect.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Rt_Op<string mnemonic, list<Trait> traits = []>
    : Op<Rt_Dialect, mnemonic, traits>;

def Rt_Buffer : MemRefRankOf<[AnyType], [1]>;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

def Rt_BufferOp : Rt_Op<"buffer", [Pure]> {
  let summary = "A part of the arena";
  let description = [{
    The elements from byte `offset` on. With `by_rank`, rank r's begins that many
    bytes further on. Before the arena is laid out, `storage` names the block of
    memory that `offset` counts from.

    Constraints:

    - (C1) Offsets are not negative.

    Example:

    ```mlir
    %x = rt.buffer 64 : memref<32xf32>
    ```
  }];
  let arguments = (ins
    I64Attr:$offset, OptionalAttr<I64Attr>:$storage,
    OptionalAttr<DenseI64ArrayAttr>:$by_rank);
  let results = (outs Rt_Buffer:$result);
  let assemblyFormat = [{
    $offset (`in` $storage^)? (`by_rank` $by_rank^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Rt_ConstantOp : Rt_Op<"constant", [Pure]> {
  let summary = "Elements known at compile time, outside the arena";
  let description = [{
    Constraints:

    - (C1) `value` has as many elements as the buffer, of its type.

    Example:

    ```mlir
    %c = rt.constant dense<[1.0, 2.0]> : tensor<2xf32> : memref<2xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Rt_Buffer:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Rt_LoopsOp : Rt_Op<"loops", [SingleBlock, AttrSizedOperandSegments]> {
  let summary = "A loop nest with one scalar computation";
  let description = [{
    For each index of `shape`, row-major: loads an element of each input, runs the
    body, and stores what it yields to the outputs. An input or output is addressed
    by `strides`, in elements, an array for each, inputs first; a stride of 0
    repeats. `kinds` says for each output whether it is stored or combined with what
    all indices of the same place yield: `store`, `sum`, `max`, `min`, `prod`. A
    combined output starts from the kind's neutral element.

    An input and an output may be the same buffer if their strides are equal.

    Constraints:

    - (C1) There are strides for each input and output, of the rank of `shape`.
    - (C2) There is a kind for each output.
    - (C3) The body has an argument for each input and yields a value for each
      output, of the buffer's element type.
    - (C4) What is addressed lies in the buffer.

    Example:

    ```mlir
    rt.loops [4, 8] ins(%x, %b) outs(%y) strides = [[8, 1], [0, 1], [8, 1]] kinds = ["store"]
        : (memref<32xf32>, memref<8xf32>) -> (memref<32xf32>) {
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      rt.yield %w : f32
    }
    ```
  }];
  let arguments = (ins
    DenseI64ArrayAttr:$shape, Variadic<Rt_Buffer>:$inputs,
    Variadic<Rt_Buffer>:$outputs,
    TypedArrayAttrBase<DenseI64ArrayAttr, "strides">:$strides,
    StrArrayAttr:$kinds);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    custom<IntegerArray>($shape) `ins` `(` $inputs `)` `outs` `(` $outputs `)`
    `strides` `=` custom<StrideArrays>($strides) `kinds` `=` $kinds attr-dict
    `:` `(` type($inputs) `)` `->` `(` type($outputs) `)` $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    llvm::ArrayRef<int64_t> getStridesOf(unsigned index) {
      return llvm::cast<mlir::DenseI64ArrayAttr>(getStrides()[index])
          .asArrayRef();
    }
    llvm::StringRef getKindOf(unsigned output) {
      return llvm::cast<mlir::StringAttr>(getKinds()[output]).getValue();
    }
  }];
}

def Rt_IndexOp : Rt_Op<"index", [Pure, ParentOneOf<["LoopsOp"]>]> {
  let summary = "The index along a dimension of the enclosing loops";
  let arguments = (ins I64Attr:$dim);
  let results = (outs I64:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
}

def Rt_YieldOp : Rt_Op<"yield", [Pure, Terminator, ParentOneOf<["LoopsOp"]>]> {
  let summary = "What the body of loops computes";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Rt_LaunchOp : Rt_Op<"launch"> {
  let summary = "A kernel of the target's library";
  let description = [{
    Calls kernel `kernel` on the buffers, then the constants, for which it is
    compiled. A missing buffer is a kernel's optional operand left out: `present` has
    false there.

    Example:

    ```mlir
    rt.launch "softmax" (%x, %y) constants = [4, 8] : memref<32xf32>, memref<32xf32>
    ```
  }];
  let arguments = (ins
    StrAttr:$kernel, Variadic<Rt_Buffer>:$buffers, ArrayAttr:$constants,
    OptionalAttr<DenseBoolArrayAttr>:$present);
  let assemblyFormat = [{
    $kernel `(` $buffers `)` `constants` `=` $constants (`present` $present^)? attr-dict
    (`:` type($buffers)^)?
  }];
}

//===----------------------------------------------------------------------===//
// Calls of the runtime
//===----------------------------------------------------------------------===//

def Rt_MarkOp : Rt_Op<"mark"> {
  let summary = "Says which op of the model begins";
  let description = [{
    `espalierRtMark`, with an index into the program's list of ops.

    Example:

    ```mlir
    rt.mark 3
    ```
  }];
  let arguments = (ins I64Attr:$op);
  let assemblyFormat = "$op attr-dict";
}

def Rt_GemmOp : Rt_Op<"gemm"> {
  let summary = "Products of matrices";
  let description = [{
    `espalierRtGemm`: `c = alpha * op(a) op(b) + beta * c`, `batch` times.

    Example:

    ```mlir
    rt.gemm %a, %b, %c m = 4 n = 8 k = 2 alpha = 1.000000e+00 beta = 0.000000e+00
        leading = [2, 8, 8] transpose = [false, false] batch = 1 strides = [0, 0, 0]
        : memref<8xf32>, memref<16xf32>, memref<32xf32>
    ```
  }];
  let arguments = (ins
    Rt_Buffer:$a, Rt_Buffer:$b, Rt_Buffer:$c, I64Attr:$m, I64Attr:$n, I64Attr:$k,
    F32Attr:$alpha, F32Attr:$beta, DenseI64ArrayAttr:$leading,
    DenseBoolArrayAttr:$transpose, I64Attr:$batch, DenseI64ArrayAttr:$strides);
  let assemblyFormat = [{
    $a `,` $b `,` $c `m` `=` $m `n` `=` $n `k` `=` $k `alpha` `=` $alpha
    `beta` `=` $beta `leading` `=` $leading `transpose` `=` $transpose
    `batch` `=` $batch `strides` `=` $strides attr-dict
    `:` type($a) `,` type($b) `,` type($c)
  }];
}

def Rt_AllReduceOp : Rt_Op<"all_reduce"> {
  let summary = "Buffers combined over a group of ranks, in place";
  let description = [{
    `espalierRtAllReduce`. `groups` has each rank's group, an index into the
    program's list of groups, and `op` an index into its list of ops.

    Example:

    ```mlir
    rt.all_reduce sum %x groups = [0, 0] op = 3 : memref<32xf32>
    ```
  }];
  let arguments = (ins
    ReductionKind:$kind, Variadic<Rt_Buffer>:$buffers, DenseI32ArrayAttr:$groups,
    I64Attr:$op);
  let assemblyFormat = [{
    $kind $buffers `groups` `=` $groups `op` `=` $op attr-dict `:` type($buffers)
  }];
}

class Rt_BlockCollective<string mnemonic> : Rt_Op<mnemonic> {
  let arguments = (ins
    Rt_Buffer:$input, Rt_Buffer:$output, I64Attr:$outer, I64Attr:$count,
    DenseI32ArrayAttr:$groups, I64Attr:$op);
  let assemblyFormat = [{
    $input `,` $output `outer` `=` $outer `count` `=` $count `groups` `=` $groups
    `op` `=` $op attr-dict `:` type($input) `,` type($output)
  }];
}

def Rt_AllGatherOp : Rt_BlockCollective<"all_gather"> {
  let summary = "The blocks of all ranks of a group, put together";
  let description = [{
    `espalierRtAllGather`.

    Example:

    ```mlir
    rt.all_gather %x, %y outer = 1 count = 8 groups = [0, 0] op = 3
        : memref<8xf32>, memref<16xf32>
    ```
  }];
}

def Rt_AllToAllOp : Rt_BlockCollective<"all_to_all"> {
  let summary = "Blocks exchanged within a group";
  let description = [{
    `espalierRtAllToAll`.

    Example:

    ```mlir
    rt.all_to_all %x, %y outer = 1 count = 8 groups = [0, 0] op = 3
        : memref<16xf32>, memref<16xf32>
    ```
  }];
}

def Rt_ReduceScatterOp : Rt_Op<"reduce_scatter"> {
  let summary = "A reduction over a group, of which each rank keeps its block";
  let description = [{
    `espalierRtReduceScatter`.

    Example:

    ```mlir
    rt.reduce_scatter sum %x, %y outer = 1 count = 8 groups = [0, 0] op = 3
        : memref<16xf32>, memref<8xf32>
    ```
  }];
  let arguments = (ins
    ReductionKind:$kind, Rt_Buffer:$input, Rt_Buffer:$output, I64Attr:$outer,
    I64Attr:$count, DenseI32ArrayAttr:$groups, I64Attr:$op);
  let assemblyFormat = [{
    $kind $input `,` $output `outer` `=` $outer `count` `=` $count
    `groups` `=` $groups `op` `=` $op attr-dict `:` type($input) `,` type($output)
  }];
}

#endif // ESPALIER_DIALECTS_RT_RTOPS_TD
