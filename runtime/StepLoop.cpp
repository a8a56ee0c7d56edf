//===- StepLoop.cpp - The loop over steps ---------------------------------===//

#include "runtime/StepLoop.h"

#include "runtime/Gemm.h"
#include "runtime/Heartbeat.h"
#include "runtime/Support.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace espalier::runtime {

StepLoop::StepLoop(Rank &rank, const Training &training)
    : rank(rank), training(training),
      feeder(training.data, training.metadata, rank.context.rank,
             [&rank](const TensorInfo &tensor) {
               return rank.place(tensor, rank.context.rank);
             }),
      progress(training.steps, training.metadata.flopsPerStep.value_or(0)),
      loss(scalar(Role::Loss)), gradNorm(scalar(Role::GradNorm)),
      lr(scalar(Role::Lr)), weight(scalar(Role::WeightSum)),
      savedSteps(training.firstStep) {}

StepLoop::Scalar StepLoop::scalar(Role role) const {
  const TensorInfo *tensor = training.metadata.find(role);
  for (int32_t peer = 0; tensor && peer < rank.context.ranks; ++peer)
    if (const uint8_t *place = rank.place(*tensor, peer))
      return {place, tensor->dtype == EspalierF64};
  return {};
}

double StepLoop::read(const Scalar &scalar) const {
  if (!scalar.place)
    return std::numeric_limits<double>::quiet_NaN();
  if (scalar.wide) {
    double value;
    std::memcpy(&value, scalar.place, sizeof value);
    return value;
  }
  float value;
  std::memcpy(&value, scalar.place, sizeof value);
  return value;
}

Status StepLoop::open() {
  if (rank.context.rank != 0)
    return Status::success();
  const Options &options = training.options;
  if (!options.log.empty())
    ESPALIER_TRY(log.open(options.log, training.firstStep));
  if (!options.tensorBoard.empty())
    ESPALIER_TRY(tensorBoard.open(options.tensorBoard, training.firstStep));
  return Status::success();
}

void StepLoop::runStep(int64_t step) {
  rank.slot.step.store(step);
  rank.slot.op.store(0);
  rank.context.step = step;
  stepBegan = monotonicSeconds();
  const EspalierClass &own = rank.ownClass();
  for (int64_t i = 0; i < training.metadata.microBatches; ++i) {
    rank.profile.loading();
    feeder.load(step, i);
    rank.profile.outside();
    rank.context.microBatch = i;
    (i == 0 ? own.first : own.next)(&rank.context);
  }
  // The arena may have given the place of the step's number to others.
  feeder.loadStep(step);
  own.update(&rank.context);
  rank.profile.waiting();
}

/// What follows the step, read from the arenas while all ranks wait.
uint32_t StepLoop::decide(int64_t step) {
  record.step = step + 1;
  record.loss = read(loss);
  record.gradNorm = read(gradNorm);
  record.lr = read(lr);
  record.weight = read(weight);
  record.seconds = monotonicSeconds() - stepBegan;
  double samples = static_cast<double>(training.metadata.globalBatch);
  record.samplesPerSecond = samples / record.seconds;
  int64_t tokens = training.data.tokensPerSample();
  record.tokensPerSecond =
      tokens ? record.samplesPerSecond * static_cast<double>(tokens)
             : std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(record.loss) && record.weight != 0)
    failNotFinite();
  uint32_t decision = 0;
  if (record.step == training.steps ||
      rank.segment.header().stopSignal.load() != 0)
    decision = DecideStop | DecideSave;
  const std::optional<int64_t> &every = training.options.checkpointEvery;
  if (every && record.step % *every == 0)
    decision |= DecideSave;
  return decision;
}

void StepLoop::failNotFinite() {
  progress.finish();
  // The line of this step is the last of the log.
  (void)log.append(record);
  rank.communicator.fail(
      ExitInput,
      format("the loss of step %lld is %s; nothing was saved of this step and "
             "those after the last checkpoint",
             static_cast<long long>(record.step),
             std::isnan(record.loss) ? "nan" : "infinite"));
}

void StepLoop::report() {
  Status status = log.append(record);
  if (status.ok())
    status = tensorBoard.append(record);
  if (!status.ok() && !logFailed) {
    // The training is worth more than its log.
    logFailed = true;
    printError(status.text() + "; training goes on, the log has a gap");
  }
  if (record.weight == 0) {
    progress.finish();
    printRemark(format("step %lld: no valid sample (the weights' sum is 0), "
                       "nothing was updated",
                       static_cast<long long>(record.step)));
  }
  progress.show(record);
}

void StepLoop::save(int64_t doneSteps) {
  if (!training.layout || savedSteps == doneSteps)
    return;
  double began = monotonicSeconds();
  Status status = saveCheckpoint(rank, *training.layout,
                                 training.options.checkpointDir, doneSteps);
  if (!status.ok()) {
    if (rank.context.rank == 0)
      progress.finish();
    rank.communicator.fail(ExitInput, status.text());
  }
  savedSteps = doneSteps;
  if (rank.context.rank != 0)
    return;
  progress.finish();
  printRemark(format("saved step %lld in %.2g s",
                     static_cast<long long>(doneSteps),
                     monotonicSeconds() - began));
}

int StepLoop::run() {
  bool leads = rank.context.rank == 0;
  rank.slot.phase.store(Phase::Training);
  for (int64_t step = training.firstStep; step < training.steps; ++step) {
    runStep(step);
    // Two barriers: rank 0 reads the results between them, when no rank
    // computes, and nobody reads the decision before it is made.
    rank.communicator.barrier();
    if (leads)
      rank.segment.header().decision.store(decide(step));
    rank.communicator.barrier();
    rank.profile.outside();
    uint32_t decision = rank.segment.header().decision.load();
    if (leads)
      report();
    if (decision & DecideSave)
      save(step + 1);
    if (decision & DecideStop)
      return finish(step + 1);
  }
  return ExitDone;
}

int StepLoop::finish(int64_t doneSteps) {
  rank.communicator.barrier();
  bool leads = rank.context.rank == 0;
  if (leads) {
    progress.finish();
    if (rank.profile.enabled()) {
      Status status =
          writeProfile(training.options.profile, rank.segment, rank.metadata,
                       doneSteps - training.firstStep);
      if (!status.ok())
        rank.communicator.fail(ExitInput, status.text());
    }
  }
  if (doneSteps == training.steps)
    return ExitDone;
  int signal = rank.segment.header().stopSignal.load();
  if (leads)
    printRemark(format("stopped by %s after step %lld", strsignal(signal),
                       static_cast<long long>(doneSteps)));
  return 128 + signal;
}

namespace {

Status prepareRank(Rank &rank, const Training &training) {
  ESPALIER_TRY(openLibraries(training.metadata.libraries));
  ESPALIER_TRY(rank.segment.populateArena(rank.context.rank));
  rank.communicator.barrier();
  rank.slot.phase.store(Phase::Loading);
  initialize(rank, training.modelFiles, !training.saved);
  if (training.saved)
    ESPALIER_TRY(training.saved->load(rank, *training.layout));
  return Status::success();
}

} // namespace

int runRank(const Training &training, const Segment &segment, int32_t index,
            bool supervised) {
  setFlushToZero();
  Rank rank(training.program, training.metadata, segment, index, supervised);
  Heartbeat heartbeat(rank.slot);
  Status status = prepareRank(rank, training);
  if (!status.ok())
    rank.communicator.fail(ExitInput, status.text());
  StepLoop loop(rank, training);
  status = loop.open();
  if (!status.ok())
    rank.communicator.fail(ExitInput, status.text());
  rank.communicator.barrier();
  int result = loop.run();
  rank.slot.phase.store(Phase::Done);
  return result;
}

} // namespace espalier::runtime
