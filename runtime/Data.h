//===- Data.h - Where inputs and labels come from ---------------*- C++ -*-===//
//
// The data is an endless stream of samples: those of the file in their order,
// or in a new permutation each epoch, again and again. Sample i of microbatch m
// of step t is number
//
//   t * global_batch + m * batch + i,   batch = samples of all replicas
//
// of the stream, whatever the layout; those beyond the global batch are not
// valid. So the position is a function of the step, and a resume needs no more.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_DATA_H
#define ESPALIER_RUNTIME_DATA_H

#include "runtime/Random.h"
#include "runtime/Safetensors.h"
#include "runtime/Shard.h"

#include <optional>

namespace espalier::runtime {

/// How to make row s (sample s) of one input or label.
struct RowSource {
  enum class Kind { Copy, Tokens, Constant };
  const TensorInfo *tensor = nullptr;
  Kind kind = Kind::Copy;
  const uint8_t *base = nullptr; // Copy: row 0; Tokens: the corpus
  uint64_t rowElements = 0;      // logical elements of a row
  uint32_t tokenBytes = 0;
  uint64_t shift = 0;             // Tokens: 0 for the input, 1 for the labels
  std::vector<int64_t> constants; // Constant: the row
};

/// An opened and checked source. Made before the ranks are forked, and not
/// changed afterwards.
class Data {
public:
  /// Opens the metadata's data, or `path` in its place, and checks all of it:
  /// shapes, types, ids. What is worth knowing is added to `remarks`.
  Status open(const Metadata &metadata, const std::string &path,
              std::vector<std::string> &remarks);

  uint64_t samples() const { return sampleCount; }
  const std::vector<RowSource> &rows() const { return sources; }
  int64_t tokensPerSample() const { return sequence; } // 0: not tokens
  std::string summary() const;

  /// The sample at a position of the stream.
  uint64_t sampleAt(uint64_t position) const;

private:
  Status openSamples(const Metadata &metadata,
                     std::vector<std::string> &remarks);
  Status addSampleTensor(const TensorInfo &tensor);
  Status openTokens(const Metadata &metadata,
                    std::vector<std::string> &remarks);
  Status addTokenTensor(const Metadata &metadata, const TensorInfo &tensor,
                        std::vector<std::string> &remarks);
  Status addFill(const FillInfo &fill, const TensorInfo &tensor,
                 std::vector<std::string> &remarks);
  Status checkTokens(const TensorInfo &tensor, uint64_t first,
                     uint64_t end) const;

  std::string path;
  SafetensorsFile tensors;
  MappedFile corpus;
  uint32_t tokenBytes = 2;
  int64_t sequence = 0;
  uint64_t sampleCount = 0;
  std::optional<Permutation> shuffle;
  std::vector<RowSource> sources;
};

/// Writes the inputs of one rank into its arena, only its part of them.
class Feeder {
public:
  /// `place` gives where a tensor lies in the rank's arena, or null.
  template <typename Place>
  Feeder(const Data &data, const Metadata &metadata, int32_t rank, Place place)
      : data(data), metadata(metadata) {
    for (const TensorInfo &tensor : metadata.tensors)
      add(tensor, rank, place(tensor));
  }

  /// For microbatch `microBatch` of step `step`. Allocates nothing.
  void load(int64_t step, int64_t microBatch);

  /// The step's number, for the update.
  void loadStep(int64_t step);

private:
  struct Run {
    int64_t logical, local, count;
  };
  struct Feed {
    const RowSource *source;
    uint8_t *to;
    DimBlock rows;
    uint64_t localRow; // elements
    std::vector<Run> runs;
  };

  void add(const TensorInfo &tensor, int32_t rank, uint8_t *to);
  void addRows(const RowSource &source, int32_t rank, uint8_t *to);
  void fillRow(const Feed &feed, uint64_t sample, uint8_t *to);

  const Data &data;
  const Metadata &metadata;
  std::vector<Feed> feeds;
  uint8_t *valid = nullptr;
  DimBlock validRows;
  int64_t *rng = nullptr;
  int64_t *stepPlace = nullptr;
};

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_DATA_H
