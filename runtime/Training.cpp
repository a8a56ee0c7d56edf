//===- Training.cpp - A run, from its command line to its exit status -----===//

#include "runtime/Training.h"

#include "runtime/Support.h"

#include <cstdio>

namespace espalier::runtime {
namespace {

Status prepareCheckpoints(Training &training, bool leads) {
  const std::string &directory = training.options.checkpointDir;
  if (directory.empty())
    return Status::success();
  training.layout = std::make_unique<CheckpointLayout>(training.metadata);
  if (leads)
    ESPALIER_TRY(claimCheckpointDirectory(directory, *training.layout));
  if (!hasCheckpoint(directory)) {
    if (training.options.resume && leads)
      printRemark(directory +
                  " has no checkpoint; training starts from the beginning");
    return Status::success();
  }
  if (!training.options.resume)
    return Status::error(directory +
                         " has a checkpoint already: continue it with "
                         "--resume, or give another folder");
  training.saved = std::make_unique<SavedCheckpoint>();
  ESPALIER_TRY(
      training.saved->open(directory, training.metadata, *training.layout));
  training.firstStep = training.saved->step();
  return Status::success();
}

Status prepare(Training &training, bool leads) {
  Metadata &metadata = training.metadata;
  std::vector<std::string> remarks;
  ESPALIER_TRY(training.data.open(metadata, training.options.data, remarks));
  ESPALIER_TRY(training.modelFiles.open(
      metadata, training.options.model.empty() ? metadata.modelDirectory
                                               : training.options.model));
  ESPALIER_TRY(prepareCheckpoints(training, leads));
  for (const std::string &remark : remarks)
    if (leads)
      printRemark(remark);
  return Status::success();
}

void printSummary(const Training &training) {
  const Metadata &metadata = training.metadata;
  std::string mesh;
  for (const auto &[axis, size] : metadata.mesh)
    mesh += (mesh.empty() ? "" : ", ") + axis + " = " + std::to_string(size);
  int64_t parameters = 0;
  for (const TensorInfo &tensor : metadata.tensors)
    if (tensor.role == Role::Parameter)
      parameters += tensor.elements();
  printRemark(
      format("%s: %lld parameters, %d rank%s%s%s%s, arena of %s a rank",
             metadata.jobName.c_str(), static_cast<long long>(parameters),
             training.program.ranks, training.program.ranks == 1 ? "" : "s",
             mesh.empty() ? "" : " (", mesh.c_str(), mesh.empty() ? "" : ")",
             humanBytes(training.segmentPlan().arenaBytes).c_str()));
  printRemark("data: " + training.data.summary());
  printRemark(format("a step: %lld samples in %lld microbatch%s",
                     static_cast<long long>(metadata.globalBatch),
                     static_cast<long long>(metadata.microBatches),
                     metadata.microBatches == 1 ? "" : "es") +
              (metadata.predictedStepSeconds
                   ? format(", predicted to take %.3g s",
                            *metadata.predictedStepSeconds)
                   : ""));
  if (training.saved)
    printRemark(format("resuming after step %lld",
                       static_cast<long long>(training.firstStep)));
}

int usageError(const std::string &text) {
  printError(text);
  std::fprintf(stderr, "--help lists the arguments\n");
  return ExitUsage;
}

int inputError(const std::string &text) {
  printError(text);
  return ExitInput;
}

int start(const Training &training, const LauncherEnvironment &environment) {
  if (!environment.name.empty())
    return joinRanks(training, environment);
  Segment segment;
  if (Status status = segment.create(training.segmentPlan()); !status.ok())
    return inputError(status.text());
  return launch(training, segment);
}

} // namespace

SegmentPlan Training::segmentPlan() const {
  SegmentPlan plan;
  plan.ranks = program.ranks;
  plan.barriers = static_cast<uint32_t>(metadata.groups.size()) + 1;
  plan.checksums = layout ? layout->chunks.size() : 0;
  plan.profileEntries =
      options.profile.empty() ? 0 : Profile::entries(metadata.ops.size());
  for (int32_t i = 0; i < program.classCount; ++i)
    plan.arenaBytes = std::max(plan.arenaBytes, program.classes[i].arenaBytes);
  return plan;
}

int train(const EspalierProgram &program, int count, char **arguments) {
  Training training(program);
  if (Status status = parseOptions(count, arguments, training.options);
      !status.ok())
    return usageError(status.text());
  if (training.options.help) {
    std::printf("usage: %s [options]\n%s", arguments[0], helpText);
    return ExitDone;
  }
  if (Status status = parseMetadata(program, training.metadata); !status.ok())
    return inputError(status.text());
  if (!training.options.steps && !training.metadata.steps)
    return usageError("the job does not say how many steps: give --steps N");
  training.steps = training.options.steps ? *training.options.steps
                                          : *training.metadata.steps;
  LauncherEnvironment environment = launcherEnvironment();
  bool leads = environment.name.empty() || environment.rank == 0;
  if (Status status = prepare(training, leads); !status.ok())
    return inputError(status.text());
  if (leads)
    printSummary(training);
  if (training.firstStep >= training.steps) {
    if (leads)
      printRemark(format("all %lld steps are done already",
                         static_cast<long long>(training.steps)));
    return ExitDone;
  }
  return start(training, environment);
}

} // namespace espalier::runtime
