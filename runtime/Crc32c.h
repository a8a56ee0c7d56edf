//===- Crc32c.h - The checksum of checkpoints and event files ---*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_CRC32C_H
#define ESPALIER_RUNTIME_CRC32C_H

#include <cstdint>

namespace espalier::runtime {

/// CRC-32C (Castagnoli, reflected, as iSCSI has it) of `size` bytes. `before`
/// is the checksum of what precedes them; 0 for nothing.
uint32_t crc32c(const void *data, uint64_t size, uint32_t before = 0);

/// As TFRecord stores it: rotated and offset, so that a checksum of data that
/// holds checksums is no trivial one.
inline uint32_t maskedCrc32c(const void *data, uint64_t size) {
  uint32_t crc = crc32c(data, size);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_CRC32C_H
