//===- FuseUnaryMaps.cpp - One map of a function of one tensor ------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"
#include "espalier/Import/Recognize.h"

#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace espalier;
using nn::shapeOf;

/// The tensor that the map is a function of, if it is one of one tensor of its
/// own shape.
static Value rootOf(nn::MapOp map) {
  if (!map || map.getNumResults() != 1 || map.getNumOperands() != 1 ||
      shapeOf(map.getOperand(0)) != shapeOf(map.getResult(0)))
    return {};
  return map.getOperand(0);
}

/// The map that makes `value`, if all its uses are in `user`.
static nn::MapOp onlyUsedIn(Value value, nn::MapOp user) {
  auto map = value.getDefiningOp<nn::MapOp>();
  bool isOnly = map && llvm::all_of(value.getUsers(), [&](Operation *other) {
                  return other == user;
                });
  return isOnly ? map : nn::MapOp();
}

/// The root that all operands have: each is the root itself, or a function of
/// it that nothing else uses. Null if there is none, or nothing to merge.
static Value commonRoot(nn::MapOp map) {
  if (map.getNumResults() != 1 || map.getNumOperands() == 0)
    return {};
  SmallVector<Value, 2> candidates;
  bool isStart = true, merges = false;
  for (Value operand : map.getOperands()) {
    Value deeper = rootOf(onlyUsedIn(operand, map));
    merges |= bool(deeper);
    SmallVector<Value, 2> own{operand};
    if (deeper)
      own.push_back(deeper);
    if (isStart)
      candidates = own;
    llvm::erase_if(candidates, [&](Value value) {
      return !llvm::is_contained(own, value);
    });
    isStart = false;
  }
  if (!merges || candidates.empty() ||
      shapeOf(candidates.back()) != shapeOf(map.getResult(0)))
    return {};
  // The deepest candidate; with one operand that is the operand's own root.
  Value root = candidates.back();
  return map.getNumOperands() == 1 && root == map.getOperand(0) ? Value()
                                                                : root;
}

/// One map of `root` that does what `map` and the maps of its operands do.
static nn::MapOp merge(OpBuilder &builder, nn::MapOp map, Value root) {
  builder.setInsertionPoint(map);
  auto merged = nn::MapOp::create(builder, map.getLoc(), map->getResultTypes(),
                                  ValueRange(root));
  Block &block = merged.getBody().emplaceBlock();
  Value argument = block.addArgument(
      cast<RankedTensorType>(root.getType()).getElementType(), root.getLoc());
  builder.setInsertionPointToStart(&block);
  llvm::DenseMap<Value, Value> scalars{{root, argument}};
  auto inlineBody = [&](nn::MapOp source) {
    Block &body = source.getBody().front();
    IRMapping mapping;
    for (auto [operand, scalar] :
         llvm::zip(source.getOperands(), body.getArguments()))
      mapping.map(scalar, scalars.lookup(operand));
    for (Operation &op : body.without_terminator())
      builder.clone(op, mapping);
    return mapping.lookupOrDefault(body.getTerminator()->getOperand(0));
  };
  for (Value operand : map.getOperands())
    if (!scalars.count(operand))
      scalars[operand] = inlineBody(operand.getDefiningOp<nn::MapOp>());
  Value result = inlineBody(map);
  nn::YieldOp::create(builder, map.getLoc(), result);
  return merged;
}

unsigned espalier::fuseUnaryMaps(func::FuncOp function) {
  OpBuilder builder(function.getContext());
  SmallVector<nn::MapOp> maps;
  function.walk([&](nn::MapOp map) { maps.push_back(map); });
  unsigned fused = 0;
  // In order, so that a chain is merged link by link into its last map.
  for (nn::MapOp map : maps) {
    Value root = commonRoot(map);
    if (!root)
      continue;
    nn::MapOp merged = merge(builder, map, root);
    llvm::SetVector<Value> operands(map.operand_begin(), map.operand_end());
    map.getResult(0).replaceAllUsesWith(merged.getResult(0));
    map.erase();
    for (Value operand : operands) {
      if (operand == root || !operand.use_empty())
        continue;
      operand.getDefiningOp()->erase();
      ++fused;
    }
  }
  return fused;
}
