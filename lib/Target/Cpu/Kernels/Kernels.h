//===- Kernels.h - How the kernels of the library are written ---*- C++ -*-===//
//
// A kernel is a function espalierKernel_NAME(context, buffers...,
// constants...). The build compiles it to unoptimized bitcode; the compiler
// links it into a program, inlines it into a function that passes the constants
// (sizes, strides) as literals and distinct buffers as distinct pointers, and
// only then optimizes. So kernels are plain loops over sizes that look like
// variables and become constants. They say nothing of aliasing: an output may
// be an input only where the kernel's comment says so.
//
// Sums over a row may be split into lanes by the vectorizer (rowSum); no other
// operation is reordered.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_TARGET_CPU_KERNELS_KERNELS_H
#define ESPALIER_LIB_TARGET_CPU_KERNELS_KERNELS_H

#include "espalier/runtime/abi.h"

#include "Math.h"

#define KERNEL(NAME)                                                           \
  extern "C" __attribute__((always_inline)) void espalierKernel_##NAME

namespace espalier::kernels {

using Context = EspalierContext;

template <typename Real>
inline constexpr Real minusInfinity = -static_cast<Real>(__builtin_inff());

/// The sum of term(0), term(1), ..., in lanes.
template <typename Real, typename Term>
INLINE Real rowSum(int64_t n, Term term) {
#pragma clang fp reassociate(on)
  Real sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += term(i);
  return sum;
}

/// The largest of n values; minus infinity if there is none.
template <typename Real>
INLINE Real rowMax(int64_t n, const Real *x) {
  constexpr int lanes = 32;
  Real most[lanes];
  for (int lane = 0; lane < lanes; ++lane)
    most[lane] = minusInfinity<Real>;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int lane = 0; lane < lanes; ++lane)
      most[lane] = x[i + lane] > most[lane] ? x[i + lane] : most[lane];
  Real result = minusInfinity<Real>;
  for (int lane = 0; lane < lanes; ++lane)
    result = most[lane] > result ? most[lane] : result;
  for (; i < n; ++i)
    result = x[i] > result ? x[i] : result;
  return result;
}

} // namespace espalier::kernels

#endif // ESPALIER_LIB_TARGET_CPU_KERNELS_KERNELS_H
