//===- Passes.td - Partitioning passes ---------------------*- tablegen -*-===//

#ifndef ESPALIER_PASSES_PARTITION_PASSES_TD
#define ESPALIER_PASSES_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def PartitionPass : Pass<"espalier-partition", "::mlir::ModuleOp"> {
  let summary = "Turn whole tensors into one rank's blocks";
  let description = [{
    Gives every tensor the shape of a rank's block, and every `dist.reshard` its
    collectives. Ops whose result depends on where a block lies (`nn.iota`,
    `nn.random_uniform`) get its place from `dist.block_index`.

    Needs the contract `planned`; `partitioned` holds afterwards: no sharding is left
    in types, and all ranks run one program.

    Example:

    ```mlir
    %y = dist.reshard %x : tensor<4x8xf32, #dist.sharding<[["dp"], []]>>
        -> tensor<4x8xf32, #dist.sharding<[[], []]>>
    ```

    becomes, with two devices along dp,

    ```
    %y = dist.all_gather %x dim = 0 axes = ["dp"] : tensor<2x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::espalier::dist::DistDialect",
                           "::espalier::nn::NnDialect"];
}

def CombineAllReducesPass
    : Pass<"espalier-combine-all-reduces", "::mlir::func::FuncOp"> {
  let summary = "Put all-reduces that can run together into one bucket";
  let description = [{
    All-reduces of one group and kind whose operands are all there at the first of
    them become one op with many tensors: its latency is paid once. Here and not in
    the partitioner, since buckets cross ops.

    Example:

    ```mlir
    %0 = dist.all_reduce sum %a axes = ["dp"] : tensor<4x8xf32> -> tensor<4x8xf32>
    %1 = dist.all_reduce sum %b axes = ["dp"] : tensor<3xf32> -> tensor<3xf32>
    ```

    becomes

    ```
    %0:2 = dist.all_reduce sum %a, %b axes = ["dp"]
        : tensor<4x8xf32>, tensor<3xf32> -> tensor<4x8xf32>, tensor<3xf32>
    ```
  }];
  let statistics = [
    Statistic<"numCombined", "combined", "Number of all-reduces put into another">
  ];
}

def VerifyPartitionedPass
    : Pass<"espalier-verify-partitioned", "::mlir::ModuleOp"> {
  let summary = "Check the contract `partitioned`";
  let description = [{
    No tensor type carries a sharding, no `dist.reshard` is left, and every collective
    names axes of the module's mesh. Changes nothing.

    Example:

    ```mlir
    %y = dist.all_reduce sum %x axes = ["dp"] : tensor<4x8xf32> -> tensor<4x8xf32>
    ```
  }];
}

#endif // ESPALIER_PASSES_PARTITION_PASSES_TD
