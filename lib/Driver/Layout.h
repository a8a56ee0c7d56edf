//===- Layout.h - The mesh and batch that a job's layout means --*- C++ -*-===//

#ifndef ESPALIER_LIB_DRIVER_LAYOUT_H
#define ESPALIER_LIB_DRIVER_LAYOUT_H

#include "espalier/Job/Job.h"
#include "espalier/Sharding/TrainingLayout.h"

namespace espalier::driver {

/// How a step's samples and the devices are divided.
struct ResolvedLayout {
  Mesh mesh;
  TrainingLayout training;
  int64_t replicas = 1;     // data-parallel
  int64_t microBatch = 1;   // samples of one replica in a microbatch
  int64_t microBatches = 1; // of a step

  /// Samples of all replicas in a microbatch.
  int64_t logicalMicroBatch() const { return microBatch * replicas; }
};

/// What a layout cannot be: an input at fault, or pins that do not hold.
enum class LayoutFault { None, NotSupported, Infeasible };

/// Resolves the job's layout for its cluster. Where there is no layout,
/// messages say why.
LayoutFault resolveLayout(const Job &job, ResolvedLayout &layout,
                          Messages &messages);

} // namespace espalier::driver

#endif // ESPALIER_LIB_DRIVER_LAYOUT_H
