//===- Gemm.h - Matrix products --------------------------------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_GEMM_H
#define ESPALIER_RUNTIME_GEMM_H

#include "runtime/Metadata.h"

namespace espalier::runtime {

/// Opens the libraries that the plan names. What is missing is an error that
/// names the library, its purpose and the package; nothing replaces it.
/// Called once, in a rank's process: a library may start threads.
Status openLibraries(const std::vector<LibraryInfo> &libraries);

/// As espalierRtGemm of abi.h; 0, or the status of the library that failed.
/// Needs an opened libdnnl.
struct GemmCall {
  bool transposeA, transposeB;
  int64_t m, n, k;
  float alpha;
  const float *a;
  int64_t lda;
  const float *b;
  int64_t ldb;
  float beta;
  float *c;
  int64_t ldc;
  int64_t batch, strideA, strideB, strideC;
};
int gemm(const GemmCall &call);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_GEMM_H
