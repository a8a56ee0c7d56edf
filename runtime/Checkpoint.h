//===- Checkpoint.h - Saving and resuming -----------------------*- C++ -*-===//
//
// DIR/step-N/ holds the logical tensors of the state after N steps, and
// DIR/model.safetensors.index.json, replaced by rename when all of it is on the
// disk, says which step-N that is. README.md gives the format. What is written
// depends on the state alone: not on the layout, not on the time.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_CHECKPOINT_H
#define ESPALIER_RUNTIME_CHECKPOINT_H

#include "runtime/Safetensors.h"
#include "runtime/Transfer.h"

namespace espalier::runtime {

/// A tensor of a checkpoint. A tied pair is two of them.
struct StoredTensor {
  const TensorInfo *tensor = nullptr;
  std::string name;
  std::vector<int64_t> shape;
  bool isAlias = false;
  bool transposed = false;
  bool optimizer = false;  // of optimizer-*.safetensors
  size_t file = 0;         // into StoredFiles
  uint64_t begin = 0;      // in the file's data
  uint64_t firstChunk = 0; // into the chunks
};

struct StoredFile {
  std::string name;
  std::string header; // with its length
  uint64_t dataBytes = 0;
};

/// What the checkpoints of a program look like: a function of its metadata.
class CheckpointLayout {
public:
  explicit CheckpointLayout(const Metadata &metadata);

  std::vector<StoredTensor> tensors; // model then optimizer, each by name
  std::vector<StoredFile> files;
  std::vector<Chunk> chunks; // in the order of `tensors`
  uint64_t totalBytes = 0;   // of a checkpoint
  uint64_t modelBytes = 0;   // of the model's tensors

  std::pair<size_t, size_t> share(int32_t rank, int32_t ranks) const;

private:
  void add(const TensorInfo &tensor, const std::string &name, bool isAlias);
  void placeInFiles(bool optimizer);
};

/// A committed checkpoint, opened and compared with the program.
class SavedCheckpoint {
public:
  /// Opens the newest one in `directory`.
  Status open(const std::string &directory, const Metadata &metadata,
              const CheckpointLayout &layout);

  int64_t step() const { return doneSteps; }

  /// Reads this rank's share of the chunks into all arenas, with checksums.
  Status load(const Rank &rank, const CheckpointLayout &layout) const;

private:
  Status readIndex(const std::string &directory);
  Status readState(const Metadata &metadata);
  Status openFiles();
  Status match(const CheckpointLayout &layout);
  Status matchTensor(const StoredTensor &stored);

  struct Source {
    const uint8_t *data = nullptr;
    std::string path;
    std::vector<uint32_t> checksums;
  };

  std::string folder; // DIR/step-N
  int64_t doneSteps = 0;
  std::map<std::string, std::string> weightMap; // name to path below DIR
  std::vector<std::string> fileNames;
  std::vector<SafetensorsFile> opened;
  std::map<std::string, std::vector<uint32_t>> checksums;
  std::vector<Source> sources; // by the layout's tensors
};

/// Whether `directory` has a committed checkpoint.
bool hasCheckpoint(const std::string &directory);

/// The folder of checkpoints of this run: made if it is absent, tried for
/// writing and room, and held against other runs until this process ends.
Status claimCheckpointDirectory(const std::string &directory,
                                const CheckpointLayout &layout);

/// Saves the state after `steps` steps. Called by all ranks together; returns
/// the same on all of them. After an error the checkpoint before is intact.
Status saveCheckpoint(Rank &rank, const CheckpointLayout &layout,
                      const std::string &directory, int64_t steps);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_CHECKPOINT_H
