//===- Math.cpp - What generated loops call -------------------------------===//

#include "Math.h"

#define FUNCTION(NAME)                                                         \
  extern "C" __attribute__((always_inline)) float espalier_##NAME##_f32(       \
      float x) {                                                               \
    return espalier::kernels::NAME(x);                                         \
  }

FUNCTION(exp)
FUNCTION(exp2)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log2)
FUNCTION(log1p)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(sin)
FUNCTION(cos)
