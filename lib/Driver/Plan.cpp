//===- Plan.cpp - The plan of a session, and plans from files -------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "Session.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::driver;

/// The axes of each dimension, by name.
static std::vector<std::vector<std::string>>
axesOf(dist::ShardingAttr sharding) {
  std::vector<std::vector<std::string>> dims;
  for (ArrayAttr dim : sharding.getDims()) {
    std::vector<std::string> &axes = dims.emplace_back();
    for (auto axis : dim.getAsRange<StringAttr>())
      axes.push_back(axis.getValue().str());
  }
  return dims;
}

PlanFile Session::plan() const {
  PlanFile plan;
  plan.modelFingerprint = model.fingerprint;
  for (const MeshAxis &axis : layout.mesh.axes)
    plan.mesh.push_back({axis.name, axis.size, axis.link});
  plan.layout["dp"] = layout.replicas;
  plan.globalBatch = job.train.globalBatch;
  plan.microBatch = layout.microBatch;
  plan.microBatches = layout.microBatches;
  plan.matrixProducts = "oneDNN";
  ModuleOp planned = program.planned.get();
  auto grad = planned.lookupSymbol<func::FuncOp>("grad");
  for (BlockArgument argument : grad.getArguments()) {
    StringRef role = argumentString(grad, argument.getArgNumber(), kRoleAttr);
    if (role != "parameter" && role != "frozen" && role != "buffer")
      continue;
    auto type = cast<RankedTensorType>(argument.getType());
    plan.addTensor(
        argumentString(grad, argument.getArgNumber(), kNameAttr).str(),
        type.getShape().vec(), axesOf(dist::shardingOf(type)));
  }
  return plan;
}

/// The first thing in which a plan differs from what is made here, or "".
static std::string differenceOf(const PlanFile &given, const PlanFile &own) {
  if (given.modelFingerprint != own.modelFingerprint)
    return "fingerprints.model: the plan is for another model or other weights";
  if (given.mesh != own.mesh || given.layout != own.layout)
    return "layout: the job's layout and cluster make another mesh";
  if (given.globalBatch != own.globalBatch ||
      given.microBatch != own.microBatch ||
      given.microBatches != own.microBatches)
    return "batch: the job divides its batch otherwise";
  for (const PlanTensor &tensor : given.tensors)
    if (!llvm::is_contained(own.tensors, tensor))
      return "tensors: '" + tensor.name +
             "': not supported: a sharding or shape other than the layout's";
  if (given.tensors.size() != own.tensors.size())
    return "tensors: some of the model's tensors are missing or doubled";
  return "";
}

bool Session::holdTo(const std::string &planPath) {
  Messages messages;
  std::optional<PlanFile> given = readPlan(planPath, messages);
  if (!given)
    return fail(InputAtFault, messages.text());
  std::string difference = differenceOf(*given, plan());
  if (!difference.empty())
    return fail(InputAtFault, planPath + ": " + difference);
  return true;
}
