//===- Link.cpp - An object and the runtime into a binary -----------------===//

#include "espalier/Target/Cpu.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace llvm;
using namespace espalier;

static Error linkError(const Twine &message) {
  return createStringError("cannot link the binary: " + message);
}

/// The folder of the runtime's archives: that of the options, the one beside
/// the running tool, or where the build put it.
static Expected<std::string> runtimeDirectory(const cpu::LinkOptions &options) {
  SmallVector<std::string> candidates;
  if (!options.runtimeDirectory.empty()) {
    candidates.push_back(options.runtimeDirectory);
  } else {
    std::string tool = sys::fs::getMainExecutable(nullptr, nullptr);
    StringRef root = sys::path::parent_path(sys::path::parent_path(tool));
    for (const char *folder : {"lib", "runtime"}) {
      SmallString<128> path(root);
      sys::path::append(path, folder);
      candidates.push_back(path.str().str());
    }
    candidates.push_back(ESPALIER_RUNTIME_DIRECTORY);
  }
  for (const std::string &candidate : candidates)
    if (sys::fs::exists(candidate + "/libEspalierRuntimeMain.a"))
      return candidate;
  return linkError("libEspalierRuntimeMain.a is in none of " +
                   join(candidates, ", "));
}

/// Writes `content` to a new file with that suffix.
static Expected<std::string> writeTemporary(StringRef suffix,
                                            StringRef content) {
  SmallString<128> path;
  int descriptor;
  if (std::error_code error =
          sys::fs::createTemporaryFile("espalier", suffix, descriptor, path))
    return linkError("no temporary file: " + error.message());
  raw_fd_ostream file(descriptor, /*shouldClose=*/true);
  file << content;
  file.close();
  if (std::error_code error = file.error()) {
    file.clear_error();
    sys::fs::remove(path);
    return linkError(path + ": " + error.message());
  }
  return path.str().str();
}

/// Runs a command; its output is in the error where it fails.
static Error run(ArrayRef<StringRef> command) {
  auto log = writeTemporary("log", "");
  if (!log)
    return log.takeError();
  FileRemover removeLog(*log);
  std::string message;
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(*log),
                                          StringRef(*log)};
  int status = sys::ExecuteAndWait(command.front(), command, std::nullopt,
                                   redirects, /*SecondsToWait=*/120,
                                   /*MemoryLimit=*/0, &message);
  if (status == 0)
    return Error::success();
  auto output = MemoryBuffer::getFile(*log);
  return linkError(message + (output ? (*output)->getBuffer().str() : ""));
}

Error cpu::linkBinary(const CompiledObject &object, StringRef path,
                      const LinkOptions &options) {
  auto directory = runtimeDirectory(options);
  if (!directory)
    return directory.takeError();
  auto linker = sys::findProgramByName(ESPALIER_LINKER_DRIVER);
  if (!linker)
    linker = sys::findProgramByName("clang++-22");
  if (!linker)
    return linkError("clang++-22 is not there; it comes with the package "
                     "clang-22");
  auto objectPath = writeTemporary("o", object.object);
  if (!objectPath)
    return objectPath.takeError();
  FileRemover removeObject(*objectPath);

  std::string mainArchive = *directory + "/libEspalierRuntimeMain.a";
  std::string archive = *directory + "/libEspalierRuntime.a";
  SmallVector<StringRef> command = {
      *linker,     "-fuse-ld=lld-22",     "-o",        path,
      *objectPath, "-Wl,--whole-archive", mainArchive, "-Wl,--no-whole-archive",
      archive};
  for (const std::string &library : options.libraries)
    command.push_back(library);
  for (StringRef flag : {"-static-libstdc++", "-static-libgcc", "-pthread",
                         "-ldl", "-lm", "-Wl,--gc-sections", "-s"})
    command.push_back(flag);
  return run(command);
}
