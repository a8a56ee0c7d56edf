//===- Transfer.h - Between logical tensors and the ranks' arenas -*- C++
//-*-===//
//
// Loading, initializing and saving walk over logical tensors in chunks. Each
// rank does its share of the chunks, and, since it sees all arenas, for all
// ranks: a chunk is read, computed or written once on a host, whatever the
// layout, and no rank ever holds more of a tensor than a chunk.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_TRANSFER_H
#define ESPALIER_RUNTIME_TRANSFER_H

#include "runtime/File.h"
#include "runtime/Rank.h"
#include "runtime/Shard.h"

#include <vector>

namespace espalier::runtime {

/// The largest chunk; checksums of checkpoints are of such pieces.
constexpr uint64_t chunkBytes = uint64_t{16} << 20;

/// Elements `first` .. `first + count - 1` of tensor number `tensor` of a list.
struct Chunk {
  size_t tensor = 0;
  int64_t first = 0, count = 0;
};

/// Chunks of a tensor of `elements` elements.
inline uint64_t chunkCount(int64_t elements, uint64_t elementBytes) {
  return roundUp(static_cast<uint64_t>(elements) * elementBytes, chunkBytes) /
         chunkBytes;
}

/// Cuts a list of chunks into neighbouring shares of about equal bytes.
/// Returns the first and the end of the share of `rank`. `bytesOf` gives the
/// bytes of a chunk.
template <typename BytesOf>
std::pair<size_t, size_t> shareOf(const std::vector<Chunk> &chunks,
                                  int32_t rank, int32_t ranks,
                                  BytesOf bytesOf) {
  uint64_t total = 0, before = 0;
  for (const Chunk &chunk : chunks)
    total += bytesOf(chunk);
  size_t begin = chunks.size(), end = 0;
  for (size_t i = 0; i < chunks.size(); ++i) {
    auto owner = static_cast<int32_t>(static_cast<double>(before) /
                                      static_cast<double>(total + 1) * ranks);
    before += bytesOf(chunks[i]);
    if (owner != rank)
      continue;
    begin = std::min(begin, i);
    end = i + 1;
  }
  return {std::min(begin, end), end};
}

/// Where all ranks keep one tensor.
class TensorPlaces {
public:
  TensorPlaces(const Rank &rank, const TensorInfo &tensor);

  /// Copies the logical elements at `from` into all arenas that hold them.
  void scatter(int64_t first, int64_t count, const uint8_t *from) const;

  /// Copies logical elements from the arenas to `to`.
  void gather(int64_t first, int64_t count, uint8_t *to) const;

  /// The same of the transposed matrix.
  void gatherTransposed(int64_t first, int64_t count, uint8_t *to) const;

private:
  struct Place {
    Shard shard;
    uint8_t *data;
    bool first; // no rank before it holds the same part
  };
  const TensorInfo &tensor;
  uint64_t bytes; // of an element
  std::vector<Place> places;
};

/// The model's own files, opened before the ranks are forked.
class ModelFiles {
public:
  /// Opens every file that an `init` names, below `directory`.
  Status open(const Metadata &metadata, const std::string &directory);

  const uint8_t *data(const TensorInit &init) const;

private:
  std::vector<MappedFile> files;
  std::vector<std::string> names; // as the metadata has them
};

/// Gives the stored tensors their first values: of all of them, or of those
/// that are not in checkpoints. Called by all ranks, which do not wait for each
/// other at its end.
void initialize(Rank &rank, const ModelFiles &files, bool alsoCheckpointed);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_TRANSFER_H
