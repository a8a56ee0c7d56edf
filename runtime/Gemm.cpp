//===- Gemm.cpp - Matrix products ----------------------------------------===//

#include "runtime/Gemm.h"

#include <cstdlib>
#include <dlfcn.h>

namespace espalier::runtime {
namespace {

using Sgemm = int (*)(char, char, int64_t, int64_t, int64_t, float,
                      const float *, int64_t, const float *, int64_t, float,
                      float *, int64_t);
Sgemm sgemm = nullptr;

/// The Debian package that has a library, or nothing if we do not know it.
std::string packageOf(const std::string &file) {
  if (file.rfind("libdnnl.so", 0) == 0)
    return "libdnnl2";
  return "";
}

Status openLibrary(const LibraryInfo &library) {
  void *handle = dlopen(library.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::string package = packageOf(library.file);
    return Status::error(
        "cannot open " + library.file + " (" + library.name +
        "), which this binary's plan names for " + library.why + ": " +
        dlerror() +
        (package.empty() ? "" : "; Debian has it in the package " + package));
  }
  if (library.file.rfind("libdnnl.so", 0) != 0)
    return Status::error("this runtime cannot use the library " + library.file);
  sgemm = reinterpret_cast<Sgemm>(dlsym(handle, "dnnl_sgemm"));
  if (!sgemm)
    return Status::error(library.file + " has no function dnnl_sgemm");
  return Status::success();
}

} // namespace

Status openLibraries(const std::vector<LibraryInfo> &libraries) {
  // A rank has one thread of computation; read when the library starts.
  setenv("OMP_NUM_THREADS", "1", /*overwrite=*/1);
  for (const LibraryInfo &library : libraries)
    ESPALIER_TRY(openLibrary(library));
  return Status::success();
}

int gemm(const GemmCall &call) {
  if (!sgemm)
    return -1;
  const char transposeA = call.transposeA ? 'T' : 'N';
  const char transposeB = call.transposeB ? 'T' : 'N';
  for (int64_t i = 0; i < call.batch; ++i)
    if (int status = sgemm(transposeA, transposeB, call.m, call.n, call.k,
                           call.alpha, call.a + i * call.strideA, call.lda,
                           call.b + i * call.strideB, call.ldb, call.beta,
                           call.c + i * call.strideC, call.ldc))
      return status;
  return 0;
}

} // namespace espalier::runtime
