//===- File.cpp - Files, with errors that name them -----------------------===//

#include "runtime/File.h"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace espalier::runtime {

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes)
    munmap(const_cast<uint8_t *>(bytes), length);
}

Status MappedFile::open(const std::string &path) {
  name = path;
  // Without O_NONBLOCK a named pipe would make us wait for its writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid())
    return systemError("cannot open " + path);
  struct stat facts;
  if (fstat(file.get(), &facts) != 0)
    return systemError("cannot read " + path);
  if (!S_ISREG(facts.st_mode))
    return Status::error(path + " is not a regular file");
  length = static_cast<uint64_t>(facts.st_size);
  if (length == 0)
    return Status::success();
  void *mapped = mmap(nullptr, length, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) {
    length = 0;
    return systemError("cannot map " + path);
  }
  bytes = static_cast<const uint8_t *>(mapped);
  return Status::success();
}

Descriptor::~Descriptor() {
  if (fd >= 0)
    close(fd);
}

Status systemError(const std::string &what) {
  return Status::error(what + ": " + std::strerror(errno));
}

Status writeAll(int fd, const void *data, uint64_t size,
                const std::string &path) {
  const auto *bytes = static_cast<const uint8_t *>(data);
  while (size > 0) {
    ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return systemError("cannot write " + path);
    bytes += written;
    size -= static_cast<uint64_t>(written);
  }
  return Status::success();
}

Status writeAllAt(int fd, const void *data, uint64_t size, uint64_t offset,
                  const std::string &path) {
  const auto *bytes = static_cast<const uint8_t *>(data);
  while (size > 0) {
    ssize_t written = pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return systemError("cannot write " + path);
    bytes += written;
    offset += static_cast<uint64_t>(written);
    size -= static_cast<uint64_t>(written);
  }
  return Status::success();
}

Status writeFile(const std::string &path, const std::string &text) {
  Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid())
    return systemError("cannot create " + path);
  ESPALIER_TRY(writeAll(file.get(), text.data(), text.size(), path));
  if (fsync(file.get()) != 0)
    return systemError("cannot write " + path);
  return Status::success();
}

Status readFile(const std::string &path, uint64_t limit, std::string &text) {
  MappedFile file;
  ESPALIER_TRY(file.open(path));
  if (file.size() > limit)
    return Status::error(path + " is too large to be what it should be");
  text.assign(reinterpret_cast<const char *>(file.data()), file.size());
  return Status::success();
}

Status syncDirectory(const std::string &path) {
  Descriptor directory(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid())
    return systemError("cannot open " + path);
  // Some file systems have nothing to do here, and say so with EINVAL.
  if (fsync(directory.get()) != 0 && errno != EINVAL)
    return systemError("cannot write " + path);
  return Status::success();
}

Status makeDirectories(const std::string &path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end != path.size() && path[end] != '/')
      continue;
    std::string prefix = path.substr(0, end);
    if (mkdir(prefix.c_str(), 0777) != 0 && errno != EEXIST)
      return systemError("cannot create the folder " + prefix);
  }
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode))
    return Status::error(path + " is not a folder");
  return Status::success();
}

Status removeFlatDirectory(const std::string &path) {
  DIR *directory = opendir(path.c_str());
  if (!directory)
    return errno == ENOENT ? Status::success()
                           : systemError("cannot remove " + path);
  while (dirent *entry = readdir(directory)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..")
      unlink((path + "/" + name).c_str());
  }
  closedir(directory);
  if (rmdir(path.c_str()) != 0)
    return systemError("cannot remove " + path);
  return Status::success();
}

bool exists(const std::string &path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0;
}

std::string joinPath(const std::string &directory, const std::string &path) {
  if (directory.empty() || (!path.empty() && path[0] == '/'))
    return path;
  return directory.back() == '/' ? directory + path : directory + "/" + path;
}

} // namespace espalier::runtime
