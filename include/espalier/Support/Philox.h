//===- Philox.h - Counter-based random numbers ------------------*- C++ -*-===//
//
// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011). A number depends on a key (the seed and the stream's name) and a
// counter (the logical element and the step) alone, never on the layout.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_SUPPORT_PHILOX_H
#define ESPALIER_SUPPORT_PHILOX_H

#include <array>
#include <cstdint>
#include <string_view>

namespace espalier {

/// Ten rounds of Philox on a counter of four words with a key of two.
inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                          std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t(0xD2511F53) * counter[0];
    uint64_t product1 = uint64_t(0xCD9E8D57) * counter[2];
    counter = {
        uint32_t(product1 >> 32) ^ counter[1] ^ key[0], uint32_t(product1),
        uint32_t(product0 >> 32) ^ counter[3] ^ key[1], uint32_t(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// FNV-1a of a stream's or tensor's name: the second word of the key.
inline uint32_t hashOfStream(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (char c : name)
    hash = (hash ^ uint8_t(c)) * 16777619u;
  return hash;
}

/// Uniform in [0, 1), a multiple of 2^-24, so that it is exact in f32. `stream`
/// is the hash of a name, `element` counts row-major in the logical tensor.
/// The high words of seed and step are 0 but in extreme runs; they count too.
inline double uniformAt(uint64_t seed, uint32_t stream, uint64_t element,
                        uint64_t step) {
  std::array<uint32_t, 4> bits =
      philox4x32({uint32_t(element), uint32_t(element >> 32), uint32_t(step),
                  uint32_t(step >> 32)},
                 {uint32_t(seed), stream ^ uint32_t(seed >> 32)});
  return double(bits[0] >> 8) * 0x1p-24;
}

} // namespace espalier

#endif // ESPALIER_SUPPORT_PHILOX_H
