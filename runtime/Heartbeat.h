//===- Heartbeat.h - The sign that a process runs ---------------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_HEARTBEAT_H
#define ESPALIER_RUNTIME_HEARTBEAT_H

#include "runtime/Segment.h"

#include <pthread.h>

namespace espalier::runtime {

/// While it lives, a small thread changes the slot's heartbeat several times a
/// second. It says that the process runs, not that it is fast: a stopped or
/// frozen process has none, one that computes for an hour has.
class Heartbeat {
public:
  explicit Heartbeat(RankSlot &slot);
  ~Heartbeat();
  Heartbeat(const Heartbeat &) = delete;
  Heartbeat &operator=(const Heartbeat &) = delete;

private:
  static void *beat(void *self);

  RankSlot &slot;
  std::atomic<bool> ended{false};
  pthread_t thread{};
  bool running = false;
};

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_HEARTBEAT_H
