//===- ExternalData.cpp - Weights in files beside the model -*- C++ -*-===//

#include "ExternalData.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/SHA1.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "Errors.h"

using namespace llvm;

namespace espalier::onnx {

std::string checkLocation(StringRef location) {
  if (location.empty())
    return "is empty";
  if (location.size() > 4096)
    return "has more than 4096 bytes";
  if (location.contains('\0') || location.contains('\\') ||
      location.contains(':'))
    return "contains a NUL, backslash or colon";
  SmallVector<StringRef> parts;
  location.split(parts, '/');
  for (StringRef part : parts)
    if (part.empty() || part == "." || part == "..")
      return "is not a plain relative path below the model's directory";
  return "";
}

static int openBeneath(int root, const std::string &location) {
  struct open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int file = syscall(SYS_openat2, root, location.c_str(), &how, sizeof(how));
  if (file >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL))
    return file;

  // No openat2 here: one component at a time, none of them a link.
  SmallVector<StringRef> parts;
  StringRef(location).split(parts, '/');
  int directory = dup(root);
  for (size_t i = 0; i < parts.size() && directory >= 0; ++i) {
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    if (i + 1 < parts.size())
      flags |= O_DIRECTORY;
    int next = openat(directory, parts[i].str().c_str(), flags);
    int code = errno;
    close(directory);
    errno = code;
    directory = next;
  }
  return directory;
}

ExternalFiles::~ExternalFiles() {
  for (auto &entry : files)
    if (entry.second.descriptor >= 0)
      close(entry.second.descriptor);
  if (root >= 0)
    close(root);
}

ExternalFiles::File &ExternalFiles::open(StringRef location) {
  auto [entry, isNew] = files.try_emplace(location);
  File &file = entry->second;
  if (!isNew)
    return file;
  file.error = checkLocation(location);
  if (!file.error.empty())
    return file;
  if (root < 0)
    root = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    file.error = std::string("has a directory that cannot be opened: ") +
                 strerror(errno);
    return file;
  }
  file.descriptor = openBeneath(root, location.str());
  if (file.descriptor < 0) {
    if (errno == ELOOP || errno == EXDEV)
      file.error = "leads through a symbolic link, which is not followed";
    else if (errno != ENOENT)
      file.error = std::string("cannot be opened: ") + strerror(errno);
    return file;
  }
  struct stat status;
  if (fstat(file.descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    file.error = "is not a regular file";
  else if (status.st_nlink != 1 && !allowHardLinks)
    file.error = "has more than one hard link";
  else
    file.size = status.st_size;
  return file;
}

static Error locationError(StringRef location, const Twine &message) {
  return createStringError(errc::invalid_argument, "external file %s %s",
                           quoted(location).c_str(), message.str().c_str());
}

Expected<std::optional<uint64_t>> ExternalFiles::size(StringRef location) {
  File &file = open(location);
  if (!file.error.empty())
    return locationError(location, file.error);
  if (file.descriptor < 0)
    return std::nullopt;
  return file.size;
}

Error ExternalFiles::read(const ExternalRange &range,
                          MutableArrayRef<uint8_t> into) {
  File &file = open(range.location);
  if (!file.error.empty() || file.descriptor < 0)
    return locationError(range.location,
                         file.error.empty() ? "does not exist" : file.error);
  uint64_t done = 0;
  while (done < into.size()) {
    ssize_t count = pread(file.descriptor, into.data() + done,
                          into.size() - done, range.offset + done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return locationError(range.location, "ended while it was read");
    done += count;
  }
  return Error::success();
}

Expected<std::string> ExternalFiles::checksum(StringRef location) {
  File &file = open(location);
  if (!file.checksum.empty())
    return file.checksum;
  SHA1 hash;
  std::vector<uint8_t> block(std::min<uint64_t>(file.size, 4 << 20));
  for (uint64_t done = 0; done < file.size;) {
    uint64_t count = std::min<uint64_t>(block.size(), file.size - done);
    MutableArrayRef<uint8_t> part(block.data(), count);
    if (Error error = read({location.str(), done, count}, part))
      return std::move(error);
    hash.update(part);
    done += count;
  }
  file.checksum = toHex(hash.final(), /*LowerCase=*/true);
  return file.checksum;
}

} // namespace espalier::onnx
