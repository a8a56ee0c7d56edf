//===- Clones.h - Loops for several generations of processors ---*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_CLONES_H
#define ESPALIER_RUNTIME_CLONES_H

// A function marked so is compiled for several generations of processors, and
// the best one is chosen when the program is loaded. Only for functions whose
// results do not depend on the choice: elementwise, without contraction of a
// product and a sum. Sanitizers are not ready when the choice runs.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ESPALIER_IS_SANITIZED 1
#endif
#endif
#if defined(__x86_64__) && !defined(ESPALIER_IS_SANITIZED)
#define ESPALIER_CLONES                                                        \
  __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define ESPALIER_CLONES
#endif

#endif // ESPALIER_RUNTIME_CLONES_H
