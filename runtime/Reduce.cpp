//===- Reduce.cpp - Elementwise reductions of several arrays --------------===//

#include "runtime/Reduce.h"

#include "runtime/Clones.h"
#include "runtime/Metadata.h"

#include <algorithm>
#include <cstring>

namespace espalier::runtime {
namespace {

struct Sum {
  template <typename T>
  static T apply(T left, T right) {
    return left + right;
  }
};
// Integers wrap around; a signed sum that overflows would be undefined.
struct WrappingSum {
  template <typename T>
  static T apply(T left, T right) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(left) +
                          static_cast<std::make_unsigned_t<T>>(right));
  }
};
struct Max {
  template <typename T>
  static T apply(T left, T right) {
    return left > right || left != left ? left : right;
  }
};
struct Min {
  template <typename T>
  static T apply(T left, T right) {
    return left < right || left != left ? left : right;
  }
};
struct Prod {
  template <typename T>
  static T apply(T left, T right) {
    return left * right;
  }
};
struct WrappingProd {
  template <typename T>
  static T apply(T left, T right) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(left) *
                          static_cast<std::make_unsigned_t<T>>(right));
  }
};

inline float widen(uint16_t bits) {
  uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

inline uint16_t narrow(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  // To the nearest even; a NaN stays one, made quiet.
  uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1)) >> 16;
  uint32_t quiet = (word >> 16) | 0x40u;
  return static_cast<uint16_t>((word & 0x7fffffffu) > 0x7f800000u ? quiet
                                                                  : rounded);
}

#define ESPALIER_LOOP(name, T, Operation)                                      \
  ESPALIER_CLONES void name(void *into, const void *from, size_t count) {      \
    auto *left = static_cast<T *>(into);                                       \
    const auto *right = static_cast<const T *>(from);                          \
    for (size_t i = 0; i < count; ++i)                                         \
      left[i] = Operation::apply(left[i], right[i]);                           \
  }
#define ESPALIER_BF16_LOOP(name, Operation)                                    \
  ESPALIER_CLONES void name(void *into, const void *from, size_t count) {      \
    auto *left = static_cast<float *>(into);                                   \
    const auto *right = static_cast<const uint16_t *>(from);                   \
    for (size_t i = 0; i < count; ++i)                                         \
      left[i] = Operation::apply(left[i], widen(right[i]));                    \
  }

ESPALIER_LOOP(sumF32, float, Sum)
ESPALIER_LOOP(maxF32, float, Max)
ESPALIER_LOOP(minF32, float, Min)
ESPALIER_LOOP(prodF32, float, Prod)
ESPALIER_LOOP(sumF64, double, Sum)
ESPALIER_LOOP(maxF64, double, Max)
ESPALIER_LOOP(minF64, double, Min)
ESPALIER_LOOP(prodF64, double, Prod)
ESPALIER_LOOP(sumI64, int64_t, WrappingSum)
ESPALIER_LOOP(maxI64, int64_t, Max)
ESPALIER_LOOP(minI64, int64_t, Min)
ESPALIER_LOOP(prodI64, int64_t, WrappingProd)
ESPALIER_LOOP(sumI32, int32_t, WrappingSum)
ESPALIER_LOOP(maxI32, int32_t, Max)
ESPALIER_LOOP(minI32, int32_t, Min)
ESPALIER_LOOP(prodI32, int32_t, WrappingProd)
ESPALIER_LOOP(maxI1, uint8_t, Max)
ESPALIER_LOOP(minI1, uint8_t, Min)
ESPALIER_BF16_LOOP(sumBf16, Sum)
ESPALIER_BF16_LOOP(maxBf16, Max)
ESPALIER_BF16_LOOP(minBf16, Min)
ESPALIER_BF16_LOOP(prodBf16, Prod)

ESPALIER_CLONES void widenAll(float *to, const uint16_t *from, size_t count) {
  for (size_t i = 0; i < count; ++i)
    to[i] = widen(from[i]);
}

ESPALIER_CLONES void narrowAll(uint16_t *to, const float *from, size_t count) {
  for (size_t i = 0; i < count; ++i)
    to[i] = narrow(from[i]);
}

using Loop = void (*)(void *, const void *, size_t);

// By EspalierDtype and EspalierReduction.
const Loop loops[6][4] = {
    {sumF32, maxF32, minF32, prodF32},     {sumF64, maxF64, minF64, prodF64},
    {sumBf16, maxBf16, minBf16, prodBf16}, {sumI64, maxI64, minI64, prodI64},
    {sumI32, maxI32, minI32, prodI32},     {nullptr, maxI1, minI1, minI1}};

} // namespace

bool isReducible(EspalierDtype dtype, EspalierReduction reduction) {
  return dtype >= EspalierF32 && dtype <= EspalierI1 &&
         reduction >= EspalierSum && reduction <= EspalierProd &&
         loops[dtype][reduction];
}

void reduce(EspalierDtype dtype, EspalierReduction reduction,
            uint8_t *const *inputs, size_t inputCount, uint8_t *const *outputs,
            size_t outputCount, uint64_t count) {
  // A block of accumulators stays in the first-level cache.
  constexpr size_t blockBytes = 8192;
  alignas(64) uint8_t accumulators[blockBytes];
  alignas(64) uint16_t rounded[blockBytes / 4];
  const bool narrowed = dtype == EspalierBf16;
  const uint64_t bytes = dtypeBytes(dtype);
  const uint64_t block = blockBytes / (narrowed ? 4 : bytes);
  Loop combine = loops[dtype][reduction];

  for (uint64_t at = 0; at < count; at += block) {
    size_t here = std::min(block, count - at);
    if (narrowed)
      widenAll(reinterpret_cast<float *>(accumulators),
               reinterpret_cast<const uint16_t *>(inputs[0]) + at, here);
    else
      std::memcpy(accumulators, inputs[0] + at * bytes, here * bytes);
    for (size_t i = 1; i < inputCount; ++i)
      combine(accumulators, inputs[i] + at * bytes, here);
    const void *result = accumulators;
    if (narrowed) {
      narrowAll(rounded, reinterpret_cast<const float *>(accumulators), here);
      result = rounded;
    }
    for (size_t i = 0; i < outputCount; ++i)
      std::memcpy(outputs[i] + at * bytes, result, here * bytes);
  }
}

} // namespace espalier::runtime
