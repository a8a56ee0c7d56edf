//===- Rank.h - What one rank's process has ---------------------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_RANK_H
#define ESPALIER_RUNTIME_RANK_H

#include "runtime/Communicator.h"
#include "runtime/Profile.h"

namespace espalier::runtime {

/// What EspalierContext::runtime points to.
struct Rank {
  Rank(const EspalierProgram &program, const Metadata &metadata,
       const Segment &segment, int32_t rank, bool supervised);

  const EspalierProgram &program;
  const Metadata &metadata;
  const Segment &segment;
  Communicator communicator;
  RankSlot &slot;
  Profile profile;
  EspalierContext context;

  const EspalierClass &ownClass() const;

  /// Where a tensor lies in the arena of `rank`; null if it is not there.
  uint8_t *place(const TensorInfo &tensor, int32_t rank) const;
};

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_RANK_H
