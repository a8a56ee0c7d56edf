//===- Heartbeat.cpp - The sign that a process runs -----------------------===//

#include "runtime/Heartbeat.h"

#include "runtime/Support.h"

#include <csignal>
#include <ctime>
#include <unistd.h>

namespace espalier::runtime {

Heartbeat::Heartbeat(RankSlot &slot) : slot(slot) {
  slot.pid.store(static_cast<int32_t>(getpid()));
  slot.heartbeat.fetch_add(1);
  // Signals are for the thread that computes.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  running = pthread_create(&thread, nullptr, beat, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  ended.store(true);
  if (running)
    pthread_join(thread, nullptr);
}

void *Heartbeat::beat(void *self) {
  auto *heartbeat = static_cast<Heartbeat *>(self);
  setFlushToZero();
  while (!heartbeat->ended.load(std::memory_order_relaxed)) {
    heartbeat->slot.heartbeat.fetch_add(1, std::memory_order_relaxed);
    timespec pause = {0, 100 * 1000 * 1000};
    nanosleep(&pause, nullptr);
  }
  return nullptr;
}

} // namespace espalier::runtime
