//===- Log.h - What a run tells while it trains -----------------*- C++ -*-===//
//
// The JSON-lines log, TensorBoard's event files and the progress line. Rank 0
// writes them. Nothing here allocates once it is open.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_LOG_H
#define ESPALIER_RUNTIME_LOG_H

#include "runtime/File.h"

#include <cstdint>
#include <cstdio>
#include <string>

namespace espalier::runtime {

/// A step as the logs have it. What a program does not compute is NaN.
struct StepRecord {
  int64_t step = 0; // from 1
  double loss = 0, seconds = 0, lr = 0, gradNorm = 0, weight = 0;
  double samplesPerSecond = 0;
  double tokensPerSecond = 0;
};

/// The log of --log. A line is one write, so that whatever kills the run, at
/// most the line being written is cut.
class JsonLog {
public:
  /// Begins a new log, or, with `doneSteps` > 0, continues one: lines of later
  /// steps and a cut last line are dropped.
  Status open(const std::string &path, int64_t doneSteps);
  Status append(const StepRecord &record);

private:
  Status dropAfter(const std::string &path, int64_t doneSteps);

  std::string name;
  int fd = -1;
};

/// Event files as TensorBoard reads them: TFRecords of Event protobufs.
class TensorBoardLog {
public:
  /// Begins a file in `directory`, which is made if it is absent.
  Status open(const std::string &directory, int64_t doneSteps);
  Status append(const StepRecord &record);

private:
  Status writeEvent(const uint8_t *event, size_t size);

  std::string name;
  int fd = -1;
};

/// The progress line: rewritten in place on a terminal, printed now and then
/// elsewhere.
class Progress {
public:
  /// Until `lastStep`; flops of a step or 0.
  Progress(int64_t lastStep, double flopsPerStep);
  void show(const StepRecord &record);

  /// Ends a line that is being rewritten.
  void finish();

private:
  int64_t lastStep;
  double flopsPerStep;
  bool terminal;
  bool pending = false; // a line without its end is on the terminal
  double average = 0;   // seconds of a step
  double begun, lastShown = 0;
};

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_LOG_H
