//===- Crc32c.cpp - The checksum of checkpoints and event files -----------===//

#include "runtime/Crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace espalier::runtime {
namespace {

using Table = std::array<std::array<uint32_t, 256>, 8>;

// Table k advances a byte by k further zero bytes ("slicing by eight").
constexpr Table makeTable() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    table[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      table[k][byte] =
          (table[k - 1][byte] >> 8) ^ table[0][table[k - 1][byte] & 255];
  return table;
}

constexpr Table table = makeTable();

uint32_t updateByTable(uint32_t crc, const uint8_t *bytes, uint64_t size) {
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k)
      crc ^= table[7 - k][(word >> (8 * k)) & 255];
  }
  for (; size > 0; --size)
    crc = (crc >> 8) ^ table[0][(crc ^ *bytes++) & 255];
  return crc;
}

#if defined(__x86_64__)

// The instruction has a latency of three cycles and a rate of one, so three
// streams run side by side. A stream is combined with what precedes it by
// advancing that over the stream's length in zero bytes, which is linear in
// its bits: four lookups.
constexpr uint64_t streamBytes = 4096;

struct ZeroAdvance {
  uint32_t part[4][256];
  ZeroAdvance() {
    static const uint8_t zeros[streamBytes] = {};
    for (uint32_t k = 0; k < 4; ++k)
      for (uint32_t byte = 0; byte < 256; ++byte)
        part[k][byte] = updateByTable(byte << (8 * k), zeros, streamBytes);
  }
  uint32_t operator()(uint32_t crc) const {
    return part[0][crc & 255] ^ part[1][(crc >> 8) & 255] ^
           part[2][(crc >> 16) & 255] ^ part[3][crc >> 24];
  }
};

__attribute__((target("sse4.2"))) uint32_t
updateByInstruction(uint32_t crc, const uint8_t *bytes, uint64_t size) {
  static const ZeroAdvance advance;
  auto word = [](const uint8_t *from) {
    uint64_t loaded;
    std::memcpy(&loaded, from, 8);
    return loaded;
  };
  uint64_t first = crc;
  for (; size >= 3 * streamBytes; size -= 3 * streamBytes) {
    uint64_t second = 0, third = 0;
    for (uint64_t i = 0; i < streamBytes; i += 8) {
      first = _mm_crc32_u64(first, word(bytes + i));
      second = _mm_crc32_u64(second, word(bytes + streamBytes + i));
      third = _mm_crc32_u64(third, word(bytes + 2 * streamBytes + i));
    }
    uint32_t two =
        advance(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    first = advance(two) ^ static_cast<uint32_t>(third);
    bytes += 3 * streamBytes;
  }
  for (; size >= 8; size -= 8, bytes += 8)
    first = _mm_crc32_u64(first, word(bytes));
  return updateByTable(static_cast<uint32_t>(first), bytes, size);
}

#endif

} // namespace

uint32_t crc32c(const void *data, uint64_t size, uint32_t before) {
  const auto *bytes = static_cast<const uint8_t *>(data);
#if defined(__x86_64__)
  static const bool hasInstruction = __builtin_cpu_supports("sse4.2");
  if (hasInstruction)
    return ~updateByInstruction(~before, bytes, size);
#endif
  return ~updateByTable(~before, bytes, size);
}

} // namespace espalier::runtime
