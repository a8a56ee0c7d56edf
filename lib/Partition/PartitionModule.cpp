//===- PartitionModule.cpp - Turn whole tensors into one rank's blocks ----===//

#include "espalier/Partition/PartitionModule.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"
#include "espalier/Partition/Reshard.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace espalier;

namespace {

/// Builds a rank's function beside the planned one, op by op.
class FunctionPartitioner {
public:
  FunctionPartitioner(func::FuncOp planned, const Mesh &mesh)
      : planned(planned), mesh(mesh), builder(planned.getContext()) {}

  /// Replaces the planned function.
  LogicalResult run();

private:
  Sharding shardingOf(Value value) const;
  RankedTensorType localType(Value value) const;
  ArrayAttr axesAttr(Axis axis);
  Value blockIndex(Location loc, ArrayRef<Axis> axes, int64_t scale);
  LogicalResult partitionOp(Operation *op);
  void placeConstant(nn::ConstantOp planned, nn::ConstantOp local);
  void placeIota(nn::IotaOp planned, nn::IotaOp local);
  void placeRandom(nn::RandomUniformOp planned, nn::RandomUniformOp local);
  LogicalResult expandReshard(dist::ReshardOp op);
  Value buildStep(Location loc, Value value, const ReshardStep &step);

  func::FuncOp planned;
  const Mesh &mesh;
  OpBuilder builder;
  IRMapping localOf; // from planned values to the rank's
};

} // namespace

Sharding FunctionPartitioner::shardingOf(Value value) const {
  dist::ShardingAttr attr = dist::shardingOf(value.getType());
  assert(attr && "a planned tensor carries a sharding");
  FailureOr<Sharding> sharding = Sharding::from(attr, mesh);
  assert(succeeded(sharding) && "a planned sharding names axes of the mesh");
  return *sharding;
}

RankedTensorType FunctionPartitioner::localType(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  return RankedTensorType::get(
      localShape(mesh, type.getShape(), shardingOf(value)),
      type.getElementType());
}

ArrayAttr FunctionPartitioner::axesAttr(Axis axis) {
  return builder.getStrArrayAttr({mesh.axes[axis].name});
}

LogicalResult FunctionPartitioner::run() {
  builder.setInsertionPoint(planned);
  auto local = cast<func::FuncOp>(builder.cloneWithoutRegions(*planned));
  Block *block = new Block();
  local.getBody().push_back(block);
  for (BlockArgument argument : planned.getArguments())
    localOf.map(argument,
                block->addArgument(localType(argument), argument.getLoc()));
  builder.setInsertionPointToStart(block);
  for (Operation &op : planned.front())
    if (failed(partitionOp(&op)))
      return failure();
  local.setFunctionType(FunctionType::get(
      planned.getContext(), block->getArgumentTypes(),
      llvm::to_vector(block->getTerminator()->getOperandTypes())));
  planned.erase();
  return success();
}

LogicalResult FunctionPartitioner::partitionOp(Operation *op) {
  if (auto reshard = dyn_cast<dist::ReshardOp>(op))
    return expandReshard(reshard);
  Operation *local = builder.clone(*op, localOf);
  for (auto [result, of] : llvm::zip(local->getResults(), op->getResults()))
    result.setType(localType(of));
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](nn::ConstantOp constant) {
        placeConstant(constant, cast<nn::ConstantOp>(local));
      })
      .Case([&](nn::IotaOp iota) { placeIota(iota, cast<nn::IotaOp>(local)); })
      .Case([&](nn::RandomUniformOp random) {
        placeRandom(random, cast<nn::RandomUniformOp>(local));
      });
  return success();
}

/// A constant that is cut is one number: its rule sees to that.
void FunctionPartitioner::placeConstant(nn::ConstantOp planned,
                                        nn::ConstantOp local) {
  RankedTensorType type = localType(planned.getResult());
  if (auto dense = dyn_cast<DenseElementsAttr>(planned.getValue());
      dense && dense.isSplat())
    local.setValueAttr(
        DenseElementsAttr::get(type, dense.getSplatValue<Attribute>()));
}

Value FunctionPartitioner::blockIndex(Location loc, ArrayRef<Axis> axes,
                                      int64_t scale) {
  SmallVector<StringRef> names;
  for (Axis axis : axes)
    names.push_back(mesh.axes[axis].name);
  return dist::BlockIndexOp::create(
      builder, loc, RankedTensorType::get({}, builder.getI64Type()),
      builder.getStrArrayAttr(names), scale);
}

void FunctionPartitioner::placeIota(nn::IotaOp planned, nn::IotaOp local) {
  const AxisList &axes = shardingOf(planned.getResult()).dims[planned.getDim()];
  if (axes.empty())
    return;
  builder.setInsertionPoint(local);
  int64_t size = nn::shapeOf(local.getResult())[planned.getDim()];
  local.getOffsetMutable().assign(blockIndex(planned.getLoc(), axes, size));
  builder.setInsertionPointAfter(local);
}

void FunctionPartitioner::placeRandom(nn::RandomUniformOp planned,
                                      nn::RandomUniformOp local) {
  Sharding sharding = shardingOf(planned.getResult());
  bool isCut = llvm::any_of(sharding.dims,
                            [](const AxisList &axes) { return !axes.empty(); });
  if (!isCut)
    return;
  builder.setInsertionPoint(local);
  SmallVector<Value> offsets;
  for (auto [dim, axes] : llvm::enumerate(sharding.dims)) {
    Value offset =
        blockIndex(planned.getLoc(), axes, nn::shapeOf(local.getResult())[dim]);
    offsets.push_back(nn::buildReshape(builder, planned.getLoc(), offset, {1}));
  }
  local.getOffsetsMutable().assign(
      nn::buildConcat(builder, planned.getLoc(), offsets, 0));
  builder.setInsertionPointAfter(local);
}

LogicalResult FunctionPartitioner::expandReshard(dist::ReshardOp op) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  auto steps = planReshard(mesh, type.getShape(), shardingOf(op.getInput()),
                           shardingOf(op.getResult()));
  if (failed(steps))
    return op.emitError("not supported: a reshard from ")
           << op.getInput().getType() << " to " << op.getResult().getType();
  Value value = localOf.lookup(op.getInput());
  for (const ReshardStep &step : *steps)
    value = buildStep(op.getLoc(), value, step);
  localOf.map(op.getResult(), value);
  return success();
}

Value FunctionPartitioner::buildStep(Location loc, Value value,
                                     const ReshardStep &step) {
  ArrayAttr axes = axesAttr(step.axis);
  int64_t devices = mesh.axes[step.axis].size;
  SmallVector<int64_t> shape(nn::shapeOf(value));
  auto typeOf = [&] {
    return RankedTensorType::get(shape, getElementTypeOrSelf(value));
  };
  switch (step.kind) {
  case ReshardKind::AllReduce:
    return dist::AllReduceOp::create(builder, loc, step.reduction,
                                     ValueRange{value}, axes)
        .getResult(0);
  case ReshardKind::ReduceScatter:
    shape[step.dim] /= devices;
    return dist::ReduceScatterOp::create(builder, loc, typeOf(), step.reduction,
                                         value, step.dim, axes);
  case ReshardKind::AllGather:
    shape[step.dim] *= devices;
    return dist::AllGatherOp::create(builder, loc, typeOf(), value, step.dim,
                                     axes);
  case ReshardKind::AllToAll:
    shape[step.dim] *= devices;
    shape[step.toDim] /= devices;
    return dist::AllToAllOp::create(builder, loc, typeOf(), value, step.toDim,
                                    step.dim, axes);
  case ReshardKind::Slice:
    shape[step.dim] /= devices;
    return dist::ShardSliceOp::create(builder, loc, typeOf(), value, step.dim,
                                      axes);
  }
  llvm_unreachable("all kinds of step are handled");
}

LogicalResult espalier::partitionModule(ModuleOp module) {
  dist::MeshOp meshOp = dist::meshOf(module);
  if (!meshOp)
    return module.emitError("has no dist.mesh");
  Mesh mesh = Mesh::from(meshOp);
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (failed(FunctionPartitioner(function, mesh).run()))
      return failure();
  return success();
}
