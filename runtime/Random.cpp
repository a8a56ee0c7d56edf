//===- Random.cpp - Counter-based random numbers --------------------------===//

#include "runtime/Random.h"

#include <cmath>

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

double normalAt(PhiloxKey key, uint64_t element, uint64_t step) {
  Philox words = philox4x32(
      {static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32),
       static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32)},
      key);
  constexpr double unit = 1.0 / 4294967296.0;
  double radius = std::sqrt(-2.0 * std::log((words[0] + 0.5) * unit));
  return radius * std::cos(6.283185307179586 * ((words[1] + 0.5) * unit));
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
