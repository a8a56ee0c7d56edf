//===- TokenData.cpp - Windows of a corpus of tokens ----------------------===//

#include "runtime/Data.h"
#include "runtime/Support.h"

#include <algorithm>
#include <cstring>

namespace espalier::runtime {
namespace {

template <typename T>
uint64_t largest(const uint8_t *bytes, uint64_t count) {
  T most = 0;
  for (uint64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    most = std::max(most, value);
  }
  return most;
}

uint64_t tokenAt(const uint8_t *bytes, uint32_t size, uint64_t index) {
  uint32_t value = 0;
  std::memcpy(&value, bytes + index * size, size);
  return value;
}

} // namespace

Status Data::openTokens(const Metadata &metadata,
                        std::vector<std::string> &remarks) {
  ESPALIER_TRY(corpus.open(path));
  tokenBytes = metadata.data.tokenBytes;
  sequence = metadata.data.sequence;
  if (corpus.size() % tokenBytes != 0)
    return Status::error(
        format("%s has %llu bytes, which is no whole number of uint%u tokens",
               path.c_str(), static_cast<unsigned long long>(corpus.size()),
               tokenBytes * 8));
  uint64_t tokens = corpus.size() / tokenBytes;
  auto window = static_cast<uint64_t>(sequence);
  sampleCount = tokens == 0 ? 0 : (tokens - 1) / window;
  if (sampleCount == 0)
    return Status::error(format(
        "%s has %llu tokens, too few for one window of %llu and its label",
        path.c_str(), static_cast<unsigned long long>(tokens),
        static_cast<unsigned long long>(window)));
  if (uint64_t tail = tokens - (sampleCount * window + 1); tail != 0)
    remarks.push_back(
        format("%s: the last %llu tokens fill no window and are left out",
               path.c_str(), static_cast<unsigned long long>(tail)));
  for (const std::string &name : {metadata.data.input, metadata.data.labels})
    if (std::none_of(
            metadata.tensors.begin(), metadata.tensors.end(),
            [&](const TensorInfo &tensor) { return tensor.name == name; }))
      return Status::error("the job's data names '" + name +
                           "', which the model does not read");
  for (const TensorInfo &tensor : metadata.tensors)
    if (tensor.role == Role::Input || tensor.role == Role::Label)
      ESPALIER_TRY(addTokenTensor(metadata, tensor, remarks));
  return Status::success();
}

Status Data::addTokenTensor(const Metadata &metadata, const TensorInfo &tensor,
                            std::vector<std::string> &remarks) {
  if (tensor.dtype != EspalierI64 && tensor.dtype != EspalierI32)
    return Status::error("'" + tensor.name + "' is of " +
                         dtypeName(tensor.dtype) +
                         ", so it cannot be read from tokens");
  bool isInput = tensor.name == metadata.data.input;
  if (!isInput && tensor.name != metadata.data.labels) {
    for (const FillInfo &fill : metadata.fill)
      if (fill.input == tensor.name)
        return addFill(fill, tensor, remarks);
    return Status::error("'" + tensor.name +
                         "' is an input of the model that tokens do not give, "
                         "and nothing says how to fill it");
  }
  if (tensor.shape.size() != 2 || tensor.shape[1] != sequence)
    return Status::error("'" + tensor.name + "' has the shape " +
                         shapeText(tensor.shape) +
                         ", but windows of tokens give [batch, " +
                         std::to_string(sequence) + "]");
  RowSource source;
  source.tensor = &tensor;
  source.kind = RowSource::Kind::Tokens;
  source.base = corpus.data();
  source.rowElements = static_cast<uint64_t>(sequence);
  source.tokenBytes = tokenBytes;
  source.shift = isInput ? 0 : 1;
  sources.push_back(source);
  uint64_t tokens = sampleCount * source.rowElements;
  return checkTokens(tensor, source.shift, source.shift + tokens);
}

Status Data::checkTokens(const TensorInfo &tensor, uint64_t first,
                         uint64_t end) const {
  int64_t low = tensor.range ? tensor.range->first : 0;
  int64_t high = tensor.range                  ? tensor.range->second
                 : tensor.dtype == EspalierI32 ? int64_t{1} << 31
                                               : int64_t{1} << 32;
  const uint8_t *bytes = corpus.data() + first * tokenBytes;
  uint64_t most = tokenBytes == 2 ? largest<uint16_t>(bytes, end - first)
                                  : largest<uint32_t>(bytes, end - first);
  if (low <= 0 && most < static_cast<uint64_t>(std::max<int64_t>(high, 0)))
    return Status::success();
  for (uint64_t i = first; i < end; ++i) {
    auto value = static_cast<int64_t>(tokenAt(corpus.data(), tokenBytes, i));
    bool ignored = tensor.ignore && value == *tensor.ignore;
    if ((value < low || value >= high) && !ignored)
      return Status::error(format(
          "%s: token %llu is %lld, but '%s' takes ids from %lld to %lld",
          path.c_str(), static_cast<unsigned long long>(i),
          static_cast<long long>(value), tensor.name.c_str(),
          static_cast<long long>(low), static_cast<long long>(high - 1)));
  }
  return Status::success();
}

Status Data::addFill(const FillInfo &fill, const TensorInfo &tensor,
                     std::vector<std::string> &remarks) {
  static const char *const names[] = {"positions", "ones", "zeros"};
  RowSource source;
  source.tensor = &tensor;
  source.kind = RowSource::Kind::Constant;
  source.rowElements =
      static_cast<uint64_t>(tensor.elements() / tensor.shape[0]);
  source.constants.resize(source.rowElements);
  int64_t last = tensor.shape.size() > 1 ? tensor.shape.back() : 1;
  for (uint64_t i = 0; i < source.rowElements; ++i)
    source.constants[i] = fill.with == FillInfo::With::Positions
                              ? static_cast<int64_t>(i) % last
                          : fill.with == FillInfo::With::Ones ? 1
                                                              : 0;
  sources.push_back(std::move(source));
  remarks.push_back("input '" + tensor.name + "' is filled with " +
                    names[static_cast<int>(fill.with)]);
  return Status::success();
}

} // namespace espalier::runtime
