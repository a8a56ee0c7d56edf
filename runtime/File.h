//===- File.h - Files, with errors that name them ---------------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_FILE_H
#define ESPALIER_RUNTIME_FILE_H

#include "runtime/Status.h"

#include <cstdint>
#include <string>

namespace espalier::runtime {

/// A whole regular file, mapped for reading. Move-only; unmapped at the end.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }
  MappedFile &operator=(MappedFile &&other) noexcept;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  Status open(const std::string &path);

  const std::string &path() const { return name; }
  const uint8_t *data() const { return bytes; } // null for an empty file
  uint64_t size() const { return length; }

private:
  std::string name;
  const uint8_t *bytes = nullptr;
  uint64_t length = 0;
};

/// A file descriptor that is closed at the end of its scope.
class Descriptor {
public:
  explicit Descriptor(int fd = -1) : fd(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  Descriptor(Descriptor &&other) noexcept : fd(other.release()) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Descriptor();

  int get() const { return fd; }
  bool valid() const { return fd >= 0; }
  int release() {
    int released = fd;
    fd = -1;
    return released;
  }

private:
  int fd;
};

/// "cannot open F: No such file or directory", from errno.
Status systemError(const std::string &what);

Status writeAll(int fd, const void *data, uint64_t size,
                const std::string &path);
Status writeAllAt(int fd, const void *data, uint64_t size, uint64_t offset,
                  const std::string &path);

/// Creates or replaces `path` and waits until its bytes are on the disk.
Status writeFile(const std::string &path, const std::string &text);

/// Reads a file of at most `limit` bytes.
Status readFile(const std::string &path, uint64_t limit, std::string &text);

/// Waits until the entries of a directory are on the disk.
Status syncDirectory(const std::string &path);

/// Creates a directory and those above it.
Status makeDirectories(const std::string &path);

/// Removes a directory that holds only files, with them. Absent is success.
Status removeFlatDirectory(const std::string &path);

bool exists(const std::string &path);

/// `path` if it is absolute, else below `directory`.
std::string joinPath(const std::string &directory, const std::string &path);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_FILE_H
