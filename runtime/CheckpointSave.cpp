//===- CheckpointSave.cpp - Writing checkpoints ---------------------------===//

#include "runtime/Checkpoint.h"
#include "runtime/Crc32c.h"
#include "runtime/Json.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace espalier::runtime {
namespace {

// As large as tools that read such files like them.
constexpr uint64_t mostFileBytes = uint64_t{4} << 30;

const char *const indexName = "model.safetensors.index.json";

std::string fileName(bool optimizer, size_t index, size_t count) {
  return format("%s-%05zu-of-%05zu.safetensors",
                optimizer ? "optimizer" : "model", index + 1, count);
}

std::string shapeJson(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace

CheckpointLayout::CheckpointLayout(const Metadata &metadata) {
  for (const TensorInfo &tensor : metadata.tensors) {
    if (!tensor.checkpoint)
      continue;
    add(tensor, tensor.name, false);
    if (!tensor.alias.empty())
      add(tensor, tensor.alias, true);
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor &left, const StoredTensor &right) {
              return std::tie(left.optimizer, left.name) <
                     std::tie(right.optimizer, right.name);
            });
  placeInFiles(false);
  placeInFiles(true);
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].firstChunk = chunks.size();
    int64_t elements = tensors[i].tensor->elements();
    auto step =
        static_cast<int64_t>(chunkBytes / dtypeBytes(tensors[i].tensor->dtype));
    for (int64_t at = 0; at < elements; at += step)
      chunks.push_back({i, at, std::min(step, elements - at)});
  }
}

void CheckpointLayout::add(const TensorInfo &tensor, const std::string &name,
                           bool isAlias) {
  StoredTensor stored;
  stored.tensor = &tensor;
  stored.name = name;
  stored.shape = tensor.shape;
  stored.isAlias = isAlias;
  stored.transposed = isAlias && tensor.aliasTransposed;
  if (stored.transposed)
    std::swap(stored.shape[0], stored.shape[1]);
  stored.optimizer = tensor.role == Role::State;
  tensors.push_back(std::move(stored));
}

void CheckpointLayout::placeInFiles(bool optimizer) {
  size_t firstFile = files.size();
  std::vector<std::string> headers;
  for (StoredTensor &stored : tensors) {
    if (stored.optimizer != optimizer)
      continue;
    uint64_t bytes = stored.tensor->bytes();
    if (headers.empty() ||
        files.back().dataBytes + bytes > std::max(mostFileBytes, bytes)) {
      files.emplace_back();
      headers.emplace_back("{\"__metadata__\":{\"format\":\"pt\"}");
    }
    stored.file = files.size() - 1;
    stored.begin = files.back().dataBytes;
    files.back().dataBytes += bytes;
    headers.back() += ",";
    appendJsonText(headers.back(), stored.name);
    headers.back() += std::string(":{\"dtype\":\"") +
                      safetensorsDtype(stored.tensor->dtype) +
                      "\",\"shape\":" + shapeJson(stored.shape) +
                      ",\"data_offsets\":[" + std::to_string(stored.begin) +
                      "," + std::to_string(files.back().dataBytes) + "]}";
    (optimizer ? totalBytes : modelBytes) += bytes;
  }
  for (size_t i = 0; i < headers.size(); ++i) {
    // Padded, so that the data is aligned.
    std::string text = headers[i] + "}";
    text.resize(roundUp(text.size(), 8), ' ');
    uint64_t length = text.size();
    std::string prefix(reinterpret_cast<const char *>(&length), 8);
    files[firstFile + i].header = prefix + text;
    files[firstFile + i].name = fileName(optimizer, i, headers.size());
    totalBytes += prefix.size() + length;
  }
  if (!optimizer)
    totalBytes += modelBytes;
}

std::pair<size_t, size_t> CheckpointLayout::share(int32_t rank,
                                                  int32_t ranks) const {
  return shareOf(chunks, rank, ranks, [this](const Chunk &chunk) {
    return static_cast<uint64_t>(chunk.count) *
           dtypeBytes(tensors[chunk.tensor].tensor->dtype);
  });
}

bool hasCheckpoint(const std::string &directory) {
  return exists(directory + "/" + indexName);
}

Status claimCheckpointDirectory(const std::string &directory,
                                const CheckpointLayout &layout) {
  ESPALIER_TRY(makeDirectories(directory));
  // Kept open on purpose: the lock ends with the last process that has it.
  int lock = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0)
    return systemError("cannot open " + directory);
  // The ranks of a run that was just killed need a moment to end.
  for (int tries = 0; flock(lock, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK)
      break; // a file system without locks
    if (tries == 40) {
      close(lock);
      return Status::error("another run writes its checkpoints to " +
                           directory);
    }
    usleep(50 * 1000);
  }
  std::string probe = directory + "/.espalier-probe";
  Status status = writeFile(probe, "x");
  unlink(probe.c_str());
  if (!status.ok())
    return Status::error("checkpoints cannot be written: " + status.text());
  struct statvfs facts;
  if (statvfs(directory.c_str(), &facts) == 0) {
    uint64_t room = uint64_t{facts.f_bavail} * facts.f_frsize;
    if (room < layout.totalBytes)
      return Status::error(
          "a checkpoint takes " + humanBytes(layout.totalBytes) + ", but " +
          directory + " has room for only " + humanBytes(room));
  }
  return Status::success();
}

namespace {

class Saver {
public:
  Saver(Rank &rank, const CheckpointLayout &layout,
        const std::string &directory, int64_t steps)
      : rank(rank), layout(layout), directory(directory), steps(steps),
        folder(directory + "/step-" + std::to_string(steps)) {}

  Status run() {
    bool leads = rank.context.rank == 0;
    rank.communicator.barrier();
    ESPALIER_TRY(agree(leads ? prepare() : Status::success()));
    ESPALIER_TRY(agree(writeShare()));
    ESPALIER_TRY(agree(leads ? commit() : Status::success()));
    return Status::success();
  }

private:
  Status agree(const Status &own);
  Status prepare();
  Status writeShare();
  Status writeChunk(size_t index, std::vector<Descriptor> &open,
                    std::vector<uint8_t> &buffer);
  Status commit();
  std::string stateText() const;
  std::string indexText() const;
  void removeOthers(const std::string &previous) const;

  Rank &rank;
  const CheckpointLayout &layout;
  const std::string &directory;
  int64_t steps;
  std::string folder;
  bool committed = false; // the index names our folder
};

/// Waits for all ranks, and returns the first error that one of them has.
Status Saver::agree(const Status &own) {
  if (!own.ok()) {
    size_t size = std::min(own.text().size(), sizeof rank.slot.message);
    std::memcpy(rank.slot.message, own.text().data(), size);
    rank.slot.saveFailed.store(static_cast<uint32_t>(size));
  }
  rank.communicator.barrier();
  for (int32_t peer = 0; peer < rank.context.ranks; ++peer) {
    const RankSlot &slot = rank.segment.slot(peer);
    uint32_t size = slot.saveFailed.load();
    if (size == 0)
      continue;
    std::string text(slot.message, size);
    if (rank.context.rank == 0 && !committed)
      (void)removeFlatDirectory(folder);
    return Status::error("the checkpoint of step " + std::to_string(steps) +
                         " was not saved: " + text);
  }
  return Status::success();
}

/// Makes the files at their full size, so that a full disk shows now.
Status Saver::prepare() {
  ESPALIER_TRY(removeFlatDirectory(folder)); // left by a run that was killed
  if (mkdir(folder.c_str(), 0777) != 0)
    return systemError("cannot create the folder " + folder);
  for (const StoredFile &file : layout.files) {
    std::string path = folder + "/" + file.name;
    Descriptor out(
        open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!out.valid())
      return systemError("cannot create " + path);
    uint64_t bytes = file.header.size() + file.dataBytes;
    errno = posix_fallocate(out.get(), 0, static_cast<off_t>(bytes));
    if (errno != 0)
      return systemError("cannot write " + path + " (" + humanBytes(bytes) +
                         ")");
    ESPALIER_TRY(
        writeAllAt(out.get(), file.header.data(), file.header.size(), 0, path));
  }
  return Status::success();
}

Status Saver::writeShare() {
  auto [begin, end] = layout.share(rank.context.rank, rank.context.ranks);
  std::vector<Descriptor> open;
  for (size_t i = 0; i < layout.files.size(); ++i)
    open.emplace_back(-1);
  std::vector<uint8_t> buffer;
  for (size_t i = begin; i < end; ++i)
    ESPALIER_TRY(writeChunk(i, open, buffer));
  for (size_t i = 0; i < open.size(); ++i)
    if (open[i].valid() && fsync(open[i].get()) != 0)
      return systemError("cannot write " + folder + "/" + layout.files[i].name);
  return Status::success();
}

Status Saver::writeChunk(size_t index, std::vector<Descriptor> &open,
                         std::vector<uint8_t> &buffer) {
  const Chunk &chunk = layout.chunks[index];
  const StoredTensor &stored = layout.tensors[chunk.tensor];
  const StoredFile &file = layout.files[stored.file];
  std::string path = folder + "/" + file.name;
  if (!open[stored.file].valid()) {
    open[stored.file] = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!open[stored.file].valid())
      return systemError("cannot open " + path);
  }
  const uint64_t bytes = dtypeBytes(stored.tensor->dtype);
  buffer.resize(static_cast<uint64_t>(chunk.count) * bytes);
  TensorPlaces places(rank, *stored.tensor);
  if (stored.transposed)
    places.gatherTransposed(chunk.first, chunk.count, buffer.data());
  else
    places.gather(chunk.first, chunk.count, buffer.data());
  rank.segment.checksums()[index] = crc32c(buffer.data(), buffer.size());
  return writeAllAt(open[stored.file].get(), buffer.data(), buffer.size(),
                    file.header.size() + stored.begin +
                        static_cast<uint64_t>(chunk.first) * bytes,
                    path);
}

std::string Saver::stateText() const {
  const Metadata &metadata = rank.metadata;
  std::string text = "{\n  \"version\": 1,\n  \"tool\": ";
  appendJsonText(text, metadata.tool);
  text += ",\n  \"job\": ";
  appendJsonText(text, metadata.jobName);
  text += ",\n  \"step\": " + std::to_string(steps);
  text +=
      ",\n  \"data_position\": " + std::to_string(steps * metadata.globalBatch);
  text += ",\n  \"seed\": " + std::to_string(metadata.seed);
  text += ",\n  \"fingerprints\": {\"model\": ";
  appendJsonText(text, metadata.modelFingerprint);
  text += ", \"plan\": ";
  appendJsonText(text, metadata.planFingerprint);
  text += "},\n  \"files\": [";
  for (size_t i = 0; i < layout.files.size(); ++i) {
    text += i ? ", " : "";
    appendJsonText(text, layout.files[i].name);
  }
  text += "],\n  \"chunk_bytes\": " + std::to_string(chunkBytes) +
          ",\n  \"crc32c\": {";
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const StoredTensor &stored = layout.tensors[i];
    text += i ? ",\n    " : "\n    ";
    appendJsonText(text, stored.name);
    text += ": [";
    uint64_t count =
        chunkCount(stored.tensor->elements(), dtypeBytes(stored.tensor->dtype));
    for (uint64_t k = 0; k < count; ++k)
      text += format("%s%u", k ? ", " : "",
                     rank.segment.checksums()[stored.firstChunk + k]);
    text += "]";
  }
  return text + "\n  }\n}\n";
}

std::string Saver::indexText() const {
  std::string text = "{\n  \"metadata\": {\"total_size\": " +
                     std::to_string(layout.modelBytes) +
                     "},\n  \"weight_map\": {";
  bool first = true;
  for (const StoredTensor &stored : layout.tensors) {
    if (stored.optimizer)
      continue;
    text += first ? "\n    " : ",\n    ";
    first = false;
    appendJsonText(text, stored.name);
    text += ": ";
    appendJsonText(text, "step-" + std::to_string(steps) + "/" +
                             layout.files[stored.file].name);
  }
  return text + "\n  }\n}\n";
}

/// The "step-N" that an index names, or nothing.
std::string committedFolder(const std::string &directory) {
  std::string text;
  if (!readFile(directory + "/" + indexName, UINT64_MAX, text).ok())
    return "";
  JsonDocument document("", text);
  JsonNode map = document.root().get("weight_map");
  for (const auto &entry : map.object().items()) {
    std::string file = map.member(entry.key(), entry.value()).text();
    return file.substr(0, file.find('/'));
  }
  return "";
}

Status Saver::commit() {
  std::string previous = committedFolder(directory);
  ESPALIER_TRY(writeFile(folder + "/state.json", stateText()));
  ESPALIER_TRY(syncDirectory(folder));
  std::string index = directory + "/" + indexName;
  ESPALIER_TRY(writeFile(index + ".new", indexText()));
  ESPALIER_TRY(syncDirectory(directory));
  if (rename((index + ".new").c_str(), index.c_str()) != 0)
    return systemError("cannot replace " + index);
  committed = true;
  ESPALIER_TRY(syncDirectory(directory));
  removeOthers(previous);
  return Status::success();
}

/// Keeps this checkpoint and the one before it.
void Saver::removeOthers(const std::string &previous) const {
  DIR *entries = opendir(directory.c_str());
  if (!entries)
    return;
  while (dirent *entry = readdir(entries)) {
    std::string name = entry->d_name;
    bool isStep = name.rfind("step-", 0) == 0 && name.size() > 5 &&
                  name.find_first_not_of("0123456789", 5) == std::string::npos;
    if (isStep && directory + "/" + name != folder && name != previous)
      (void)removeFlatDirectory(directory + "/" + name);
  }
  closedir(entries);
}

} // namespace

Status saveCheckpoint(Rank &rank, const CheckpointLayout &layout,
                      const std::string &directory, int64_t steps) {
  Phase before = rank.slot.phase.exchange(Phase::Saving);
  Status status = Saver(rank, layout, directory, steps).run();
  rank.slot.phase.store(before);
  return status;
}

} // namespace espalier::runtime
