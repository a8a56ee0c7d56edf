//===- Job.h - What to train, and on what -----------------------*- C++ -*-===//
//
// The job file, as lib/Job/README.md describes it, read and checked: every
// value is of its type and in its range. What needs the model or the cluster to
// be checked (names of tensors, whether degrees fit) is checked by who has
// them.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_JOB_JOB_H
#define ESPALIER_JOB_JOB_H

#include "espalier/Support/YamlTree.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

struct LossJob {
  enum class Kind { CrossEntropy, MeanSquaredError, Output } kind;
  std::string prediction; // logits, prediction, or the output `name`
  std::string target;     // the new input: labels or target
  std::string weight;     // Output: the output that counts; "" if none
  int64_t ignoreIndex = -100;
};

struct OptimizerJob {
  enum class Kind { AdamW, Sgd } kind;
  double learningRate;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; // AdamW
  double momentum = 0, dampening = 0;                // Sgd
  bool nesterov = false;                             // Sgd
  double weightDecay = 0; // AdamW: 0.01 unless given, as in PyTorch
};

struct ScheduleJob {
  enum class Kind { Constant, Linear, Cosine } kind = Kind::Constant;
  int64_t warmupSteps = 0;
  std::optional<int64_t> totalSteps;
  double minimumLearningRate = 0;
};

struct InitJob {
  std::string match; // a glob
  enum class Kind { Zeros, Ones, Normal } kind;
  double deviation = 0; // of Normal
};

struct TrainJob {
  LossJob loss;
  OptimizerJob optimizer;
  ScheduleJob schedule;
  std::optional<double> gradientClip; // global norm
  int64_t globalBatch = 0;            // samples
  std::string precision = "fp32";
  std::vector<std::string> frozen, trained; // globs
  bool acceptExportRewrites = false;
  std::vector<std::pair<std::string, std::string>> tied;
  std::optional<bool> batchNormTrains;
  std::vector<InitJob> init;
  uint64_t seed = 0;
};

struct DataJob {
  enum class Kind { Tokens, Samples } kind;
  std::string file;             // relative to the job's folder
  std::string dtype = "uint16"; // Tokens: uint16 or uint32
  std::string input, labels;    // Tokens
  bool shuffle = false;         // Samples
};

struct ClusterJob {
  std::string device;
  int64_t nodes = 1, devicesPerNode = 1;
  std::optional<double> interNodeGbitPerSecond;
};

/// Pinned degrees; what is not given is searched.
struct LayoutJob {
  bool isAuto = true;
  std::optional<std::vector<int64_t>> tensor; // tp: a list of axes
  std::map<std::string, int64_t> degrees;     // dp, pp, vpp, cp, ep
  std::optional<int64_t> zeroStage;
  std::optional<int64_t> zeroGroup;
  std::optional<bool> sequenceParallel;
  std::optional<std::string> recompute, schedule;
  unsigned line = 0; // of the job file
};

struct MemoryJob {
  std::optional<double> reserve; // a part of the device's memory
  std::optional<double> limit;   // bytes
};

struct Job {
  std::string path;      // of the job file
  std::string directory; // of the job file; paths are relative to it
  std::string model;
  std::map<std::string, int64_t> dims; // without those that are auto
  bool batchIsAuto = false;            // dims.batch: auto, or not given
  TrainJob train;
  std::optional<DataJob> data;
  ClusterJob cluster;
  LayoutJob layout;
  /// Axes for each dimension, by a glob of names.
  std::vector<std::pair<std::string, std::vector<std::vector<std::string>>>>
      shardings;
  MemoryJob memory;

  /// `file` relative to the job's folder.
  std::string resolve(llvm::StringRef file) const;
};

/// Reads and checks a job. Returns nothing, with messages, where it is wrong.
std::optional<Job> readJob(llvm::StringRef path, Messages &messages);
std::optional<Job> parseJob(llvm::StringRef text, llvm::StringRef path,
                            Messages &messages);

} // namespace espalier

#endif // ESPALIER_JOB_JOB_H
