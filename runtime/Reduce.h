//===- Reduce.h - Elementwise reductions of several arrays ------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_REDUCE_H
#define ESPALIER_RUNTIME_REDUCE_H

#include "espalier/runtime/abi.h"

#include <cstddef>
#include <cstdint>

namespace espalier::runtime {

/// Most ranks of a group on one host.
constexpr size_t maxGroup = 256;

/// Whether `reduction` is defined for `dtype`: all are but the sum of i1.
bool isReducible(EspalierDtype dtype, EspalierReduction reduction);

/// Writes to each of `outputs` the reduction of the `inputs`, in their order,
/// element by element. bf16 is reduced in fp32 and rounded once, to the nearest
/// even. A NaN is the maximum and the minimum of anything. Outputs may be
/// inputs.
void reduce(EspalierDtype dtype, EspalierReduction reduction,
            uint8_t *const *inputs, size_t inputCount, uint8_t *const *outputs,
            size_t outputCount, uint64_t count);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_REDUCE_H
