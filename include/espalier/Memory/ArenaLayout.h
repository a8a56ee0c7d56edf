//===- ArenaLayout.h - Places in one arena for blocks with lives *- C++ -*-===//
//
// The offline problem of dynamic storage allocation: blocks whose sizes and
// lives are known get offsets such that blocks that live at one time do not
// overlap, and the arena is as small as can be found. The problem is NP-hard;
// what is found is compared with the liveness bound, the most bytes that live
// at one time, which no layout can go below.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_MEMORY_ARENALAYOUT_H
#define ESPALIER_MEMORY_ARENALAYOUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace espalier::memory {

/// Every offset is a multiple of this: a cache line, and the widest vector.
inline constexpr int64_t arenaAlignment = 64; // bytes

/// A block of `bytes` that lives from event `first` to event `last`, both
/// included.
struct Block {
  int64_t bytes;
  int64_t first;
  int64_t last;
};

struct ArenaLayout {
  llvm::SmallVector<int64_t> offsets; // of the blocks, in bytes
  int64_t bytes = 0;                  // of the arena
  int64_t bound = 0;                  // the most bytes alive at one time
};

/// Lays the blocks out. Deterministic. Blocks of size 0 get offset 0.
///
/// | bytes, lives              | layout                                      |
/// |---------------------------|---------------------------------------------|
/// | 64 [0,1], 64 [2,3]        | both at 0                                   |
/// | 64 [0,1], 64 [1,2]        | 0 and 64                                    |
ArenaLayout layOutArena(llvm::ArrayRef<Block> blocks);

/// `bytes` rounded up to the arena's alignment.
inline int64_t alignToArena(int64_t bytes) {
  return (bytes + arenaAlignment - 1) / arenaAlignment * arenaAlignment;
}

} // namespace espalier::memory

#endif // ESPALIER_MEMORY_ARENALAYOUT_H
