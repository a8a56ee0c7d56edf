//===- ShardRuns.h - Body of forEachRun -------------------------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_SHARDRUNS_H
#define ESPALIER_RUNTIME_SHARDRUNS_H

#include "runtime/Shard.h"

#include <algorithm>

namespace espalier::runtime {

template <typename Visit>
void forEachRun(const std::vector<int64_t> &shape, const Shard &shard,
                int64_t first, int64_t count, Visit visit) {
  if (shard.empty || count <= 0)
    return;
  // Dimensions after the last one that is cut are contiguous with it: a line.
  size_t lineDim = shape.size();
  int64_t inner = 1;
  while (lineDim > 0) {
    const DimBlock &dim = shard.dims[lineDim - 1];
    if (dim.size != shape[lineDim - 1] || dim.local != shape[lineDim - 1])
      break;
    inner *= shape[--lineDim];
  }
  if (lineDim == 0)
    return visit(first, first, count);
  --lineDim;
  const DimBlock &cut = shard.dims[lineDim];
  const int64_t line = shape[lineDim] * inner;
  const int64_t low = cut.begin * inner, high = low + cut.size * inner;

  for (int64_t at = first; at < first + count;) {
    int64_t index = at / line;
    int64_t end = std::min(first + count, (index + 1) * line);
    // Position of the line in the local tensor, or -1 if it is not there.
    int64_t local = 0, rest = index, scale = 1;
    for (size_t dim = lineDim; dim-- > 0;) {
      int64_t here = rest % shape[dim] - shard.dims[dim].begin;
      rest /= shape[dim];
      if (here < 0 || here >= shard.dims[dim].size) {
        local = -1;
        break;
      }
      local += here * scale;
      scale *= shard.dims[dim].local;
    }
    int64_t from = std::max(at - index * line, low);
    int64_t to = std::min(end - index * line, high);
    if (local >= 0 && from < to)
      visit(index * line + from, local * cut.local * inner + from - low,
            to - from);
    at = end;
  }
}

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_SHARDRUNS_H
