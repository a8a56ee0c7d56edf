//===- Segment.h - The memory that the ranks of a host share ----*- C++ -*-===//
//
// One segment (a memfd, so that nothing is left behind whatever happens) holds
// the arenas of all ranks, each at a multiple of two MiB, and before them what
// the ranks need to tell each other:
//
//   header | a slot per rank | a barrier per group, and the world's |
//   checksums of a checkpoint | times of the profile | arena 0 | arena 1 | ...
//
// Everything begins as zero bytes.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_SEGMENT_H
#define ESPALIER_RUNTIME_SEGMENT_H

#include "runtime/Status.h"

#include <atomic>
#include <cstdint>

namespace espalier::runtime {

/// What a rank is doing, for messages about a lost one.
enum class Phase : int32_t { Starting, Loading, Training, Saving, Done };
const char *phaseName(Phase phase); // "while starting"

/// What a rank shows to the others. Only the rank itself writes it.
struct alignas(128) RankSlot {
  std::atomic<uint32_t> heartbeat; // changes several times a second
  std::atomic<int32_t> pid;
  std::atomic<Phase> phase;
  std::atomic<int32_t> op;   // index into the metadata's ops, plus one; 0: none
  std::atomic<int64_t> step; // from 0
  std::atomic<uint32_t> waitingFor;     // barrier, plus one; 0: not waiting
  std::atomic<uint32_t> waitGeneration; // of that barrier, when it came
  std::atomic<uint32_t> messageSize;    // 0: no message
  std::atomic<uint32_t> saveFailed;
  alignas(64) std::atomic<uint64_t> signature; // of the collective it is in
  alignas(64) char message[1920];
};

/// A barrier whose generation counts how often it was passed.
struct alignas(64) SharedBarrier {
  std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;
  std::atomic<uint32_t> sleepers;
};

/// What all ranks do after a step, decided by rank 0.
enum Decision : uint32_t { DecideSave = 1, DecideStop = 2 };

struct alignas(64) SegmentHeader {
  std::atomic<int32_t> stopSignal; // SIGINT or SIGTERM was received; 0: none
  std::atomic<int32_t> abandoned;  // the launcher has given up
  std::atomic<uint32_t> decision;  // a set of Decision
};

struct SegmentPlan {
  int32_t ranks = 1;
  uint32_t barriers = 1; // one per group, and the last: of all ranks
  uint64_t checksums = 0;
  uint64_t profileEntries = 0; // per rank
  uint64_t arenaBytes = 0;     // the largest of all classes
};

class Segment {
public:
  Segment() = default;
  Segment(const Segment &) = delete;
  Segment &operator=(const Segment &) = delete;
  ~Segment();

  /// Makes a new segment, after checking that the machine has memory for it.
  Status create(const SegmentPlan &plan);

  /// Maps the segment that another process has created with an equal plan.
  Status attach(int fd, const SegmentPlan &plan);

  /// Gives the arena of `rank` its memory now, so that it does not run out
  /// later, and from the node of the calling rank.
  Status populateArena(int32_t rank) const;

  const SegmentPlan &plan() const { return sizes; }
  int descriptor() const { return fd; }
  SegmentHeader &header() const;
  RankSlot &slot(int32_t rank) const;
  SharedBarrier &barrier(uint32_t index) const;
  uint32_t *checksums() const;
  double *profile(int32_t rank) const;
  uint8_t *arena(int32_t rank) const;

private:
  void layOut(const SegmentPlan &plan);
  Status map();

  SegmentPlan sizes;
  int fd = -1;
  uint8_t *base = nullptr;
  uint64_t slotsAt = 0, barriersAt = 0, checksumsAt = 0, profileAt = 0,
           arenasAt = 0, arenaStride = 0, totalBytes = 0;
};

/// Leaves `text` in the slot for whoever reports the end of this rank.
void leaveMessage(RankSlot &slot, const std::string &text);
std::string readMessage(const RankSlot &slot);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_SEGMENT_H
