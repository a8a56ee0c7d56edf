//===- Random.h - Counter-based random numbers ------------------*- C++ -*-===//
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011): a number is a function of a key and a counter, so any rank computes
// the number of any logical element, whatever the layout.
//
//   key     = (seed's low word, fnv1a32(name) xor seed's high word)
//   counter = (element's low word, high word, step's low word, high word)
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_RANDOM_H
#define ESPALIER_RUNTIME_RANDOM_H

#include <array>
#include <cstdint>
#include <string>

namespace espalier::runtime {

using Philox = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline Philox philox4x32(Philox counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t left = uint64_t{0xD2511F53u} * counter[0];
    uint64_t right = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(right >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(right),
               static_cast<uint32_t>(left >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(left)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// The 32-bit FNV-1a hash of a name.
uint32_t hashName(const std::string &name);

PhiloxKey randomKey(int64_t seed, const std::string &name);

/// The standard normal numbers of logical elements `first` .. `first + count -
/// 1`: words 0 and 1 of an element's counter, u = (word + 0.5) / 2^32, give
/// sqrt(-2 ln u0) cos(2 pi u1). The same bits on every processor.
void normals(PhiloxKey key, uint64_t first, uint64_t count, uint64_t step,
             double *to);

/// A permutation of 0 .. size-1 for each (seed, epoch), computed element by
/// element: a Feistel network over the next even power of two, walked until it
/// lands inside. Needs no state, so that a resume needs only the position.
class Permutation {
public:
  Permutation(int64_t seed, uint64_t size);

  /// Where position `index` < size of epoch `epoch` is taken from.
  uint64_t operator()(uint64_t epoch, uint64_t index) const;

private:
  PhiloxKey key;
  uint64_t size;
  int halfBits; // of the smallest 2^(2 halfBits) >= size
};

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_RANDOM_H
