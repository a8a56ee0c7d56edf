//===- Safetensors.h - Reading and writing safetensors files ----*- C++ -*-===//
//
// A file is: u64 little-endian n | n bytes of JSON | data. The JSON maps each
// name to {"dtype", "shape", "data_offsets": [begin, end]}, offsets counted
// from the start of the data. The reader trusts nothing: every tensor must lie
// inside the file, have the size of its shape, and the tensors must cover the
// data without gaps or overlaps.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_SAFETENSORS_H
#define ESPALIER_RUNTIME_SAFETENSORS_H

#include "runtime/File.h"
#include "runtime/Metadata.h"

#include <map>

namespace espalier::runtime {

struct SafetensorsEntry {
  std::string dtype; // as in the file: "F32"
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; // in the data
};

class SafetensorsFile {
public:
  Status open(const std::string &path);

  const std::string &path() const { return file.path(); }
  const std::map<std::string, SafetensorsEntry> &tensors() const {
    return entries;
  }
  const uint8_t *data(const SafetensorsEntry &entry) const {
    return file.data() + dataAt + entry.begin;
  }

private:
  MappedFile file;
  uint64_t dataAt = 0;
  std::map<std::string, SafetensorsEntry> entries;
};

/// Checks a header's text against the size of the data. For tests and fuzzers;
/// `open` calls it. Messages do not name the file.
Status parseSafetensorsHeader(const char *text, size_t size, uint64_t dataBytes,
                              std::map<std::string, SafetensorsEntry> &entries);

/// "F32" for EspalierF32.
const char *safetensorsDtype(EspalierDtype dtype);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_SAFETENSORS_H
