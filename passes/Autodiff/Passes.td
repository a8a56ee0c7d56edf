//===- Passes.td - Autodiff passes -------------------------*- tablegen -*-===//

#ifndef ESPALIER_PASSES_AUTODIFF_PASSES_TD
#define ESPALIER_PASSES_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

def AddLossPass : Pass<"espalier-add-loss", "::mlir::ModuleOp"> {
  let summary = "Build @loss, the sums of a microbatch, from @forward";
  let description = [{
    `@loss` is `@forward` with the sum of the loss over what counts, and the weight of
    what counts, in place of the outputs. Both are sums, so that those of microbatches
    and replicas can be added. Samples that are not `valid` are selected away.

    Needs the contract `imported`. Outputs that the loss does not use are dropped; an
    output that is a mean over the microbatch is refused.

    Example:

    ```mlir
    func.func @forward(%x: tensor<2x3xf32> {espalier.name = "x", espalier.role = "input"},
        %valid: tensor<2xi1> {espalier.name = "valid", espalier.role = "valid"})
        -> (tensor<2x3xf32> {espalier.name = "logits", espalier.role = "output"}) {
      return %x : tensor<2x3xf32>
    }
    ```

    with `output=logits target=labels` gets beside it

    ```
    func.func @loss(%x: tensor<2x3xf32> {...}, %labels: tensor<2xi64> {...},
        %valid: tensor<2xi1> {...}) -> (tensor<f32> {...}, tensor<f32> {...})
    ```
  }];
  let options = [
    Option<"kind", "kind", "::espalier::LossOptions::Kind",
           "::espalier::LossOptions::Kind::CrossEntropy", "The kind of loss",
           [{::llvm::cl::values(
             clEnumValN(::espalier::LossOptions::Kind::CrossEntropy, "cross_entropy",
                        "cross-entropy of logits and labels"),
             clEnumValN(::espalier::LossOptions::Kind::MeanSquaredError, "mse",
                        "squared error of a prediction"),
             clEnumValN(::espalier::LossOptions::Kind::Output, "output",
                        "what the model computes"))}]>,
    Option<"output", "output", "std::string", "\"logits\"",
           "The model's output: logits, prediction or loss">,
    Option<"target", "target", "std::string", "\"labels\"",
           "The name of the new argument">,
    Option<"ignoreIndex", "ignore-index", "int64_t", "-100", "Labels that do not count">,
    Option<"weight", "weight", "std::string", "\"\"",
           "The output that holds the weight, of a loss that the model computes">
  ];
  let dependentDialects = ["::espalier::nn::NnDialect"];
}

def DifferentiatePass : Pass<"espalier-differentiate", "::mlir::ModuleOp"> {
  let summary = "Build @grad, the gradients of a microbatch, from @loss";
  let description = [{
    A reverse sweep over the ops' derivatives, in time linear in the program. Only what
    depends on a parameter and leads to the loss is differentiated. `@loss` and
    `@forward` are erased: `@grad` computes the loss too.

    An op on the way that has no derivative is an error. A parameter that the loss does
    not depend on gets zeros and draws a remark.

    Example:

    ```mlir
    func.func @loss(%w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"})
        -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
            tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"}) {
      %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
      %s = nn.reduce sum %w dims = [0] : tensor<2xf32> -> tensor<1xf32>
      %l = nn.reshape %s : tensor<1xf32> -> tensor<f32>
      return %l, %one : tensor<f32>, tensor<f32>
    }
    ```

    becomes `@grad`, which ends

    ```
      %0 = nn.reshape %one : tensor<f32> -> tensor<1xf32>
      %1 = nn.broadcast %0 : tensor<1xf32> -> tensor<2xf32>
      return %l, %one, %1 : tensor<f32>, tensor<f32>, tensor<2xf32>
    ```
  }];
  let dependentDialects = ["::espalier::nn::NnDialect"];
}

def BuildUpdatePass : Pass<"espalier-build-update", "::mlir::ModuleOp"> {
  let summary = "Build @update, the optimizer's step, beside @grad";
  let description = [{
    `@update` divides the gradients, sums over the global batch, once by its weight,
    clips them by their global norm, and moves parameters and optimizer state as
    PyTorch's AdamW or SGD does. What depends on the step alone is computed in f64;
    each parameter is one `nn.map`. A step whose weight is 0 changes nothing.

    Needs `@grad`; the contract `differentiated` holds afterwards.

    Example:

    ```mlir
    func.func @grad(%w: tensor<2xf32> {espalier.name = "w", espalier.role = "parameter"})
        -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
            tensor<f32> {espalier.name = "weight_sum", espalier.role = "weight_sum"},
            tensor<2xf32> {espalier.name = "w", espalier.role = "grad"}) {
      %one = nn.constant dense<1.0> : tensor<f32> -> tensor<f32>
      return %one, %one, %w : tensor<f32>, tensor<f32>, tensor<2xf32>
    }
    ```

    gets beside it, with `optimizer=sgd`,

    ```
    func.func @update(%w: tensor<2xf32> {...}, %dw: tensor<2xf32> {...},
        %loss_sum: tensor<f32> {...}, %weight_sum: tensor<f32> {...}, %step: tensor<i64> {...})
        -> (tensor<2xf32> {...}, tensor<f32> {...}, tensor<f32> {...}, tensor<f32> {...})
    ```
  }];
  let options = [
    Option<"optimizer", "optimizer", "::espalier::OptimizerOptions::Kind",
           "::espalier::OptimizerOptions::Kind::AdamW", "The optimizer",
           [{::llvm::cl::values(
             clEnumValN(::espalier::OptimizerOptions::Kind::AdamW, "adamw", "AdamW"),
             clEnumValN(::espalier::OptimizerOptions::Kind::Sgd, "sgd", "SGD"))}]>,
    Option<"learningRate", "lr", "double", "1e-3", "The peak learning rate">,
    Option<"weightDecay", "weight-decay", "double", "0.0", "Weight decay">,
    Option<"beta1", "beta1", "double", "0.9", "AdamW: decay of the first moment">,
    Option<"beta2", "beta2", "double", "0.999", "AdamW: decay of the second moment">,
    Option<"epsilon", "eps", "double", "1e-8", "AdamW: what is added to the root">,
    Option<"momentum", "momentum", "double", "0.0", "SGD: momentum">,
    Option<"dampening", "dampening", "double", "0.0", "SGD: dampening of momentum">,
    Option<"nesterov", "nesterov", "bool", "false", "SGD: Nesterov's momentum">,
    Option<"schedule", "schedule", "::espalier::ScheduleOptions::Kind",
           "::espalier::ScheduleOptions::Kind::Constant", "The learning rate's schedule",
           [{::llvm::cl::values(
             clEnumValN(::espalier::ScheduleOptions::Kind::Constant, "constant", "constant"),
             clEnumValN(::espalier::ScheduleOptions::Kind::Linear, "linear", "linear decay"),
             clEnumValN(::espalier::ScheduleOptions::Kind::Cosine, "cosine",
                        "cosine decay"))}]>,
    Option<"warmupSteps", "warmup-steps", "int64_t", "0", "Steps of linear warmup">,
    Option<"totalSteps", "total-steps", "int64_t", "0", "The step of the least learning rate">,
    Option<"minLearningRate", "min-lr", "double", "0.0", "The least learning rate">,
    Option<"gradientClip", "grad-clip", "double", "0.0",
           "The largest global norm of the gradients, 0 for any">
  ];
  let dependentDialects = ["::espalier::nn::NnDialect"];
}

#endif // ESPALIER_PASSES_AUTODIFF_PASSES_TD
