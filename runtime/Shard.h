//===- Shard.h - Which part of a tensor a rank holds ------------*- C++ -*-===//
//
// A dimension of n elements is cut over axes a1 (major), a2, ... by nested
// ceilings: blocks of ceil(n / a1), each cut into blocks of its size / a2,
// rounded up, and so on. With a granule g it is the ceil(n / g) granules that
// are cut. Every rank's local shape is that of a full block; what lies beyond
// the end is padding.
//
//   10 over 4 x 2:  blocks of 3, then of 2:  2, 1, 2, 1, 2, 1, 1, 0 elements
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_SHARD_H
#define ESPALIER_RUNTIME_SHARD_H

#include "runtime/Metadata.h"

namespace espalier::runtime {

struct DimBlock {
  int64_t begin = 0; // first logical element
  int64_t size = 0;  // elements that exist
  int64_t local = 0; // elements of the local dimension, with padding
};

DimBlock blockOf(int64_t extent, const std::vector<ShardAxis> &axes,
                 int64_t granule, int64_t rank);

/// The box of logical elements that a rank holds, and its local form.
struct Shard {
  std::vector<DimBlock> dims;
  int64_t localElements = 1;
  bool empty = false; // only padding

  bool operator==(const Shard &other) const;
};

Shard shardOf(const TensorInfo &tensor, int64_t rank);

/// Calls `visit(logical, local, count)` for each longest run of elements that
/// are neighbours both in the logical tensor (row-major) and in `shard`, among
/// the logical elements first .. first + count - 1.
template <typename Visit>
void forEachRun(const std::vector<int64_t> &shape, const Shard &shard,
                int64_t first, int64_t count, Visit visit);

} // namespace espalier::runtime

#include "runtime/ShardRuns.h"

#endif // ESPALIER_RUNTIME_SHARD_H
