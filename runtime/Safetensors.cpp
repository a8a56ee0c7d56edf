//===- Safetensors.cpp - Reading and writing safetensors files ------------===//

#include "runtime/Safetensors.h"

#include "runtime/Support.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace espalier::runtime {
namespace {

constexpr uint64_t mostHeaderBytes = 100'000'000;

struct FileDtype {
  const char *name;
  uint64_t bytes;
};
constexpr FileDtype fileDtypes[] = {
    {"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
    {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
    {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

/// Takes the header event by event, and refuses at the first that cannot be
/// part of one: no nesting can exhaust the stack or the memory, and a name that
/// occurs twice is seen.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit HeaderReader(std::map<std::string, SafetensorsEntry> &entries)
      : entries(entries) {}

  std::string message;

  bool start_object(std::size_t) override {
    if (place == Place::Start)
      return move(Place::Top);
    if (place == Place::TopValue)
      return move(name == "__metadata__" ? Place::Facts : Place::Entry);
    return refuse("an object where none belongs");
  }

  bool end_object() override {
    if (place == Place::Top)
      return move(Place::End);
    if (place == Place::Facts)
      return move(Place::Top);
    if (place != Place::Entry)
      return refuse("an object that ends too early");
    if (!hasDtype || !hasShape || offsets.size() != 2)
      return refuse("tensor '" + name +
                    "' lacks its dtype, shape or data_offsets");
    entry.begin = offsets[0];
    entry.end = offsets[1];
    if (!entries.emplace(name, std::move(entry)).second)
      return refuse("tensor '" + name + "' occurs twice");
    return move(Place::Top);
  }

  bool key(string_t &text) override {
    if (place == Place::Top) {
      name = text;
      entry = SafetensorsEntry();
      offsets.clear();
      hasDtype = hasShape = hasOffsets = false;
      if (name == "__metadata__" && hasFacts)
        return refuse("__metadata__ occurs twice");
      hasFacts |= name == "__metadata__";
      return move(Place::TopValue);
    }
    if (place == Place::Facts)
      return move(Place::Fact);
    if (place != Place::Entry)
      return refuse("a key where none belongs");
    if (text == "dtype" && !std::exchange(hasDtype, true))
      return move(Place::Dtype);
    if (text == "shape" && !std::exchange(hasShape, true))
      return move(Place::ShapeStart);
    if (text == "data_offsets" && !std::exchange(hasOffsets, true))
      return move(Place::OffsetsStart);
    return refuse("tensor '" + name + "' has the key '" + text +
                  "', unknown or for the second time");
  }

  bool start_array(std::size_t) override {
    if (place == Place::ShapeStart)
      return move(Place::Shape);
    if (place == Place::OffsetsStart)
      return move(Place::Offsets);
    return refuse("a list where none belongs");
  }

  bool end_array() override { return move(Place::Entry); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place == Place::Shape && entry.shape.size() < 64 &&
        value <= static_cast<uint64_t>(INT64_MAX)) {
      entry.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place == Place::Offsets && offsets.size() < 2) {
      offsets.push_back(value);
      return true;
    }
    return refuse("a number where none belongs");
  }

  bool string(string_t &text) override {
    if (place == Place::Fact)
      return move(Place::Facts);
    if (place != Place::Dtype)
      return refuse("a text where none belongs");
    entry.dtype = text;
    return move(Place::Entry);
  }

  bool null() override { return refuse("a null"); }
  bool boolean(bool) override { return refuse("a true or false"); }
  bool number_integer(number_integer_t) override {
    return refuse("a negative number");
  }
  bool number_float(number_float_t, const string_t &) override {
    return refuse("a fraction");
  }
  bool binary(binary_t &) override { return refuse("binary data"); }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    return refuse("no valid JSON at byte " + std::to_string(position));
  }

private:
  enum class Place {
    Start,
    Top,
    TopValue,
    Facts,
    Fact,
    Entry,
    Dtype,
    ShapeStart,
    Shape,
    OffsetsStart,
    Offsets,
    End
  };

  bool move(Place next) {
    place = next;
    return true;
  }
  bool refuse(const std::string &why) {
    if (message.empty())
      message = "its header has " + why;
    return false;
  }

  std::map<std::string, SafetensorsEntry> &entries;
  Place place = Place::Start;
  std::string name;
  SafetensorsEntry entry;
  std::vector<uint64_t> offsets;
  bool hasDtype = false, hasShape = false, hasOffsets = false, hasFacts = false;
};

Status checkEntry(const std::string &name, const SafetensorsEntry &entry,
                  uint64_t dataBytes) {
  uint64_t bytes = 0;
  for (const FileDtype &dtype : fileDtypes)
    if (entry.dtype == dtype.name)
      bytes = dtype.bytes;
  if (bytes == 0)
    return Status::error("tensor '" + name + "' has the unknown dtype '" +
                         entry.dtype + "'");
  if (entry.begin > entry.end || entry.end > dataBytes)
    return Status::error("tensor '" + name +
                         "' lies beyond the end of the file");
  // A size of zero anywhere makes the product zero, whatever the others are.
  bool none =
      std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();
  for (int64_t extent : entry.shape) {
    if (!none && bytes > dataBytes / static_cast<uint64_t>(extent) + 1)
      return Status::error("tensor '" + name + "' has the shape " +
                           shapeText(entry.shape) +
                           ", which is larger than the file");
    bytes = none ? 0 : bytes * static_cast<uint64_t>(extent);
  }
  if (bytes != entry.end - entry.begin)
    return Status::error("tensor '" + name + "' has " +
                         std::to_string(entry.end - entry.begin) +
                         " bytes, but its shape " + shapeText(entry.shape) +
                         " takes " + std::to_string(bytes));
  return Status::success();
}

} // namespace

Status
parseSafetensorsHeader(const char *text, size_t size, uint64_t dataBytes,
                       std::map<std::string, SafetensorsEntry> &entries) {
  HeaderReader reader(entries);
  if (!nlohmann::json::sax_parse(text, text + size, &reader))
    return Status::error(reader.message.empty() ? "its header is no valid JSON"
                                                : reader.message);
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (const auto &[name, entry] : entries) {
    ESPALIER_TRY(checkEntry(name, entry, dataBytes));
    places.emplace_back(entry.begin, entry.end);
  }
  std::sort(places.begin(), places.end());
  uint64_t covered = 0;
  for (const auto &[begin, end] : places) {
    if (begin != covered)
      return Status::error("its tensors overlap or leave a gap at byte " +
                           std::to_string(covered) + " of the data");
    covered = end;
  }
  if (covered != dataBytes)
    return Status::error("its tensors end at byte " + std::to_string(covered) +
                         " of the data, which has " +
                         std::to_string(dataBytes));
  return Status::success();
}

Status SafetensorsFile::open(const std::string &path) {
  ESPALIER_TRY(file.open(path));
  uint64_t length = 0;
  if (file.size() >= 8)
    std::memcpy(&length, file.data(), 8);
  if (file.size() < 8 || length > mostHeaderBytes || length > file.size() - 8)
    return Status::error(path + " is no safetensors file, or was cut short");
  dataAt = 8 + length;
  Status status =
      parseSafetensorsHeader(reinterpret_cast<const char *>(file.data()) + 8,
                             length, file.size() - dataAt, entries);
  return status.ok() ? status : Status::error(path + ": " + status.text());
}

const char *safetensorsDtype(EspalierDtype dtype) {
  switch (dtype) {
  case EspalierF32:
    return "F32";
  case EspalierF64:
    return "F64";
  case EspalierBf16:
    return "BF16";
  case EspalierI64:
    return "I64";
  case EspalierI32:
    return "I32";
  case EspalierI1:
    return "BOOL";
  }
  return "?";
}

} // namespace espalier::runtime
