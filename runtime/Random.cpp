//===- Random.cpp - Counter-based random numbers --------------------------===//

#include "runtime/Random.h"

#include "runtime/Clones.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// Initial weights must not depend on whether the processor has a fused multiply
// and add, nor on the mathematical library.
#if defined(__clang__)
#pragma clang fp contract(off)
#endif

namespace espalier::runtime {

uint32_t hashName(const std::string &name) {
  uint32_t hash = 2166136261u;
  for (unsigned char byte : name)
    hash = (hash ^ byte) * 16777619u;
  return hash;
}

PhiloxKey randomKey(int64_t seed, const std::string &name) {
  auto bits = static_cast<uint64_t>(seed);
  return {static_cast<uint32_t>(bits),
          hashName(name) ^ static_cast<uint32_t>(bits >> 32)};
}

namespace {

double asDouble(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, 8);
  return value;
}

uint64_t asBits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return bits;
}

/// ln u for 0 < u < 1. With u = 2^e m, 1/sqrt 2 <= m < sqrt 2, and
/// s = (m - 1) / (m + 1):  ln m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172.
inline double logOfUnit(double u) {
  // The exponent counts from sqrt 2 / 2, so that m lies around 1.
  constexpr uint64_t half = 0x3fe6a09e667f3bcd;
  uint64_t bits = asBits(u) - half;
  double exponent =
      asDouble((((bits >> 52) + 1024) & 2047) | 0x4330000000000000) -
      (4503599627370496.0 + 1024.0);
  double m = asDouble((bits & 0x000fffffffffffff) + half);
  double s = (m - 1) / (m + 1), q = s * s;
  double series = 1.0 / 17;
  series = series * q + 1.0 / 15;
  series = series * q + 1.0 / 13;
  series = series * q + 1.0 / 11;
  series = series * q + 1.0 / 9;
  series = series * q + 1.0 / 7;
  series = series * q + 1.0 / 5;
  series = series * q + 1.0 / 3;
  series = series * q + 1.0;
  return exponent * 0.6931471805599453 + 2 * s * series;
}

/// cos(2 pi v) for 0 < v < 1, by the series of the sine of at most pi / 2.
inline double cosOfTurn(double v) {
  double x = 6.283185307179586 * (0.25 - std::fabs(v - 0.5));
  double q = x * x;
  double series = 1 - q / (18 * 19);
  series = 1 - series * q * (1.0 / (16 * 17));
  series = 1 - series * q * (1.0 / (14 * 15));
  series = 1 - series * q * (1.0 / (12 * 13));
  series = 1 - series * q * (1.0 / (10 * 11));
  series = 1 - series * q * (1.0 / (8 * 9));
  series = 1 - series * q * (1.0 / (6 * 7));
  series = 1 - series * q * (1.0 / (4 * 5));
  series = 1 - series * q * (1.0 / (2 * 3));
  return -x * series;
}

} // namespace

namespace {

constexpr uint64_t lanes = 256;

/// Words 0 and 1 of `lanes` neighbouring elements. As philox4x32, with the
/// rounds outside, so that the loop over lanes becomes vector instructions.
ESPALIER_CLONES void philoxLanes(PhiloxKey key, uint64_t first, uint64_t step,
                                 uint32_t *first0, uint32_t *first1) {
  uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (uint64_t i = 0; i < lanes; ++i) {
    c0[i] = static_cast<uint32_t>(first + i);
    c1[i] = static_cast<uint32_t>((first + i) >> 32);
    c2[i] = static_cast<uint32_t>(step);
    c3[i] = static_cast<uint32_t>(step >> 32);
  }
  for (int round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < lanes; ++i) {
      uint64_t left = uint64_t{0xD2511F53u} * c0[i];
      uint64_t right = uint64_t{0xCD9E8D57u} * c2[i];
      c0[i] = static_cast<uint32_t>(right >> 32) ^ c1[i] ^ key[0];
      c2[i] = static_cast<uint32_t>(left >> 32) ^ c3[i] ^ key[1];
      c1[i] = static_cast<uint32_t>(right);
      c3[i] = static_cast<uint32_t>(left);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  std::memcpy(first0, c0, sizeof c0);
  std::memcpy(first1, c1, sizeof c1);
}

ESPALIER_CLONES void normalLanes(const uint32_t *first0, const uint32_t *first1,
                                 double *to) {
  constexpr double unit = 1.0 / 4294967296.0;
  for (uint64_t i = 0; i < lanes; ++i) {
    double radius = std::sqrt(-2.0 * logOfUnit((first0[i] + 0.5) * unit));
    to[i] = radius * cosOfTurn((first1[i] + 0.5) * unit);
  }
}

} // namespace

void normals(PhiloxKey key, uint64_t first, uint64_t count, uint64_t step,
             double *to) {
  uint32_t first0[lanes], first1[lanes];
  double values[lanes];
  for (uint64_t at = 0; at < count; at += lanes) {
    philoxLanes(key, first + at, step, first0, first1);
    normalLanes(first0, first1, values);
    std::memcpy(to + at, values, std::min(lanes, count - at) * sizeof(double));
  }
}

Permutation::Permutation(int64_t seed, uint64_t size)
    : key(randomKey(seed, "espalier.shuffle")), size(size), halfBits(1) {
  while (halfBits < 31 && (uint64_t{1} << (2 * halfBits)) < size)
    ++halfBits;
}

uint64_t Permutation::operator()(uint64_t epoch, uint64_t index) const {
  const uint32_t mask = (uint32_t{1} << halfBits) - 1;
  // The network permutes a set at most four times as large as ours, so a walk
  // that starts inside comes back inside after a few steps.
  do {
    auto left = static_cast<uint32_t>(index >> halfBits) & mask;
    auto right = static_cast<uint32_t>(index) & mask;
    for (uint32_t round = 0; round < 6; ++round) {
      uint32_t mixed = philox4x32({right, round, static_cast<uint32_t>(epoch),
                                   static_cast<uint32_t>(epoch >> 32)},
                                  key)[0];
      uint32_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    index = (uint64_t{left} << halfBits) | right;
  } while (index >= size);
  return index;
}

} // namespace espalier::runtime
