//===- TrainingOptions.h - What to train, and how ---------------*- C++ -*-===//
//
// The section `train` of a job, as far as it says what a step computes.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_AUTODIFF_TRAININGOPTIONS_H
#define ESPALIER_AUTODIFF_TRAININGOPTIONS_H

#include <cstdint>
#include <string>

namespace espalier {

struct LossOptions {
  enum class Kind { CrossEntropy, MeanSquaredError, Output };
  Kind kind = Kind::CrossEntropy;
  /// The model's output: logits, prediction, or the loss itself.
  std::string output;
  /// The new argument: labels or target. Not for Kind::Output.
  std::string target;
  /// Labels that do not count.
  int64_t ignoreIndex = -100;
  /// The output that holds the weight, for Kind::Output; empty if none.
  std::string weight;
};

struct OptimizerOptions {
  enum class Kind { AdamW, Sgd };
  Kind kind = Kind::AdamW;
  double learningRate = 1e-3;
  double weightDecay = 0;
  // AdamW:
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  // SGD:
  double momentum = 0, dampening = 0;
  bool nesterov = false;
};

struct ScheduleOptions {
  enum class Kind { Constant, Linear, Cosine };
  Kind kind = Kind::Constant;
  int64_t warmupSteps = 0;
  /// The step at which `minLearningRate` is reached. Not for Kind::Constant.
  int64_t totalSteps = 0;
  double minLearningRate = 0;
};

struct TrainingOptions {
  LossOptions loss;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  /// The largest global norm of the gradients; 0 where they are not clipped.
  double gradientClip = 0;
};

} // namespace espalier

#endif // ESPALIER_AUTODIFF_TRAININGOPTIONS_H
