//===- LowerDist.cpp - Collectives to calls of the runtime ----------------===//

#include "dialects/Nn/NnShapes.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include "Lowering.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

namespace {

/// How a dimension's blocks lie: `outer` runs of `count` elements.
struct Runs {
  int64_t outer = 1, count = 1;
};

Runs runsOf(ArrayRef<int64_t> block, int64_t dim) {
  Runs runs;
  for (auto [i, size] : llvm::enumerate(block))
    (int64_t(i) < dim ? runs.outer : runs.count) *= size;
  return runs;
}

} // namespace

/// One call for each element type; the buffers are reduced in place.
void Lowering::lowerAllReduce(dist::AllReduceOp op) {
  llvm::MapVector<Type, SmallVector<View>> byType;
  for (auto [input, result] :
       llvm::zip_equal(op.getInputs(), op.getResults())) {
    View from = viewOf(input), to = denseResult(result);
    copy(from, to);
    byType[to.elementType].push_back(to);
  }
  for (auto &[type, places] : byType) {
    SmallVector<Value> buffers;
    for (const View &view : places)
      buffers.push_back(buffer(view));
    rt::AllReduceOp::create(builder, loc, op.getKind(), buffers,
                            program.groupsOf(op.getAxes()),
                            program.opIndex(op.getLoc()));
  }
}

/// What is received is [member][block]; the member's dimension then moves to
/// before the one along which the blocks are put together.
void Lowering::lowerAllToAll(dist::AllToAllOp op) {
  View from = dense(op.getInput());
  int64_t members = program.groupSize(op.getAxes());
  SmallVector<int64_t> block(from.shape);
  block[op.getSplitDim()] /= members;
  Runs runs = runsOf(block, op.getSplitDim());
  SmallVector<int64_t> received = block;
  received.insert(received.begin(), members);
  View parts = temporary(received, from.elementType);
  rt::AllToAllOp::create(builder, loc, buffer(from), buffer(parts), runs.outer,
                         runs.count, program.groupsOf(op.getAxes()),
                         program.opIndex(op.getLoc()));
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(1, received.size()));
  order.insert(order.begin() + op.getConcatDim(), 0);
  View moved = transposeView(parts, order);
  View to = resultView(op.getResult());
  SmallVector<int64_t> split(block);
  split.insert(split.begin() + op.getConcatDim(), members);
  if (auto target = reshapeView(to, split))
    return copy(moved, *target);
  View whole = temporary(split, from.elementType);
  copy(moved, whole);
  copy(*reshapeView(whole, to.shape), to);
}

/// A copy whose input begins elsewhere on each rank.
LogicalResult Lowering::lowerShardSlice(dist::ShardSliceOp op) {
  View from = dense(op.getInput());
  if (storage[from.storage].constant)
    return op.emitOpError("not supported: a slice of a constant by rank");
  SmallVector<int64_t> none(from.rank(), 0), steps(from.rank(), 1);
  View block = sliceView(from, none, steps, nn::shapeOf(op.getResult()));
  int64_t step = block.shape[op.getDim()] * from.strides[op.getDim()] *
                 memory::bytesOfElement(from.elementType);
  SmallVector<int64_t> byRank;
  for (int64_t position : program.positions(op.getAxes()))
    byRank.push_back(position * step);
  copy(block, resultView(op.getResult()));
  auto loops = cast<rt::LoopsOp>(builder.getBlock()->back());
  loops.getInputs()[0].getDefiningOp<rt::BufferOp>().setByRank(byRank);
  return success();
}

LogicalResult Lowering::lowerDist(Operation *op) {
  int64_t index = program.opIndex(op->getLoc());
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](dist::AllReduceOp op) { return lowerAllReduce(op), success(); })
      .Case([&](dist::AllToAllOp op) { return lowerAllToAll(op), success(); })
      .Case([&](dist::ShardSliceOp op) { return lowerShardSlice(op); })
      .Case([&](dist::AllGatherOp op) {
        View from = dense(op.getInput()), to = denseResult(op.getResult());
        Runs runs = runsOf(from.shape, op.getDim());
        rt::AllGatherOp::create(builder, loc, buffer(from), buffer(to),
                                runs.outer, runs.count,
                                program.groupsOf(op.getAxes()), index);
        return success();
      })
      .Case([&](dist::ReduceScatterOp op) {
        View from = dense(op.getInput()), to = denseResult(op.getResult());
        Runs runs = runsOf(to.shape, op.getDim());
        rt::ReduceScatterOp::create(builder, loc, op.getKind(), buffer(from),
                                    buffer(to), runs.outer, runs.count,
                                    program.groupsOf(op.getAxes()), index);
        return success();
      })
      .Case([&](dist::BlockIndexOp op) {
        SmallVector<int64_t> values = program.positions(op.getAxes());
        for (int64_t &value : values)
          value *= op.getScale();
        launch("by_rank", {resultView(op.getResult())}, values);
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("expects a partitioned program");
      });
}
