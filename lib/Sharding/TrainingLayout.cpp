//===- TrainingLayout.cpp - Shards a training program ---------------------===//

#include "espalier/Sharding/TrainingLayout.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace espalier;

/// Whether the first dimension of a tensor of this role is the batch.
static bool isBatched(StringRef role) {
  return role == "input" || role == "label" || role == "valid";
}

/// Whether a result of this role may be a sum that ranks have not added up yet.
static bool isAccumulated(StringRef role) {
  return role == "grad" || role == "loss_sum" || role == "weight_sum";
}

/// What identifies a tensor over both functions.
static std::string keyOf(StringRef role, StringRef name) {
  return (role + ":" + name).str();
}

namespace {

/// The shardings that @grad's results leave to @update's arguments.
using Accumulated = llvm::StringMap<Sharding>;

class TrainingSharder {
public:
  TrainingSharder(const Mesh &mesh, const TrainingLayout &layout)
      : mesh(mesh), layout(layout) {}

  LogicalResult shard(func::FuncOp function) {
    ShardingRequest request;
    request.argument = [this](func::FuncOp f, unsigned number) {
      return argumentSeed(f, number);
    };
    request.result = [this](func::FuncOp f, unsigned number,
                            const Sharding &has, ArrayRef<Sharding> arguments) {
      return resultSharding(f, number, has, arguments);
    };
    auto sharded = shardFunction(function, mesh, request);
    if (failed(sharded))
      return failure();
    for (auto [number, sharding] : llvm::enumerate(sharded->results)) {
      StringRef role = resultString(function, number, kRoleAttr);
      if (isAccumulated(role))
        accumulated[keyOf(role, resultString(function, number, kNameAttr))] =
            sharding;
    }
    llvm::append_range(conflicts, sharded->conflicts);
    return success();
  }

  SmallVector<std::string> conflicts;

private:
  std::optional<ShardingSeed> argumentSeed(func::FuncOp function,
                                           unsigned number);
  Sharding resultSharding(func::FuncOp function, unsigned number,
                          const Sharding &has, ArrayRef<Sharding> arguments);

  const Mesh &mesh;
  const TrainingLayout &layout;
  Accumulated accumulated;
};

} // namespace

std::optional<ShardingSeed> TrainingSharder::argumentSeed(func::FuncOp function,
                                                          unsigned number) {
  StringRef role = argumentString(function, number, kRoleAttr);
  StringRef name = argumentString(function, number, kNameAttr);
  auto type = cast<RankedTensorType>(function.getArgument(number).getType());
  if (isAccumulated(role)) {
    auto known = accumulated.find(keyOf(role, name));
    if (known != accumulated.end())
      return ShardingSeed{known->second, "as the gradient program leaves it",
                          true};
  }
  Sharding sharding = Sharding::replicated(type.getRank());
  if (isBatched(role)) {
    sharding.dims.front() = layout.batchAxes;
    return ShardingSeed{sharding, "the batch is cut over dp", true};
  }
  return ShardingSeed{sharding, "replicated: the layout pins no more", true};
}

Sharding TrainingSharder::resultSharding(func::FuncOp function, unsigned number,
                                         const Sharding &has,
                                         ArrayRef<Sharding> arguments) {
  StringRef role = resultString(function, number, kRoleAttr);
  StringRef name = resultString(function, number, kNameAttr);
  // What is updated stays as it was.
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (argumentString(function, i, kRoleAttr) == role &&
        argumentString(function, i, kNameAttr) == name)
      return arguments[i];
  if (isAccumulated(role))
    return has;
  return Sharding::replicated(has.dims.size());
}

FailureOr<SmallVector<std::string>>
espalier::shardTrainingProgram(ModuleOp module, const TrainingLayout &layout) {
  dist::MeshOp meshOp = dist::meshOf(module);
  if (!meshOp)
    return module.emitError("has no dist.mesh to be sharded on"), failure();
  Mesh mesh = Mesh::from(meshOp);
  TrainingSharder sharder(mesh, layout);
  for (StringRef name : {"grad", "update"}) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function)
      return module.emitError("has no function @") << name, failure();
    if (failed(sharder.shard(function)))
      return failure();
  }
  return std::move(sharder.conflicts);
}
