//===- Rendezvous.cpp - Ranks that another launcher has started -----------===//
//
// Rank 0 makes the segment and listens on a socket in the abstract name space,
// which ends with the process and leaves nothing behind. Each other rank
// connects, says who it is and what it is about to run, and gets the segment's
// file descriptor. Only processes of the same user are answered.
//
//===----------------------------------------------------------------------===//

#include "runtime/Random.h"
#include "runtime/Support.h"
#include "runtime/Training.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace espalier::runtime {
namespace {

constexpr double joinLimit = 60; // seconds
constexpr uint64_t magic = 0x3165696c61707345;

std::string environmentText(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

int32_t environmentNumber(const char *name, int32_t absent) {
  const char *text = std::getenv(name);
  return text && *text ? std::atoi(text) : absent;
}

struct KnownLauncher {
  const char *name, *rank, *ranks, *localRanks;
  std::vector<const char *> job;
};

const std::vector<KnownLauncher> &knownLaunchers() {
  static const std::vector<KnownLauncher> launchers = {
      {"torchrun",
       "RANK",
       "WORLD_SIZE",
       "LOCAL_WORLD_SIZE",
       {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_RESTART_COUNT"}},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK",
       "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_SIZE",
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
      {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", {}},
      {"SLURM",
       "SLURM_PROCID",
       "SLURM_STEP_NUM_TASKS",
       "SLURM_STEP_TASKS_PER_NODE",
       {"SLURM_JOB_ID", "SLURM_STEP_ID"}}};
  return launchers;
}

/// What a rank says when it joins.
struct Hello {
  uint64_t magic = 0;
  int32_t rank = -1;
  uint32_t run = 0; // a hash of what it is about to run
};

std::string runText(const Training &training) {
  const Metadata &metadata = training.metadata;
  return metadata.modelFingerprint + "/" + metadata.planFingerprint +
         format("/%d/%lld/%lld/%zu/%zu", training.program.ranks,
                static_cast<long long>(training.firstStep),
                static_cast<long long>(training.steps),
                static_cast<size_t>(training.segmentPlan().checksums),
                static_cast<size_t>(training.segmentPlan().profileEntries));
}

/// The socket's address and its length.
socklen_t addressOf(const std::string &job, sockaddr_un &address) {
  std::string name =
      format("espalier-%d-%08x", static_cast<int>(getuid()), hashName(job)) +
      job.substr(0, 60);
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                name.size());
}

bool isOwnUser(int connection) {
  ucred peer;
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == getuid();
}

bool sendDescriptor(int connection, int descriptor) {
  char byte = 1;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  return sendmsg(connection, &message, MSG_NOSIGNAL) == 1;
}

int receiveDescriptor(int connection) {
  char byte;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != 1)
    return -1;
  cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS)
    return -1;
  int descriptor;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof(int));
  return descriptor;
}

void limitWaits(int connection) {
  timeval limit = {static_cast<time_t>(joinLimit), 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

std::string missingText(const std::vector<bool> &joined) {
  std::string text;
  for (size_t rank = 0; rank < joined.size(); ++rank)
    if (!joined[rank])
      text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

/// Answers one rank; an error if it is not of this run.
Status welcome(int connection, const Hello &own, int segment,
               std::vector<bool> &joined) {
  Hello hello;
  limitWaits(connection);
  if (!isOwnUser(connection) ||
      recv(connection, &hello, sizeof hello, MSG_WAITALL) != sizeof hello ||
      hello.magic != magic)
    return Status::success(); // a stranger
  if (hello.rank < 1 || static_cast<size_t>(hello.rank) >= joined.size() ||
      joined[static_cast<size_t>(hello.rank)])
    return Status::error("two processes are rank " +
                         std::to_string(hello.rank));
  if (hello.run != own.run)
    return Status::error(
        "ranks 0 and " + std::to_string(hello.rank) +
        " run different binaries, or have different arguments");
  if (sendDescriptor(connection, segment))
    joined[static_cast<size_t>(hello.rank)] = true;
  return Status::success();
}

Status serve(const Training &training, const std::string &job, const Hello &own,
             Segment &segment) {
  sockaddr_un address;
  socklen_t size = addressOf(job, address);
  Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid() ||
      bind(listener.get(), reinterpret_cast<sockaddr *>(&address), size) != 0 ||
      listen(listener.get(), 64) != 0)
    return systemError("rank 0 cannot listen for the other ranks");
  ESPALIER_TRY(segment.create(training.segmentPlan()));
  std::vector<bool> joined(static_cast<size_t>(training.program.ranks));
  joined[0] = true;
  double begun = monotonicSeconds(), remark = 10;
  while (!missingText(joined).empty()) {
    double waited = monotonicSeconds() - begun;
    if (waited > joinLimit)
      return Status::error(
          format("after %.0f s these ranks have not joined: ", waited) +
          missingText(joined));
    if (waited > remark) {
      remark += 10;
      printRemark("waiting for the ranks " + missingText(joined));
    }
    pollfd ready = {listener.get(), POLLIN, 0};
    if (poll(&ready, 1, 500) <= 0)
      continue;
    Descriptor connection(
        accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.valid())
      ESPALIER_TRY(
          welcome(connection.get(), own, segment.descriptor(), joined));
  }
  return Status::success();
}

Status join(const Training &training, const std::string &job, const Hello &own,
            Segment &segment) {
  sockaddr_un address;
  socklen_t size = addressOf(job, address);
  double begun = monotonicSeconds();
  while (monotonicSeconds() - begun < joinLimit) {
    Descriptor connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(connection.get(), reinterpret_cast<sockaddr *>(&address),
                size) != 0) {
      usleep(50 * 1000); // rank 0 is not there yet
      continue;
    }
    limitWaits(connection.get());
    if (send(connection.get(), &own, sizeof own, MSG_NOSIGNAL) != sizeof own)
      continue;
    int descriptor = receiveDescriptor(connection.get());
    if (descriptor < 0)
      return Status::error("rank " + std::to_string(own.rank) +
                           " was not accepted by rank 0");
    return segment.attach(descriptor, training.segmentPlan());
  }
  return Status::error("rank " + std::to_string(own.rank) +
                       " did not find rank 0 on this host");
}

std::atomic<int32_t> *stopSignal = nullptr;

void onSignal(int signal) {
  int32_t none = 0;
  stopSignal->compare_exchange_strong(none, signal);
}

/// Only asks for a stop after this step: launchers send several signals.
void stopOnSignals(const Segment &segment) {
  stopSignal = &segment.header().stopSignal;
  struct sigaction action = {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

} // namespace

LauncherEnvironment launcherEnvironment() {
  for (const KnownLauncher &known : knownLaunchers()) {
    LauncherEnvironment found;
    found.rank = environmentNumber(known.rank, -1);
    found.ranks = environmentNumber(known.ranks, -1);
    // A launcher of one process leaves the ranks to us.
    if (found.rank < 0 || found.ranks <= 1)
      continue;
    found.localRanks = environmentNumber(known.localRanks, found.ranks);
    found.name = known.name;
    found.job = known.name;
    bool named = false;
    for (const char *part : known.job) {
      named |= !environmentText(part).empty();
      found.job += "/" + environmentText(part);
    }
    if (!named) // the ranks have the launcher as their parent
      found.job += "/" + std::to_string(getppid());
    return found;
  }
  return {};
}

int joinRanks(const Training &training,
              const LauncherEnvironment &environment) {
  const int32_t rank = environment.rank, ranks = training.program.ranks;
  auto refuse = [](const std::string &text) {
    printError(text);
    return ExitInput;
  };
  if (environment.localRanks != environment.ranks)
    return refuse("not supported: ranks on several hosts (" + environment.name +
                  " says " + std::to_string(environment.ranks) + " ranks, " +
                  std::to_string(environment.localRanks) + " on this host)");
  if (environment.ranks != ranks || rank >= ranks)
    return refuse(format("%s started %d ranks, but this binary's plan has %d",
                         environment.name.c_str(), environment.ranks, ranks));
  Hello own{magic, rank, hashName(runText(training))};
  Segment segment;
  Status status = rank == 0 ? serve(training, environment.job, own, segment)
                            : join(training, environment.job, own, segment);
  if (!status.ok())
    return refuse(status.text());
  stopOnSignals(segment);
  return runRank(training, segment, rank, /*supervised=*/false);
}

} // namespace espalier::runtime
