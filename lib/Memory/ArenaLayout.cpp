//===- ArenaLayout.cpp - Places in one arena for blocks with lives --------===//

#include "espalier/Memory/ArenaLayout.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace llvm;
using namespace espalier;
using namespace espalier::memory;

namespace {

using Order = SmallVector<unsigned>;

/// Places blocks one after another, each into the lowest gap that fits.
class Packer {
public:
  explicit Packer(ArrayRef<Block> blocks) : blocks(blocks) {
    for (unsigned i = 0; i < blocks.size(); ++i)
      sizes.push_back(alignToArena(blocks[i].bytes));
    findNeighbours();
  }

  /// The layout for an order; stops, with a larger one, at `limit` bytes.
  int64_t pack(ArrayRef<unsigned> order, int64_t limit,
               SmallVectorImpl<int64_t> &offsets) {
    offsets.assign(blocks.size(), -1);
    int64_t bytes = 0;
    for (unsigned block : order) {
      offsets[block] = lowestGap(block, offsets);
      bytes = std::max(bytes, offsets[block] + sizes[block]);
      if (bytes >= limit)
        return bytes;
    }
    return bytes;
  }

  int64_t sizeOf(unsigned block) const { return sizes[block]; }
  int64_t bound() const;

private:
  void findNeighbours();
  int64_t lowestGap(unsigned block, ArrayRef<int64_t> offsets);

  ArrayRef<Block> blocks;
  SmallVector<int64_t> sizes;
  SmallVector<SmallVector<unsigned>> neighbours;  // blocks alive at one time
  SmallVector<std::pair<int64_t, int64_t>> taken; // of the last search
};

} // namespace

void Packer::findNeighbours() {
  neighbours.resize(blocks.size());
  Order byFirst(blocks.size());
  std::iota(byFirst.begin(), byFirst.end(), 0);
  llvm::stable_sort(byFirst, [&](unsigned a, unsigned b) {
    return blocks[a].first < blocks[b].first;
  });
  Order alive;
  for (unsigned block : byFirst) {
    llvm::erase_if(alive, [&](unsigned other) {
      return blocks[other].last < blocks[block].first;
    });
    if (sizes[block] == 0)
      continue;
    for (unsigned other : alive) {
      neighbours[block].push_back(other);
      neighbours[other].push_back(block);
    }
    alive.push_back(block);
  }
}

int64_t Packer::bound() const {
  SmallVector<std::pair<int64_t, int64_t>> changes; // at event, by bytes
  for (auto [block, size] : llvm::zip(blocks, sizes)) {
    changes.push_back({block.first, size});
    changes.push_back({block.last + 1, -size});
  }
  llvm::sort(changes); // at one event, what ends before what begins
  int64_t alive = 0, most = 0;
  for (auto [event, bytes] : changes)
    most = std::max(most, alive += bytes);
  return most;
}

int64_t Packer::lowestGap(unsigned block, ArrayRef<int64_t> offsets) {
  taken.clear();
  for (unsigned other : neighbours[block])
    if (offsets[other] >= 0)
      taken.push_back({offsets[other], offsets[other] + sizes[other]});
  llvm::sort(taken);
  // The gap that is least too large, or the end.
  int64_t end = 0, best = -1, bestGap = 0;
  for (auto [begin, stop] : taken) {
    int64_t gap = begin - end;
    if (gap >= sizes[block] && (best < 0 || gap < bestGap)) {
      best = end;
      bestGap = gap;
    }
    end = std::max(end, stop);
  }
  return best < 0 ? end : best;
}

/// The orders to begin with: by size, by area, by time, by length of life.
static SmallVector<Order> greedyOrders(ArrayRef<Block> blocks,
                                       const Packer &packer) {
  auto length = [&](unsigned i) {
    return blocks[i].last - blocks[i].first + 1;
  };
  auto sorted = [&](auto key) {
    Order order(blocks.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::stable_sort(order,
                      [&](unsigned a, unsigned b) { return key(a) < key(b); });
    return order;
  };
  return {
      sorted([&](unsigned i) { return -packer.sizeOf(i); }),
      sorted([&](unsigned i) { return -packer.sizeOf(i) * length(i); }),
      sorted([&](unsigned i) {
        return std::pair(blocks[i].first, -packer.sizeOf(i));
      }),
      sorted(
          [&](unsigned i) { return std::pair(-length(i), -packer.sizeOf(i)); }),
  };
}

/// Moves a block to an earlier place of the order and keeps what is not worse.
static void improve(Packer &packer, Order order, ArenaLayout &layout) {
  if (order.size() < 3)
    return;
  std::mt19937 random(1);
  // A fixed amount of work, so that the compiler's time does not explode.
  int64_t rounds = std::min<int64_t>(
      2000, 4'000'000 / int64_t(order.size() * order.size() / 8 + 1));
  SmallVector<int64_t> offsets;
  int64_t current = packer.pack(order, INT64_MAX, offsets);
  for (int64_t round = 0; round < rounds && layout.bytes > layout.bound;
       ++round) {
    Order changed = order;
    unsigned from = random() % order.size(), to = random() % order.size();
    std::rotate(changed.begin() + std::min(from, to),
                changed.begin() + std::max(from, to),
                changed.begin() + std::max(from, to) + 1);
    int64_t bytes = packer.pack(changed, current + 1, offsets);
    if (bytes > current)
      continue;
    current = bytes;
    order = std::move(changed);
    if (bytes < layout.bytes) {
      layout.bytes = bytes;
      layout.offsets = offsets;
    }
  }
}

ArenaLayout memory::layOutArena(ArrayRef<Block> blocks) {
  Packer packer(blocks);
  ArenaLayout layout;
  layout.bound = packer.bound();
  layout.bytes = INT64_MAX;
  Order best;
  SmallVector<int64_t> offsets;
  for (Order &order : greedyOrders(blocks, packer)) {
    int64_t bytes = packer.pack(order, INT64_MAX, offsets);
    if (bytes < layout.bytes) {
      layout.bytes = bytes;
      layout.offsets = offsets;
      best = std::move(order);
    }
  }
  improve(packer, std::move(best), layout);
  return layout;
}
