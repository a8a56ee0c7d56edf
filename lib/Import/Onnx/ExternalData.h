//===- ExternalData.h - Weights in files beside the model -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_EXTERNALDATA_H
#define ESPALIER_LIB_IMPORT_ONNX_EXTERNALDATA_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace espalier::onnx {

/// Part of a file below the model's directory.
struct ExternalRange {
  std::string location;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// Why a location cannot be one, or empty: it must be relative, without empty,
/// "." or ".." components, backslashes, colons or NUL.
std::string checkLocation(llvm::StringRef location);

/// The files below one directory. Opens without following any symbolic link
/// (openat2 with RESOLVE_BENEATH, or one component at a time where the kernel
/// lacks it), regular files only, with one link unless hard links are allowed.
/// Files stay open until destruction and are read, never mapped: a file that
/// shrinks meanwhile is an error and no signal.
class ExternalFiles {
public:
  ExternalFiles(llvm::StringRef directory, bool allowHardLinks)
      : directory(directory), allowHardLinks(allowHardLinks) {}
  ~ExternalFiles();
  ExternalFiles(const ExternalFiles &) = delete;
  ExternalFiles &operator=(const ExternalFiles &) = delete;

  /// Size of the file; nothing if it does not exist.
  llvm::Expected<std::optional<uint64_t>> size(llvm::StringRef location);

  /// Reads a range of an existing file.
  llvm::Error read(const ExternalRange &range,
                   llvm::MutableArrayRef<uint8_t> into);

  /// SHA-1 of an existing file, as 40 hexadecimal digits.
  llvm::Expected<std::string> checksum(llvm::StringRef location);

private:
  struct File {
    int descriptor = -1; // -1 = does not exist
    uint64_t size = 0;
    std::string error;    // why it is refused
    std::string checksum; // once it was asked for
  };
  File &open(llvm::StringRef location);

  std::string directory;
  bool allowHardLinks;
  int root = -1;
  llvm::StringMap<File> files;
};

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_EXTERNALDATA_H
