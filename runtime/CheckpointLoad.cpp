//===- CheckpointLoad.cpp - Reading checkpoints ---------------------------===//

#include "runtime/Checkpoint.h"
#include "runtime/Crc32c.h"
#include "runtime/Json.h"

#include <algorithm>

namespace espalier::runtime {
namespace {

constexpr uint64_t mostIndexBytes = uint64_t{256} << 20;
const char *const indexName = "/model.safetensors.index.json";

/// N of "step-N", or -1.
int64_t stepOf(const std::string &name) {
  if (name.rfind("step-", 0) != 0 || name.size() < 6 || name.size() > 23 ||
      name.find_first_not_of("0123456789", 5) != std::string::npos)
    return -1;
  return std::stoll(name.substr(5, 18));
}

/// A file's name that stays inside its folder.
bool isPlainName(const std::string &name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

} // namespace

Status SavedCheckpoint::open(const std::string &directory,
                             const Metadata &metadata,
                             const CheckpointLayout &layout) {
  ESPALIER_TRY(readIndex(directory));
  ESPALIER_TRY(readState(metadata));
  ESPALIER_TRY(openFiles());
  return match(layout);
}

Status SavedCheckpoint::readIndex(const std::string &directory) {
  std::string path = directory + indexName, text;
  ESPALIER_TRY(readFile(path, mostIndexBytes, text));
  JsonDocument document(path, text);
  JsonNode map = document.root().at("weight_map");
  for (const auto &entry : map.object().items()) {
    std::string file = map.member(entry.key(), entry.value()).text();
    size_t slash = file.find('/');
    std::string name = file.substr(0, slash);
    if (slash == std::string::npos || stepOf(name) < 0 ||
        (!folder.empty() && directory + "/" + name != folder)) {
      map.fail("'" + entry.key() + "' is in '" + file +
               "', which is no file of a checkpoint of this program");
      break;
    }
    folder = directory + "/" + name;
    doneSteps = stepOf(name);
    weightMap[entry.key()] = file.substr(slash + 1);
  }
  if (folder.empty())
    map.fail("is empty");
  return document.status();
}

Status SavedCheckpoint::readState(const Metadata &metadata) {
  std::string path = folder + "/state.json", text;
  ESPALIER_TRY(readFile(path, mostIndexBytes, text));
  JsonDocument document(path, text);
  JsonNode root = document.root();
  root.onlyKeys({"version", "tool", "job", "step", "data_position", "seed",
                 "fingerprints", "files", "chunk_bytes", "crc32c"});
  root.at("version").integer(1, 1);
  int64_t step = root.at("step").integer(0);
  int64_t position = root.at("data_position").integer(0);
  int64_t seed = root.at("seed").integer();
  std::string model = root.at("fingerprints").at("model").text();
  JsonNode names = root.at("files");
  for (size_t i = 0; i < names.size(); ++i) {
    fileNames.push_back(names[i].text());
    if (!isPlainName(fileNames.back()))
      names[i].fail("is no file's name");
  }
  if (root.at("chunk_bytes").integer(1) != static_cast<int64_t>(chunkBytes))
    root.fail("expects chunks of " + std::to_string(chunkBytes) + " bytes");
  JsonNode sums = root.at("crc32c");
  for (const auto &entry : sums.object().items()) {
    JsonNode list = sums.member(entry.key(), entry.value());
    for (size_t i = 0; i < list.size(); ++i)
      checksums[entry.key()].push_back(
          static_cast<uint32_t>(list[i].integer(0, UINT32_MAX)));
    checksums[entry.key()];
  }
  ESPALIER_TRY(document.status());
  if (model != metadata.modelFingerprint)
    return Status::error(folder +
                         " is the checkpoint of another model "
                         "(fingerprint " +
                         model + ", this binary's is " +
                         metadata.modelFingerprint + ")");
  if (step != doneSteps)
    return Status::error(path + " is of step " + std::to_string(step));
  if (position != step * metadata.globalBatch)
    return Status::error(folder + " was trained with another global batch (" +
                         std::to_string(position) + " samples in " +
                         std::to_string(step) + " steps, this job takes " +
                         std::to_string(metadata.globalBatch) + " a step)");
  if (seed != metadata.seed)
    return Status::error(folder + " was trained with the seed " +
                         std::to_string(seed) + ", this job has " +
                         std::to_string(metadata.seed));
  return Status::success();
}

Status SavedCheckpoint::openFiles() {
  opened.resize(fileNames.size());
  for (size_t i = 0; i < fileNames.size(); ++i)
    ESPALIER_TRY(opened[i].open(folder + "/" + fileNames[i]));
  return Status::success();
}

Status SavedCheckpoint::match(const CheckpointLayout &layout) {
  for (const StoredTensor &stored : layout.tensors)
    ESPALIER_TRY(matchTensor(stored));
  size_t known = layout.tensors.size(), present = 0;
  for (const SafetensorsFile &file : opened)
    for (const auto &entry : file.tensors()) {
      ++present;
      bool expected = std::any_of(layout.tensors.begin(), layout.tensors.end(),
                                  [&](const StoredTensor &stored) {
                                    return stored.name == entry.first;
                                  });
      if (!expected)
        return Status::error(file.path() + ": tensor '" + entry.first +
                             "' is none of this program's");
    }
  if (present != known)
    return Status::error(folder + ": a tensor occurs in two files");
  for (const StoredTensor &stored : layout.tensors) {
    if (!stored.isAlias || stored.transposed)
      continue;
    if (checksums[stored.name] != checksums[stored.tensor->name])
      return Status::error(folder + ": '" + stored.name + "' and '" +
                           stored.tensor->name +
                           "' are one parameter, but differ");
  }
  return Status::success();
}

Status SavedCheckpoint::matchTensor(const StoredTensor &stored) {
  for (size_t i = 0; i < opened.size(); ++i) {
    auto found = opened[i].tensors().find(stored.name);
    if (found == opened[i].tensors().end())
      continue;
    std::string which = opened[i].path() + ": tensor '" + stored.name + "'";
    const SafetensorsEntry &entry = found->second;
    if (entry.dtype != safetensorsDtype(stored.tensor->dtype) ||
        entry.shape != stored.shape)
      return Status::error(which + " is " + entry.dtype + " " +
                           shapeText(entry.shape) + ", but this program has " +
                           safetensorsDtype(stored.tensor->dtype) + " " +
                           shapeText(stored.shape));
    if (!stored.optimizer && weightMap[stored.name] != fileNames[i])
      return Status::error(which + " is not where the index says");
    Source source{opened[i].data(entry), opened[i].path(),
                  checksums[stored.name]};
    if (source.checksums.size() !=
        chunkCount(stored.tensor->elements(), dtypeBytes(stored.tensor->dtype)))
      return Status::error(folder + "/state.json has no checksums of '" +
                           stored.name + "'");
    sources.push_back(std::move(source));
    return Status::success();
  }
  return Status::error(folder + " has no tensor '" + stored.name + "'");
}

Status SavedCheckpoint::load(const Rank &rank,
                             const CheckpointLayout &layout) const {
  auto [begin, end] = layout.share(rank.context.rank, rank.context.ranks);
  for (size_t i = begin; i < end; ++i) {
    const Chunk &chunk = layout.chunks[i];
    const StoredTensor &stored = layout.tensors[chunk.tensor];
    const Source &source = sources[chunk.tensor];
    const uint64_t bytes = dtypeBytes(stored.tensor->dtype);
    uint64_t at = static_cast<uint64_t>(chunk.first) * bytes;
    uint64_t size = static_cast<uint64_t>(chunk.count) * bytes;
    if (crc32c(source.data + at, size) !=
        source.checksums[i - stored.firstChunk])
      return Status::error(format(
          "%s is damaged: bytes %llu to %llu of tensor '%s' do not have their "
          "checksum",
          source.path.c_str(), static_cast<unsigned long long>(at),
          static_cast<unsigned long long>(at + size - 1), stored.name.c_str()));
    if (!stored.isAlias)
      TensorPlaces(rank, *stored.tensor)
          .scatter(chunk.first, chunk.count, source.data + at);
  }
  return Status::success();
}

} // namespace espalier::runtime
