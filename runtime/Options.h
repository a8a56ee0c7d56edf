//===- Options.h - The command line of a training binary --------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_OPTIONS_H
#define ESPALIER_RUNTIME_OPTIONS_H

#include "runtime/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace espalier::runtime {

struct Options {
  std::string data, log, tensorBoard, profile, checkpointDir, model;
  std::optional<int64_t> steps, checkpointEvery;
  bool resume = false;
  bool help = false;
};

/// An error here is one of usage.
Status parseOptions(int count, char *const *arguments, Options &options);

extern const char *const helpText;

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_OPTIONS_H
