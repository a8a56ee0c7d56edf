//===- Data.cpp - Samples of a safetensors file, and the feeding of ranks -===//

#include "runtime/Data.h"

#include "runtime/Support.h"

#include <cstring>

namespace espalier::runtime {
namespace {

bool isFed(const TensorInfo &tensor) {
  return tensor.role == Role::Input || tensor.role == Role::Label;
}

std::string allowedText(const TensorInfo &tensor) {
  std::string text = std::to_string(tensor.range->first) + " to " +
                     std::to_string(tensor.range->second - 1);
  if (tensor.ignore)
    text += ", and " + std::to_string(*tensor.ignore) + " for none";
  return text;
}

/// The index of the first value that is not allowed, or `count`.
template <typename T>
uint64_t firstOutside(const uint8_t *bytes, uint64_t count,
                      const TensorInfo &tensor) {
  const int64_t low = tensor.range->first, high = tensor.range->second;
  const int64_t ignore = tensor.ignore.value_or(low);
  auto at = [bytes](uint64_t i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    return static_cast<int64_t>(value);
  };
  auto outside = [=](int64_t value) {
    return ((value < low) | (value >= high)) & (value != ignore);
  };
  constexpr uint64_t block = 4096;
  for (uint64_t from = 0; from < count; from += block) {
    uint64_t to = std::min(count, from + block);
    bool found = false;
    for (uint64_t i = from; i < to; ++i)
      found |= outside(at(i));
    for (uint64_t i = from; found && i < to; ++i)
      if (outside(at(i)))
        return i;
  }
  return count;
}

Status checkRange(const std::string &path, const TensorInfo &tensor,
                  const uint8_t *bytes, uint64_t count, uint64_t rowElements) {
  if (tensor.dtype == EspalierI1) {
    for (uint64_t i = 0; i < count; ++i)
      if (bytes[i] > 1)
        return Status::error(
            format("%s: tensor '%s': sample %llu holds %d, which is no boolean",
                   path.c_str(), tensor.name.c_str(),
                   static_cast<unsigned long long>(i / rowElements), bytes[i]));
    return Status::success();
  }
  bool integers = tensor.dtype == EspalierI64 || tensor.dtype == EspalierI32;
  if (!tensor.range || !integers)
    return Status::success();
  bool wide = tensor.dtype == EspalierI64;
  uint64_t at = wide ? firstOutside<int64_t>(bytes, count, tensor)
                     : firstOutside<int32_t>(bytes, count, tensor);
  if (at == count)
    return Status::success();
  int64_t value = 0;
  if (wide) {
    std::memcpy(&value, bytes + at * 8, 8);
  } else {
    int32_t narrow;
    std::memcpy(&narrow, bytes + at * 4, 4);
    value = narrow;
  }
  return Status::error(format(
      "%s: tensor '%s': sample %llu holds %lld, but valid are %s", path.c_str(),
      tensor.name.c_str(), static_cast<unsigned long long>(at / rowElements),
      static_cast<long long>(value), allowedText(tensor).c_str()));
}

} // namespace

Status Data::open(const Metadata &metadata, const std::string &override,
                  std::vector<std::string> &remarks) {
  path = !override.empty()
             ? override
             : joinPath(metadata.jobDirectory, metadata.data.file);
  if (metadata.data.kind == DataInfo::Kind::None)
    return Status::error("this binary cannot train: its job had no `data`, so "
                         "that the form of the data is not known");
  if (override.empty() && metadata.data.file.empty())
    return Status::error("no data: give --data F");
  ESPALIER_TRY(metadata.data.kind == DataInfo::Kind::Tokens
                   ? openTokens(metadata, remarks)
                   : openSamples(metadata, remarks));
  if (sampleCount < static_cast<uint64_t>(metadata.globalBatch))
    remarks.push_back(format(
        "%s has only %llu samples, fewer than a global batch of %lld; it is "
        "read again and again within a step",
        path.c_str(), static_cast<unsigned long long>(sampleCount),
        static_cast<long long>(metadata.globalBatch)));
  return Status::success();
}

uint64_t Data::sampleAt(uint64_t position) const {
  uint64_t index = position % sampleCount;
  return shuffle ? (*shuffle)(position / sampleCount, index) : index;
}

std::string Data::summary() const {
  return path + ", " + std::to_string(sampleCount) +
         (sequence ? " windows of " + std::to_string(sequence) + " tokens"
                   : " samples") +
         (shuffle ? ", shuffled" : "");
}

Status Data::openSamples(const Metadata &metadata,
                         std::vector<std::string> &remarks) {
  ESPALIER_TRY(tensors.open(path));
  for (const TensorInfo &tensor : metadata.tensors)
    if (isFed(tensor))
      ESPALIER_TRY(addSampleTensor(tensor));
  if (sources.empty() || sampleCount == 0)
    return Status::error(path + " has no samples");
  for (const auto &entry : tensors.tensors()) {
    bool used = false;
    for (const RowSource &source : sources)
      used |= source.tensor->name == entry.first;
    if (!used)
      remarks.push_back(path + ": tensor '" + entry.first +
                        "' is no input of the model and is not read");
  }
  if (metadata.data.shuffle)
    shuffle.emplace(metadata.seed, sampleCount);
  return Status::success();
}

Status Data::addSampleTensor(const TensorInfo &tensor) {
  auto found = tensors.tensors().find(tensor.name);
  std::string which = path + ": tensor '" + tensor.name + "'";
  if (found == tensors.tensors().end())
    return Status::error(path + " has no tensor '" + tensor.name +
                         "', which the model reads");
  const SafetensorsEntry &entry = found->second;
  if (entry.dtype != safetensorsDtype(tensor.dtype))
    return Status::error(which + " is of " + entry.dtype +
                         ", but the model takes " +
                         safetensorsDtype(tensor.dtype));
  std::vector<int64_t> expected = tensor.shape;
  if (!entry.shape.empty())
    expected[0] = entry.shape[0];
  if (entry.shape != expected)
    return Status::error(
        which + " has the shape " + shapeText(entry.shape) +
        ", but the model takes [samples" +
        shapeText(tensor.shape)
            .substr(1 + std::to_string(tensor.shape[0]).size()));
  auto count = static_cast<uint64_t>(entry.shape[0]);
  if (!sources.empty() && count != sampleCount)
    return Status::error(which + " has " + std::to_string(count) +
                         " samples, but '" + sources[0].tensor->name +
                         "' has " + std::to_string(sampleCount));
  sampleCount = count;
  RowSource source;
  source.tensor = &tensor;
  source.base = tensors.data(entry);
  source.rowElements =
      static_cast<uint64_t>(tensor.elements() / tensor.shape[0]);
  sources.push_back(source);
  return checkRange(path, tensor, source.base, count * source.rowElements,
                    std::max<uint64_t>(source.rowElements, 1));
}

void Feeder::add(const TensorInfo &tensor, int32_t rank, uint8_t *to) {
  if (!to)
    return;
  if (tensor.role == Role::Valid) {
    valid = to;
    validRows = shardOf(tensor, rank).dims[0];
  } else if (tensor.role == Role::Rng) {
    rng = reinterpret_cast<int64_t *>(to);
  } else if (tensor.role == Role::Step) {
    stepPlace = reinterpret_cast<int64_t *>(to);
  } else if (isFed(tensor)) {
    for (const RowSource &source : data.rows())
      if (source.tensor == &tensor)
        addRows(source, rank, to);
  }
}

void Feeder::addRows(const RowSource &source, int32_t rank, uint8_t *to) {
  Shard shard = shardOf(*source.tensor, rank);
  Feed feed;
  feed.source = &source;
  feed.to = to;
  feed.rows = shard.dims[0];
  // The part of a row that this rank holds is the same for all rows.
  Shard row;
  row.dims.assign(shard.dims.begin() + 1, shard.dims.end());
  for (const DimBlock &dim : row.dims) {
    row.localElements *= dim.local;
    row.empty |= dim.size == 0;
  }
  feed.localRow = static_cast<uint64_t>(row.localElements);
  std::vector<int64_t> shape(source.tensor->shape.begin() + 1,
                             source.tensor->shape.end());
  forEachRun(shape, row, 0, static_cast<int64_t>(source.rowElements),
             [&feed](int64_t logical, int64_t local, int64_t count) {
               feed.runs.push_back({logical, local, count});
             });
  feeds.push_back(std::move(feed));
}

namespace {

template <typename To, typename From>
void convert(uint8_t *to, const uint8_t *from, int64_t count) {
  auto *target = reinterpret_cast<To *>(to);
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(From),
                sizeof(From));
    target[i] = static_cast<To>(value);
  }
}

/// Integers of `bytes` bytes as the tensor's i64 or i32.
void convertIntegers(EspalierDtype dtype, uint8_t *to, const uint8_t *from,
                     uint32_t bytes, int64_t count) {
  bool wide = dtype == EspalierI64;
  if (bytes == 2)
    (wide ? convert<int64_t, uint16_t> : convert<int32_t, uint16_t>)(to, from,
                                                                     count);
  else if (bytes == 4)
    (wide ? convert<int64_t, uint32_t> : convert<int32_t, uint32_t>)(to, from,
                                                                     count);
  else
    (wide ? convert<int64_t, int64_t> : convert<int32_t, int64_t>)(to, from,
                                                                   count);
}

} // namespace

void Feeder::fillRow(const Feed &feed, uint64_t sample, uint8_t *to) {
  const RowSource &source = *feed.source;
  const uint64_t bytes = dtypeBytes(source.tensor->dtype);
  for (const Run &run : feed.runs) {
    uint8_t *target = to + static_cast<uint64_t>(run.local) * bytes;
    auto logical = static_cast<uint64_t>(run.logical);
    switch (source.kind) {
    case RowSource::Kind::Copy:
      std::memcpy(target,
                  source.base + (sample * source.rowElements + logical) * bytes,
                  static_cast<uint64_t>(run.count) * bytes);
      break;
    case RowSource::Kind::Tokens:
      // Windows start at a stride of their length, without the label's token.
      convertIntegers(
          source.tensor->dtype, target,
          source.base + (sample * source.rowElements + logical + source.shift) *
                            source.tokenBytes,
          source.tokenBytes, run.count);
      break;
    case RowSource::Kind::Constant:
      convertIntegers(
          source.tensor->dtype, target,
          reinterpret_cast<const uint8_t *>(source.constants.data() + logical),
          8, run.count);
      break;
    }
  }
}

void Feeder::load(int64_t step, int64_t microBatch) {
  int64_t first = microBatch * metadata.batch;
  int64_t real = std::min(metadata.batch, metadata.globalBatch - first);
  auto position = static_cast<uint64_t>(step * metadata.globalBatch + first);
  for (const Feed &feed : feeds) {
    uint64_t rowBytes = feed.localRow * dtypeBytes(feed.source->tensor->dtype);
    for (int64_t i = 0; i < feed.rows.local; ++i) {
      uint8_t *to = feed.to + static_cast<uint64_t>(i) * rowBytes;
      int64_t logical = feed.rows.begin + i;
      bool isReal = i < feed.rows.size && logical < real;
      // Padding holds the first sample, not zeros, in which a model may divide
      // or take a logarithm: its gradient is zero, and zero times infinity is
      // not.
      fillRow(
          feed,
          data.sampleAt(position + static_cast<uint64_t>(isReal ? logical : 0)),
          to);
    }
  }
  for (int64_t i = 0; valid && i < validRows.local; ++i)
    valid[i] = i < validRows.size && validRows.begin + i < real;
  if (rng) {
    rng[0] = metadata.seed;
    rng[1] = step;
    rng[2] = microBatch;
  }
  loadStep(step);
}

void Feeder::loadStep(int64_t step) {
  if (stepPlace)
    *stepPlace = step;
}

} // namespace espalier::runtime
