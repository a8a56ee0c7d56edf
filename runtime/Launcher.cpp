//===- Launcher.cpp - The process that starts and watches the ranks -------===//

#include "runtime/Support.h"
#include "runtime/Training.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace espalier::runtime {
namespace {

/// Watches the ranks of one run. Has no threads and computes nothing.
class Launcher {
public:
  Launcher(const Training &training, const Segment &segment)
      : training(training), segment(segment),
        watched(static_cast<size_t>(segment.plan().ranks)) {}

  int run();

private:
  struct Watched {
    pid_t pid = -1;
    bool running = false;
    uint32_t heartbeat = 0;
    double silent = 0;  // seconds without a heartbeat
    double waiting = 0; // seconds at one barrier
    double remarkAfter = 60;
    uint32_t waitGeneration = 0;
  };

  bool startRank(int32_t rank);
  void takeSignal(int signal);
  void reap();
  void takeEnd(int32_t rank, int status);
  void watchHeartbeats(double passed);
  void watchWaiting(double passed);
  void lose(int32_t rank, const std::string &why);
  void endRun(int withStatus, const std::string &message);
  void killAll();
  bool waits(int32_t rank) const;
  std::string rankText(int32_t rank) const;

  const Training &training;
  const Segment &segment;
  std::vector<Watched> watched;
  int running = 0;
  int status = ExitDone;
  bool ended = false; // the run's status is known
  int stalledPolls = 0;
  sigset_t signalsBefore{};
};

std::string Launcher::rankText(int32_t rank) const {
  return format("rank %d of %d", rank, segment.plan().ranks);
}

/// What a new rank does first: it must not outlive the launcher, and leaves
/// signals to it.
void becomeRank(pid_t launcher, const sigset_t &signalsBefore) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher)
    _exit(ExitRankLost);
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  sigprocmask(SIG_SETMASK, &signalsBefore, nullptr);
}

bool Launcher::startRank(int32_t rank) {
  pid_t launcher = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    becomeRank(launcher, signalsBefore);
    int result = runRank(training, segment, rank, /*supervised=*/true);
    std::fflush(stdout);
    _exit(result);
  }
  if (pid < 0)
    return false;
  watched[static_cast<size_t>(rank)].pid = pid;
  watched[static_cast<size_t>(rank)].running = true;
  ++running;
  return true;
}

int Launcher::run() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGCHLD})
    sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, &signalsBefore);
  std::fflush(stdout);
  std::fflush(stderr);
  for (int32_t rank = 0; rank < segment.plan().ranks && !ended; ++rank)
    if (!startRank(rank))
      endRun(ExitInput,
             "cannot start " + rankText(rank) + ": " + std::strerror(errno));
  double last = monotonicSeconds();
  while (running > 0) {
    timespec pause = {0, 100 * 1000 * 1000};
    int signal = sigtimedwait(&signals, nullptr, &pause);
    if (signal == SIGINT || signal == SIGTERM)
      takeSignal(signal);
    reap();
    double now = monotonicSeconds();
    // Time in which the launcher itself was stopped says nothing of the ranks.
    double passed = std::min(now - last, 0.5);
    last = now;
    if (ended)
      continue;
    watchHeartbeats(passed);
    watchWaiting(passed);
  }
  sigprocmask(SIG_SETMASK, &signalsBefore, nullptr);
  return status;
}

void Launcher::takeSignal(int signal) {
  std::atomic<int32_t> &stop = segment.header().stopSignal;
  if (stop.load() == 0) {
    stop.store(signal);
    printRemark(std::string(strsignal(signal)) +
                (training.layout ? ": saving after this step"
                                 : ": stopping after this step") +
                "; once more to end at once");
    return;
  }
  endRun(128 + signal, "ended at once, without a save");
}

void Launcher::reap() {
  for (;;) {
    int ending;
    pid_t pid = waitpid(-1, &ending, WNOHANG);
    if (pid <= 0)
      return;
    for (size_t rank = 0; rank < watched.size(); ++rank)
      if (watched[rank].pid == pid && watched[rank].running) {
        watched[rank].running = false;
        --running;
        takeEnd(static_cast<int32_t>(rank), ending);
      }
  }
}

void Launcher::takeEnd(int32_t rank, int ending) {
  if (ended)
    return;
  const RankSlot &slot = segment.slot(rank);
  bool done = slot.phase.load() == Phase::Done;
  if (WIFEXITED(ending) && done) {
    status = WEXITSTATUS(ending);
    return;
  }
  if (WIFEXITED(ending) && slot.messageSize.load() != 0)
    return endRun(WEXITSTATUS(ending), readMessage(slot));
  if (WIFEXITED(ending))
    return lose(rank, format("it ended with status %d", WEXITSTATUS(ending)));
  lose(rank, format("it was killed by signal %d, %s", WTERMSIG(ending),
                    strsignal(WTERMSIG(ending))));
}

void Launcher::lose(int32_t rank, const std::string &why) {
  std::string text = rankText(rank) + " was lost " +
                     describeSlot(segment.slot(rank), training.metadata) +
                     ": " + why;
  if (training.layout)
    text += "; continue from the last checkpoint with --resume";
  endRun(ExitRankLost, text);
}

void Launcher::endRun(int withStatus, const std::string &message) {
  ended = true;
  status = withStatus;
  killAll();
  printError(message);
}

void Launcher::killAll() {
  segment.header().abandoned.store(1);
  for (const Watched &rank : watched)
    if (rank.running)
      kill(rank.pid, SIGKILL); // also ends one that is stopped
}

void Launcher::watchHeartbeats(double passed) {
  for (size_t i = 0; i < watched.size() && !ended; ++i) {
    Watched &rank = watched[i];
    uint32_t beat = segment.slot(static_cast<int32_t>(i)).heartbeat.load();
    rank.silent = beat == rank.heartbeat ? rank.silent + passed : 0;
    rank.heartbeat = beat;
    if (rank.running && rank.silent > heartbeatLimit())
      lose(static_cast<int32_t>(i),
           format("its heartbeat stopped for %.0f s", rank.silent));
  }
}

/// Whether a rank waits at a barrier that nobody has passed since it came.
bool Launcher::waits(int32_t rank) const {
  const RankSlot &slot = segment.slot(rank);
  uint32_t barrier = slot.waitingFor.load();
  return barrier != 0 && segment.barrier(barrier - 1).generation.load() ==
                             slot.waitGeneration.load();
}

void Launcher::watchWaiting(double passed) {
  bool allWait = true;
  for (size_t i = 0; i < watched.size(); ++i) {
    Watched &rank = watched[i];
    auto index = static_cast<int32_t>(i);
    bool waiting = rank.running && waits(index);
    allWait &= waiting || !rank.running;
    uint32_t generation = segment.slot(index).waitGeneration.load();
    bool same = waiting && generation == rank.waitGeneration;
    rank.waiting = same ? rank.waiting + passed : 0;
    rank.waitGeneration = generation;
    if (!same)
      rank.remarkAfter = 60;
    if (rank.waiting < rank.remarkAfter)
      continue;
    rank.remarkAfter *= 2;
    std::string text = rankText(index) + " has waited " +
                       format("%.0f s ", rank.waiting) +
                       describeSlot(segment.slot(index), training.metadata);
    for (int32_t peer = 0; peer < segment.plan().ranks; ++peer)
      if (!waits(peer))
        text += "; rank " + std::to_string(peer) + " is " +
                describeSlot(segment.slot(peer), training.metadata);
    printRemark(text);
  }
  // Seen in several polls, since the slots are not read at one moment.
  stalledPolls = allWait && running > 0 ? stalledPolls + 1 : 0;
  if (stalledPolls < 10)
    return;
  std::string text = "the ranks wait for each other:";
  for (int32_t rank = 0; rank < segment.plan().ranks; ++rank)
    text += (rank ? "; rank " : " rank ") + std::to_string(rank) + " " +
            describeSlot(segment.slot(rank), training.metadata);
  endRun(ExitRankLost, text);
}

} // namespace

int launch(const Training &training, const Segment &segment) {
  return Launcher(training, segment).run();
}

} // namespace espalier::runtime
