//===- CombineAllReduces.cpp - Put all-reduces into buckets ---------------===//

#include "dialects/Dist/Dist.h"
#include "espalier/Partition/PartitionModule.h"

#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace espalier;

/// What the all-reduces of a bucket have in common.
static Attribute bucketKey(dist::AllReduceOp op) {
  MLIRContext *context = op.getContext();
  return ArrayAttr::get(
      context, {op.getKindAttr(), op.getAxesAttr(),
                TypeAttr::get(getElementTypeOrSelf(op.getInputs()[0]))});
}

/// Whether all operands are there before `first`.
static bool isReadyAt(dist::AllReduceOp op, Operation *first) {
  return llvm::all_of(op.getInputs(), [&](Value value) {
    Operation *definition = value.getDefiningOp();
    return !definition || definition->isBeforeInBlock(first);
  });
}

static void combine(ArrayRef<dist::AllReduceOp> bucket) {
  dist::AllReduceOp first = bucket.front();
  SmallVector<Value> inputs;
  SmallVector<Location> locations;
  for (dist::AllReduceOp op : bucket) {
    llvm::append_range(inputs, op.getInputs());
    locations.push_back(op.getLoc());
  }
  OpBuilder builder(first);
  auto combined = dist::AllReduceOp::create(
      builder, FusedLoc::get(builder.getContext(), locations), first.getKind(),
      inputs, first.getAxes());
  unsigned next = 0;
  for (dist::AllReduceOp op : bucket) {
    for (Value result : op.getResults())
      result.replaceAllUsesWith(combined.getResult(next++));
    op.erase();
  }
}

int64_t espalier::combineAllReduces(func::FuncOp function) {
  int64_t combined = 0;
  llvm::MapVector<Attribute, SmallVector<dist::AllReduceOp>> open;
  SmallVector<SmallVector<dist::AllReduceOp>> closed;
  for (auto op : function.front().getOps<dist::AllReduceOp>()) {
    SmallVector<dist::AllReduceOp> &bucket = open[bucketKey(op)];
    if (!bucket.empty() && !isReadyAt(op, bucket.front())) {
      closed.push_back(std::move(bucket));
      bucket.clear();
    }
    bucket.push_back(op);
  }
  for (auto &[key, bucket] : open)
    closed.push_back(std::move(bucket));
  for (ArrayRef<dist::AllReduceOp> bucket : closed)
    if (bucket.size() > 1) {
      combined += bucket.size() - 1;
      combine(bucket);
    }
  return combined;
}
