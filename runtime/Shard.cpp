//===- Shard.cpp - Which part of a tensor a rank holds --------------------===//

#include "runtime/Shard.h"

#include <algorithm>

namespace espalier::runtime {

DimBlock blockOf(int64_t extent, const std::vector<ShardAxis> &axes,
                 int64_t granule, int64_t rank) {
  if (axes.empty())
    return {0, extent, extent};
  int64_t block = (extent + granule - 1) / granule; // in granules
  int64_t begin = 0;
  int64_t end = block;
  for (const ShardAxis &axis : axes) {
    int64_t index = (rank / axis.stride) % axis.size;
    block = (block + axis.size - 1) / axis.size;
    begin += index * block;
    // A minor block ends where the major one that it cuts does.
    end = std::min(end, begin + block);
  }
  int64_t first = std::min(begin * granule, extent);
  int64_t last = std::min(std::max(begin, end) * granule, extent);
  return {first, last - first, block * granule};
}

bool Shard::operator==(const Shard &other) const {
  return std::equal(
      dims.begin(), dims.end(), other.dims.begin(), other.dims.end(),
      [](const DimBlock &left, const DimBlock &right) {
        return left.begin == right.begin && left.size == right.size;
      });
}

Shard shardOf(const TensorInfo &tensor, int64_t rank) {
  Shard shard;
  for (size_t dim = 0; dim < tensor.shape.size(); ++dim) {
    shard.dims.push_back(blockOf(tensor.shape[dim], tensor.sharding[dim],
                                 tensor.granules[dim], rank));
    shard.localElements *= shard.dims.back().local;
    shard.empty |= shard.dims.back().size == 0;
  }
  return shard;
}

} // namespace espalier::runtime
