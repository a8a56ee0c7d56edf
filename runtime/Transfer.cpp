//===- Transfer.cpp - Between logical tensors and the ranks' arenas -------===//

#include "runtime/Transfer.h"

#include "runtime/Random.h"

#include <algorithm>
#include <cstring>

namespace espalier::runtime {

TensorPlaces::TensorPlaces(const Rank &rank, const TensorInfo &tensor)
    : tensor(tensor), bytes(dtypeBytes(tensor.dtype)) {
  for (int32_t peer = 0; peer < rank.context.ranks; ++peer) {
    uint8_t *data = rank.place(tensor, peer);
    if (!data)
      continue;
    Shard shard = shardOf(tensor, peer);
    if (shard.empty)
      continue;
    bool first =
        std::none_of(places.begin(), places.end(),
                     [&](const Place &place) { return place.shard == shard; });
    places.push_back({std::move(shard), data, first});
  }
}

void TensorPlaces::scatter(int64_t first, int64_t count,
                           const uint8_t *from) const {
  for (const Place &place : places)
    forEachRun(tensor.shape, place.shard, first, count,
               [&](int64_t logical, int64_t local, int64_t run) {
                 std::memcpy(place.data + static_cast<uint64_t>(local) * bytes,
                             from +
                                 static_cast<uint64_t>(logical - first) * bytes,
                             static_cast<uint64_t>(run) * bytes);
               });
}

void TensorPlaces::gather(int64_t first, int64_t count, uint8_t *to) const {
  for (const Place &place : places)
    if (place.first)
      forEachRun(tensor.shape, place.shard, first, count,
                 [&](int64_t logical, int64_t local, int64_t run) {
                   std::memcpy(
                       to + static_cast<uint64_t>(logical - first) * bytes,
                       place.data + static_cast<uint64_t>(local) * bytes,
                       static_cast<uint64_t>(run) * bytes);
                 });
}

void TensorPlaces::gatherTransposed(int64_t first, int64_t count,
                                    uint8_t *to) const {
  const int64_t rows = tensor.shape[0]; // columns of the transposed matrix
  for (const Place &place : places) {
    if (!place.first)
      continue;
    const DimBlock &row = place.shard.dims[0], &column = place.shard.dims[1];
    int64_t low = std::max(column.begin, first / rows);
    int64_t high =
        std::min(column.begin + column.size, (first + count - 1) / rows + 1);
    for (int64_t c = low; c < high; ++c) {
      int64_t from = std::max(row.begin, first - c * rows);
      int64_t end = std::min(row.begin + row.size, first + count - c * rows);
      for (int64_t r = from; r < end; ++r)
        std::memcpy(to + static_cast<uint64_t>(c * rows + r - first) * bytes,
                    place.data +
                        static_cast<uint64_t>((r - row.begin) * column.local +
                                              c - column.begin) *
                            bytes,
                    bytes);
    }
  }
}

Status ModelFiles::open(const Metadata &metadata,
                        const std::string &directory) {
  for (const TensorInfo &tensor : metadata.tensors) {
    const TensorInit &init = tensor.init;
    if (init.kind != TensorInit::Kind::File)
      continue;
    auto known = std::find(names.begin(), names.end(), init.path);
    auto index = static_cast<size_t>(known - names.begin());
    if (known == names.end()) {
      MappedFile file;
      Status status = file.open(joinPath(directory, init.path));
      if (!status.ok())
        return Status::error("the initial value of '" + tensor.name +
                             "': " + status.text() +
                             "; if the model has moved, give --model DIR");
      names.push_back(init.path);
      files.push_back(std::move(file));
    }
    const MappedFile &file = files[index];
    if (init.offset > file.size() || init.bytes > file.size() - init.offset)
      return Status::error(
          "the initial value of '" + tensor.name + "' lies beyond the end of " +
          file.path() + ": this is not the file that the binary was made from");
  }
  return Status::success();
}

const uint8_t *ModelFiles::data(const TensorInit &init) const {
  auto known = std::find(names.begin(), names.end(), init.path);
  return files[static_cast<size_t>(known - names.begin())].data() + init.offset;
}

namespace {

uint16_t toBf16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1)) >> 16);
}

void store(EspalierDtype dtype, uint8_t *to, int64_t index, double value) {
  switch (dtype) {
  case EspalierF32:
    reinterpret_cast<float *>(to)[index] = static_cast<float>(value);
    break;
  case EspalierF64:
    reinterpret_cast<double *>(to)[index] = value;
    break;
  case EspalierBf16:
    reinterpret_cast<uint16_t *>(to)[index] = toBf16(static_cast<float>(value));
    break;
  case EspalierI64:
    reinterpret_cast<int64_t *>(to)[index] = static_cast<int64_t>(value);
    break;
  case EspalierI32:
    reinterpret_cast<int32_t *>(to)[index] = static_cast<int32_t>(value);
    break;
  case EspalierI1:
    to[index] = value != 0;
    break;
  }
}

/// The first values of a chunk, computed into `buffer`.
void compute(const TensorInfo &tensor, const Chunk &chunk, int64_t seed,
             uint8_t *buffer) {
  const TensorInit &init = tensor.init;
  PhiloxKey key = randomKey(seed, tensor.name);
  constexpr int64_t block = 1024;
  double values[block];
  std::fill(values, values + block, init.value);
  for (int64_t at = 0; at < chunk.count; at += block) {
    int64_t here = std::min(block, chunk.count - at);
    if (init.kind == TensorInit::Kind::Normal) {
      normals(key, static_cast<uint64_t>(chunk.first + at),
              static_cast<uint64_t>(here), 0, values);
      for (int64_t i = 0; i < here; ++i)
        values[i] = init.mean + init.deviation * values[i];
    }
    for (int64_t i = 0; i < here; ++i)
      store(tensor.dtype, buffer, at + i, values[i]);
  }
}

} // namespace

void initialize(Rank &rank, const ModelFiles &files, bool alsoCheckpointed) {
  const std::vector<TensorInfo> &tensors = rank.metadata.tensors;
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    TensorInit::Kind kind = tensors[i].init.kind;
    // The arenas begin as zeros.
    if (kind == TensorInit::Kind::None || kind == TensorInit::Kind::Zeros ||
        (tensors[i].checkpoint && !alsoCheckpointed))
      continue;
    auto step = static_cast<int64_t>(chunkBytes / dtypeBytes(tensors[i].dtype));
    for (int64_t at = 0; at < tensors[i].elements(); at += step)
      chunks.push_back({i, at, std::min(step, tensors[i].elements() - at)});
  }
  auto [begin, end] = shareOf(chunks, rank.context.rank, rank.context.ranks,
                              [&](const Chunk &chunk) {
                                return static_cast<uint64_t>(chunk.count) *
                                       dtypeBytes(tensors[chunk.tensor].dtype);
                              });
  std::vector<uint8_t> buffer;
  for (size_t i = begin; i < end; ++i) {
    const Chunk &chunk = chunks[i];
    const TensorInfo &tensor = tensors[chunk.tensor];
    const uint64_t bytes = dtypeBytes(tensor.dtype);
    TensorPlaces places(rank, tensor);
    if (tensor.init.kind == TensorInit::Kind::File) {
      places.scatter(chunk.first, chunk.count,
                     files.data(tensor.init) +
                         static_cast<uint64_t>(chunk.first) * bytes);
      continue;
    }
    buffer.resize(static_cast<uint64_t>(chunk.count) * bytes);
    compute(tensor, chunk, rank.metadata.seed, buffer.data());
    places.scatter(chunk.first, chunk.count, buffer.data());
  }
}

} // namespace espalier::runtime
