//===- StepLoop.h - The loop over steps -------------------------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_STEPLOOP_H
#define ESPALIER_RUNTIME_STEPLOOP_H

#include "runtime/Log.h"
#include "runtime/Training.h"

namespace espalier::runtime {

/// One rank's steps. After the first of them its own code allocates nothing,
/// saves apart.
class StepLoop {
public:
  StepLoop(Rank &rank, const Training &training);

  /// Opens the logs; only rank 0 has any.
  Status open();

  /// Runs until the last step, or until a signal; returns the exit status.
  int run();

private:
  struct Scalar {
    const uint8_t *place = nullptr; // null: the program has none
    bool wide = false;
  };

  Scalar scalar(Role role) const;
  double read(const Scalar &scalar) const;
  void runStep(int64_t step);
  uint32_t decide(int64_t step);
  void report();
  void save(int64_t doneSteps);
  int finish(int64_t doneSteps);
  [[noreturn]] void failNotFinite();

  Rank &rank;
  const Training &training;
  Feeder feeder;
  Progress progress;
  JsonLog log;
  TensorBoardLog tensorBoard;
  Scalar loss, gradNorm, lr, weight;
  StepRecord record;
  double stepBegan = 0;
  int64_t savedSteps;
  bool logFailed = false;
};

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_STEPLOOP_H
