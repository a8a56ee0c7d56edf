//===- Passes.td - Sharding passes -------------------------*- tablegen -*-===//

#ifndef ESPALIER_PASSES_SHARDING_PASSES_TD
#define ESPALIER_PASSES_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def ShardTrainingProgramPass
    : Pass<"espalier-shard-training-program", "::mlir::ModuleOp"> {
  let summary = "Give every tensor of a training program its sharding";
  let description = [{
    Cuts the batch of `@grad` over the given axes, propagates that through the program
    by the ops' rules, and writes a sharding into every tensor's type. Where an op
    needs an operand in another sharding than it has, a `dist.reshard` is put in.
    `@update` takes gradients as `@grad` leaves them: partial sums, which it reduces
    once.

    Needs the contract `differentiated` and a `dist.mesh`; `planned` holds afterwards.
    A cut that a rule forbids is left out, with a missed remark.

    Example:

    ```mlir
    %y = nn.reduce sum %x dims = [1] : tensor<4x8xf32> -> tensor<4x1xf32>
    ```

    becomes, where the rows of `%x` are cut over dp,

    ```
    %y = nn.reduce sum %x dims = [1] : tensor<4x8xf32, #dist.sharding<[["dp"], []]>>
        -> tensor<4x1xf32, #dist.sharding<[["dp"], []]>>
    ```
  }];
  let options = [
    ListOption<"batchAxes", "batch-axes", "std::string",
               "Mesh axes that cut the batch (default: dp)">
  ];
  let dependentDialects = ["::espalier::dist::DistDialect"];
}

def VerifyPlannedPass : Pass<"espalier-verify-planned", "::mlir::ModuleOp"> {
  let summary = "Check the contract `planned`";
  let description = [{
    Every tensor type carries a sharding on the module's mesh, and every op but
    `dist.reshard` is sharded as its rule has it: each factor is cut alike in all
    operands and results, factors that must be whole are not cut, results are partial
    over the axes of reduced factors and over those of operands in which the op is
    linear, and nothing else. Changes nothing.

    Example:

    ```mlir
    %y = dist.reshard %x : tensor<4x8xf32, #dist.sharding<[["dp"], []]>>
        -> tensor<4x8xf32, #dist.sharding<[[], []]>>
    ```
  }];
}

#endif // ESPALIER_PASSES_SHARDING_PASSES_TD
