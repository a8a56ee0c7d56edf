//===- Layout.cpp - The mesh and batch that a job's layout means ----------===//

#include "Layout.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace espalier;
using namespace espalier::driver;

/// A pin that asks for what is not there yet, or "".
static std::string unsupportedPin(const Job &job) {
  const LayoutJob &layout = job.layout;
  for (const auto &[key, degree] : layout.degrees)
    if (key != "dp" && degree > 1)
      return "layout." + key + ": " + std::to_string(degree);
  if (layout.tensor)
    for (int64_t degree : *layout.tensor)
      if (degree > 1)
        return "layout.tp: " + std::to_string(degree);
  if (layout.zeroStage.value_or(0) > 0)
    return "layout.zero: " + std::to_string(*layout.zeroStage);
  if (layout.recompute.value_or("none") != "none")
    return "layout.recompute: " + *layout.recompute;
  if (layout.schedule)
    return "layout.schedule: " + *layout.schedule;
  if (layout.sequenceParallel.value_or(false))
    return "layout.sequence_parallel: true";
  if (job.cluster.device != "cpu")
    return "cluster.device: " + job.cluster.device;
  if (job.cluster.nodes > 1)
    return "cluster.nodes: " + std::to_string(job.cluster.nodes);
  if (!job.shardings.empty())
    return "shardings";
  if (job.train.precision != "fp32")
    return "train.precision: " + job.train.precision;
  return "";
}

LayoutFault driver::resolveLayout(const Job &job, ResolvedLayout &layout,
                                  Messages &messages) {
  if (std::string pin = unsupportedPin(job); !pin.empty()) {
    messages.add(job.path + ": not supported: " + pin +
                 " (supported are data parallelism, 'dp', on one host of "
                 "device cpu, and fp32)");
    return LayoutFault::NotSupported;
  }
  int64_t devices = job.cluster.nodes * job.cluster.devicesPerNode;
  int64_t replicas = devices;
  if (auto pinned = job.layout.degrees.find("dp");
      pinned != job.layout.degrees.end())
    replicas = pinned->second;
  if (replicas != devices) {
    messages.add(
        job.path + ":" + std::to_string(job.layout.line) +
        ": key 'layout.dp': " + std::to_string(replicas) +
        " replicas do not use the cluster's " + std::to_string(devices) +
        " devices; the nearest that does is dp: " + std::to_string(devices));
    return LayoutFault::Infeasible;
  }
  layout.mesh.axes = {{"dp", replicas, "node"}};
  layout.training.batchAxes = {0};
  layout.replicas = replicas;
  int64_t share = divideCeil(job.train.globalBatch, replicas);
  layout.microBatch = share;
  if (!job.batchIsAuto)
    layout.microBatch = job.dims.at("batch");
  if (layout.microBatch > share)
    messages.add(job.path + ": key 'dims.batch': a microbatch of " +
                 std::to_string(layout.microBatch) +
                 " samples is more than a replica's " + std::to_string(share) +
                 " of the global batch " +
                 std::to_string(job.train.globalBatch));
  layout.microBatches =
      divideCeil(job.train.globalBatch, layout.logicalMicroBatch());
  return messages.empty() ? LayoutFault::None : LayoutFault::NotSupported;
}
