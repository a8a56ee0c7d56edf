//===- DistOps.td - Meshes, reshards and collectives -------*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_DIST_DISTOPS_TD
#define ESPALIER_DIALECTS_DIST_DISTOPS_TD

include "dialects/Dist/DistAttrs.td"
include "dialects/Interfaces/ReductionKind.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Tensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;

/// The wires. An effect on it keeps collectives where they are: none is dropped,
/// merged or moved past another, so that all ranks issue them in one order.
def Dist_Network : Resource<"::espalier::dist::NetworkResource">;

class Dist_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dist_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

def Dist_MeshOp : Dist_Op<"mesh", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "The mesh of devices that a module is planned for";
  let description = [{
    Constraints:

    - (C1) Axes have different names.

    Example:

    ```mlir
    dist.mesh @mesh [#dist.mesh_axis<"dp" = 4, "network">, #dist.mesh_axis<"tp" = 2, "node">]
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypedArrayAttrBase<Dist_MeshAxisAttr, "axes">:$axes);
  let assemblyFormat = "$sym_name $axes attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Before partitioning
//===----------------------------------------------------------------------===//

def Dist_ReshardOp : Dist_Op<"reshard", [Pure]> {
  let summary = "The same tensor, in another sharding";
  let description = [{
    Constraints:

    - (C1) Input and result have one shape and element type.

    Example:

    ```mlir
    %y = dist.reshard %x : tensor<4x8xf32, #dist.sharding<[["dp"], []]>>
        -> tensor<4x8xf32, #dist.sharding<[[], []]>>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// After partitioning: a rank's view
//===----------------------------------------------------------------------===//

class Dist_Collective<string mnemonic>
    : Dist_Op<mnemonic, [MemoryEffects<[MemRead<Dist_Network>,
                                        MemWrite<Dist_Network>]>]>;

def Dist_AllReduceOp : Dist_Collective<"all_reduce"> {
  let summary = "Tensors combined over a group of ranks";
  let description = [{
    Each result is the reduction of the operand over the ranks of the group. The
    tensors of one op are one bucket.

    Constraints:

    - (C1) Operands and results have the same types.

    Example:

    ```mlir
    %y = dist.all_reduce sum %x axes = ["dp"] : tensor<4x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins
    ReductionKind:$kind, Variadic<Dist_Tensor>:$inputs, StrArrayAttr:$axes);
  let results = (outs Variadic<Dist_Tensor>:$results);
  let assemblyFormat = "$kind $inputs `axes` `=` $axes attr-dict `:` type($inputs) `->` type($results)";
  let hasVerifier = 1;
  let builders = [
    OpBuilder<(ins "::espalier::ReductionKind":$kind, "::mlir::ValueRange":$inputs,
                   "::mlir::ArrayAttr":$axes), [{
      build($_builder, $_state, inputs.getTypes(), kind, inputs, axes);
    }]>
  ];
}

def Dist_AllGatherOp : Dist_Collective<"all_gather"> {
  let summary = "The blocks of a dimension put together";
  let description = [{
    The blocks of all ranks of the group, one after another along `dim`.

    Constraints:

    - (C1) The result has the input's shape, but in `dim` a multiple of its size.

    Example:

    ```mlir
    %y = dist.all_gather %x dim = 0 axes = ["dp"] : tensor<2x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$dim, StrArrayAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `dim` `=` $dim `axes` `=` $axes attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Dist_ReduceScatterOp : Dist_Collective<"reduce_scatter"> {
  let summary = "A reduction over a group, of which each rank keeps its block";
  let description = [{
    Constraints:

    - (C1) The input has the result's shape, but in `dim` a multiple of its size.

    Example:

    ```mlir
    %y = dist.reduce_scatter sum %x dim = 0 axes = ["dp"]
        : tensor<4x8xf32> -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins
    ReductionKind:$kind, Dist_Tensor:$input, I64Attr:$dim, StrArrayAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $kind $input `dim` `=` $dim `axes` `=` $axes attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Dist_AllToAllOp : Dist_Collective<"all_to_all"> {
  let summary = "A cut moved from one dimension to another";
  let description = [{
    Splits `split_dim` into a block for each rank of the group, and puts the blocks
    received together along `concat_dim`.

    Constraints:

    - (C1) The dimensions differ; with n ranks the result has an nth of the input's size in
      `split_dim` and n times its size in `concat_dim`.

    Example:

    ```mlir
    %y = dist.all_to_all %x split_dim = 1 concat_dim = 0 axes = ["tp"]
        : tensor<2x8xf32> -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins
    Dist_Tensor:$input, I64Attr:$split_dim, I64Attr:$concat_dim, StrArrayAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `split_dim` `=` $split_dim `concat_dim` `=` $concat_dim `axes` `=` $axes
    attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Dist_ShardSliceOp : Dist_Op<"shard_slice", [Pure]> {
  let summary = "A rank's own block of what all ranks have";
  let description = [{
    Constraints:

    - (C1) The input has the result's shape, but in `dim` a multiple of its size.

    Example:

    ```mlir
    %y = dist.shard_slice %x dim = 0 axes = ["dp"] : tensor<4x8xf32> -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins Dist_Tensor:$input, I64Attr:$dim, StrArrayAttr:$axes);
  let results = (outs Dist_Tensor:$result);
  let assemblyFormat = [{
    $input `dim` `=` $dim `axes` `=` $axes attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Dist_BlockIndexOp : Dist_Op<"block_index", [Pure]> {
  let summary = "Which block along some axes is a rank's";
  let description = [{
    The rank's position in the group of `axes`, row-major, times `scale`.

    Example:

    ```mlir
    %i = dist.block_index axes = ["dp"] scale = 4 : tensor<i64>
    ```
  }];
  let arguments = (ins StrArrayAttr:$axes, I64Attr:$scale);
  let results = (outs RankedTensorOf<[I64]>:$result);
  let assemblyFormat = "`axes` `=` $axes `scale` `=` $scale attr-dict `:` type($result)";
}

#endif // ESPALIER_DIALECTS_DIST_DISTOPS_TD
