//===- Training.h - A run, from its command line to its exit status -*- C++
//-*-===//
//
//   int main(int argc, char **argv) {
//     return espalier::runtime::train(espalierProgram, argc, argv);
//   }
//
// First one process checks all inputs; then it starts a process for each rank
// and watches them (Launcher), or, started by a launcher that makes ranks
// itself, becomes one of them (Rendezvous). A rank then runs the step loop.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_TRAINING_H
#define ESPALIER_RUNTIME_TRAINING_H

#include "runtime/Checkpoint.h"
#include "runtime/Data.h"
#include "runtime/Options.h"

#include <memory>

namespace espalier::runtime {

/// A run that has been checked. Made before the ranks are forked, and shared by
/// them: nothing in it changes afterwards.
struct Training {
  explicit Training(const EspalierProgram &program) : program(program) {}

  const EspalierProgram &program;
  Options options;
  Metadata metadata;
  Data data;
  ModelFiles modelFiles;
  std::unique_ptr<CheckpointLayout> layout; // null without --checkpoint-dir
  std::unique_ptr<SavedCheckpoint> saved;   // null if nothing is resumed
  int64_t firstStep = 0;                    // steps done before
  int64_t steps = 0;                        // in all

  SegmentPlan segmentPlan() const;
};

/// Runs a training binary; returns its exit status.
int train(const EspalierProgram &program, int count, char **arguments);

/// Runs one rank of a checked run in this process; returns its exit status.
int runRank(const Training &training, const Segment &segment, int32_t rank,
            bool supervised);

/// Starts all ranks, watches them, and returns the exit status of the run.
int launch(const Training &training, const Segment &segment);

/// How other launchers tell a process which rank it is.
struct LauncherEnvironment {
  std::string name; // "torchrun"; empty: none
  int32_t rank = 0, ranks = 1, localRanks = 1;
  std::string job; // equal for the ranks of a job, different between jobs
};
LauncherEnvironment launcherEnvironment();

/// Becomes rank `environment.rank`, together with the processes that are the
/// others; returns its exit status.
int joinRanks(const Training &training, const LauncherEnvironment &environment);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_TRAINING_H
