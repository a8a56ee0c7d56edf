//===- Passes.td - Scheduling passes -----------------------*- tablegen -*-===//

#ifndef ESPALIER_PASSES_SCHEDULE_PASSES_TD
#define ESPALIER_PASSES_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def SchedulePass : Pass<"espalier-schedule", "::mlir::ModuleOp"> {
  let summary = "Lay out a rank's step as a sequence of functions";
  let description = [{
    Replaces `@grad` by `@first`, which starts an accumulation, and `@next`, which
    continues it: it takes the sums so far (gradients, loss and weight) and adds its
    own. A step runs `@first`, then `@next` for each further microbatch, then
    `@update`. With one microbatch there is no `@next`.

    A result that has the role and name of an argument is that tensor, updated.

    Needs the contract `partitioned`; `scheduled` holds afterwards.

    Example:

    ```mlir
    func.func @grad(%x: tensor<4xf32> {espalier.name = "x", espalier.role = "input"})
        -> (tensor<1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"}) {
    ```

    becomes

    ```
    func.func @first(%x: tensor<4xf32> {espalier.name = "x", espalier.role = "input"})
        -> (tensor<1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"})
    func.func @next(%x: ..., %sum: tensor<1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"})
        -> (tensor<1xf32> {espalier.name = "loss_sum", espalier.role = "loss_sum"})
    ```
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", /*default=*/"1",
           "Number of microbatches in a step">
  ];
  let dependentDialects = ["::espalier::nn::NnDialect"];
}

#endif // ESPALIER_PASSES_SCHEDULE_PASSES_TD
