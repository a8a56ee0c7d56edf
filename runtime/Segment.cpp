//===- Segment.cpp - The memory that the ranks of a host share ------------===//

#include "runtime/Segment.h"

#include "runtime/File.h"
#include "runtime/Support.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace espalier::runtime {
namespace {

constexpr uint64_t hugePage = uint64_t{2} << 20;

static_assert(std::atomic<uint64_t>::is_always_lock_free,
              "atomics in shared memory must not need a lock");

/// Bytes that the machine can still give, or UINT64_MAX if it does not say.
uint64_t availableMemory() {
  uint64_t available = UINT64_MAX;
  if (FILE *file = std::fopen("/proc/meminfo", "r")) {
    char line[256];
    unsigned long long kib;
    while (std::fgets(line, sizeof line, file))
      if (std::sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
        available = kib << 10;
    std::fclose(file);
  }
  unsigned long long limit, used;
  auto read = [](const char *path, unsigned long long &value) {
    FILE *file = std::fopen(path, "r");
    bool found = file && std::fscanf(file, "%llu", &value) == 1;
    if (file)
      std::fclose(file);
    return found;
  };
  if (read("/sys/fs/cgroup/memory.max", limit) &&
      read("/sys/fs/cgroup/memory.current", used) && limit > used)
    available = std::min<uint64_t>(available, limit - used);
  return available;
}

} // namespace

const char *phaseName(Phase phase) {
  switch (phase) {
  case Phase::Starting:
    return "while starting";
  case Phase::Loading:
    return "while loading";
  case Phase::Training:
    return "while training";
  case Phase::Saving:
    return "while saving a checkpoint";
  case Phase::Done:
    return "at its end";
  }
  return "";
}

Segment::~Segment() {
  if (base)
    munmap(base, totalBytes);
  if (fd >= 0)
    close(fd);
}

void Segment::layOut(const SegmentPlan &plan) {
  sizes = plan;
  auto ranks = static_cast<uint64_t>(plan.ranks);
  uint64_t at = sizeof(SegmentHeader);
  auto place = [&at](uint64_t bytes, uint64_t alignment) {
    uint64_t begin = roundUp(at, alignment);
    at = begin + bytes;
    return begin;
  };
  slotsAt = place(ranks * sizeof(RankSlot), alignof(RankSlot));
  barriersAt = place(plan.barriers * sizeof(SharedBarrier), 64);
  checksumsAt = place(plan.checksums * sizeof(uint32_t), 64);
  profileAt = place(ranks * plan.profileEntries * sizeof(double), 64);
  arenaStride = roundUp(std::max<uint64_t>(plan.arenaBytes, 1), hugePage);
  arenasAt = place(ranks * arenaStride, hugePage);
  totalBytes = at;
}

Status Segment::create(const SegmentPlan &plan) {
  layOut(plan);
  uint64_t available = availableMemory();
  if (totalBytes > available)
    return Status::error(format(
        "the arenas of %d ranks take %s (%s each), but this machine has only "
        "%s of memory left",
        plan.ranks, humanBytes(totalBytes).c_str(),
        humanBytes(plan.arenaBytes).c_str(), humanBytes(available).c_str()));
  fd = memfd_create("espalier-arenas", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(totalBytes)) != 0)
    return systemError("cannot make " + humanBytes(totalBytes) +
                       " of shared memory");
  return map();
}

Status Segment::attach(int descriptor, const SegmentPlan &plan) {
  layOut(plan);
  fd = descriptor;
  struct stat facts;
  if (fstat(fd, &facts) != 0 ||
      static_cast<uint64_t>(facts.st_size) != totalBytes)
    return Status::error("the shared memory of rank 0 has another size than "
                         "this rank's plan: the ranks run different binaries");
  return map();
}

Status Segment::map() {
  // A reservation first, so that the arenas can start at a huge page.
  auto *reserved = static_cast<uint8_t *>(
      mmap(nullptr, totalBytes + hugePage, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (reserved == MAP_FAILED)
    return systemError("cannot map " + humanBytes(totalBytes));
  auto address = roundUp(reinterpret_cast<uint64_t>(reserved), hugePage);
  auto *aligned = reinterpret_cast<uint8_t *>(address);
  void *mapped = mmap(aligned, totalBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED)
    return systemError("cannot map " + humanBytes(totalBytes) +
                       " of shared memory");
  base = aligned;
  // Refused where the system has no huge pages for shared memory; then the
  // arenas have small ones.
  (void)madvise(base + arenasAt, totalBytes - arenasAt, MADV_HUGEPAGE);
  return Status::success();
}

Status Segment::populateArena(int32_t rank) const {
  uint8_t *begin = arena(rank);
#ifdef MADV_POPULATE_WRITE
  if (madvise(begin, arenaStride, MADV_POPULATE_WRITE) == 0)
    return Status::success();
  if (errno != EINVAL)
    return systemError("cannot get the memory of the arena (" +
                       humanBytes(arenaStride) + ")");
#endif
  for (uint64_t at = 0; at < arenaStride; at += 4096)
    static_cast<volatile uint8_t *>(begin)[at] = 0;
  return Status::success();
}

SegmentHeader &Segment::header() const {
  return *reinterpret_cast<SegmentHeader *>(base);
}
RankSlot &Segment::slot(int32_t rank) const {
  return reinterpret_cast<RankSlot *>(base + slotsAt)[rank];
}
SharedBarrier &Segment::barrier(uint32_t index) const {
  return reinterpret_cast<SharedBarrier *>(base + barriersAt)[index];
}
uint32_t *Segment::checksums() const {
  return reinterpret_cast<uint32_t *>(base + checksumsAt);
}
double *Segment::profile(int32_t rank) const {
  return reinterpret_cast<double *>(base + profileAt) +
         static_cast<uint64_t>(rank) * sizes.profileEntries;
}
uint8_t *Segment::arena(int32_t rank) const {
  return base + arenasAt + static_cast<uint64_t>(rank) * arenaStride;
}

void leaveMessage(RankSlot &slot, const std::string &text) {
  size_t size = std::min(text.size(), sizeof slot.message);
  std::memcpy(slot.message, text.data(), size);
  slot.messageSize.store(static_cast<uint32_t>(size));
}

std::string readMessage(const RankSlot &slot) {
  size_t size = std::min<size_t>(slot.messageSize.load(), sizeof slot.message);
  return std::string(slot.message, size);
}

} // namespace espalier::runtime
