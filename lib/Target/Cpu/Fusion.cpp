//===- Fusion.cpp - Merging elementwise ops -------------------------------===//
//
// Elementwise work is bound by memory, so what counts is how often a tensor is
// read and written. Two maps of one shape, the second of which reads what the
// first computes, become one:
//
// - always, if nobody else reads it: then it is never stored;
// - with a result for those who do, where the order of ops allows it: one read
//   is saved;
// - by computing it again in each reader, if it is cheap, has one operand of
// full
//   size, and all its readers are maps: it is never stored, and what it is
//   computed from lives as long as it would have.
//
// Reductions of a map's results join it when they are lowered.
//
//===----------------------------------------------------------------------===//

#include "Fusion.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"
#include "espalier/Target/Cpu.h"

#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace espalier;

namespace {

constexpr size_t mostBodyOps = 256, mostOperands = 24, mostCheapOps = 8;

} // namespace

static Block &bodyOf(nn::MapOp op) { return op.getBody().front(); }

//===----------------------------------------------------------------------===//
// Sums of padded parts are concatenations
//===----------------------------------------------------------------------===//

bool cpu::addsItsArguments(nn::MapOp op) {
  Block &body = bodyOf(op);
  if (op.getNumResults() != 1 || body.getNumArguments() < 2 ||
      body.getOperations().size() != body.getNumArguments())
    return false;
  return llvm::all_of(body.getArguments(),
                      [](Value argument) { return argument.hasOneUse(); }) &&
         llvm::all_of(body.without_terminator(), [](Operation &inner) {
           return isa<arith::AddFOp>(inner) && inner.getResult(0).hasOneUse();
         });
}

/// The padded tensors that a sum, or a tree of sums, has; false if it has any
/// other term, or if they are read elsewhere.
static bool collectPads(nn::MapOp sum, SmallVectorImpl<nn::PadOp> &pads) {
  return cpu::addsItsArguments(sum) &&
         llvm::all_of(sum.getOperands(), [&](Value term) {
           if (!term.hasOneUse())
             return false;
           if (auto inner = term.getDefiningOp<nn::MapOp>())
             return collectPads(inner, pads);
           auto pad = term.getDefiningOp<nn::PadOp>();
           if (!pad || !matchPattern(pad.getValue(), m_AnyZeroFloat()))
             return false;
           pads.push_back(pad);
           return true;
         });
}

/// The one dimension that is padded, or -1.
static int64_t paddedDim(nn::PadOp pad) {
  int64_t found = -1;
  for (auto [dim, low, high] : llvm::enumerate(pad.getLow(), pad.getHigh())) {
    if (low == 0 && high == 0)
      continue;
    if (found >= 0)
      return -1;
    found = dim;
  }
  return found;
}

/// Gradients of the parts of a tensor, each padded to the whole, are added up:
/// where they lie side by side they are put together instead.
static void concatenatePads(nn::MapOp op) {
  SmallVector<nn::PadOp> pads;
  if (!collectPads(op, pads))
    return;
  int64_t dim = paddedDim(pads.front());
  if (dim < 0)
    return;
  llvm::sort(pads, [&](nn::PadOp a, nn::PadOp b) {
    return a.getLow()[dim] < b.getLow()[dim];
  });
  int64_t end = 0;
  SmallVector<Value> parts;
  for (nn::PadOp pad : pads) {
    if (paddedDim(pad) != dim || pad.getLow()[dim] != end ||
        pad.getType() != op.getResult(0).getType())
      return;
    end += nn::shapeOf(pad.getInput())[dim];
    parts.push_back(pad.getInput());
  }
  if (end != nn::shapeOf(op.getResult(0))[dim])
    return;
  OpBuilder builder(op);
  auto concat =
      nn::ConcatOp::create(builder, op.getLoc(), op.getResult(0).getType(),
                           parts, builder.getI64IntegerAttr(dim));
  op.getResult(0).replaceAllUsesWith(concat.getResult());
}

//===----------------------------------------------------------------------===//
// Merging two maps
//===----------------------------------------------------------------------===//

static bool readsOnly(Value value, Operation *reader) {
  return llvm::all_of(value.getUsers(),
                      [&](Operation *user) { return user == reader; });
}

/// The operands of both without those that the first computes.
static llvm::SetVector<Value> mergedOperands(nn::MapOp first,
                                             nn::MapOp second) {
  llvm::SetVector<Value> operands(first.getOperands().begin(),
                                  first.getOperands().end());
  for (Value operand : second.getOperands())
    if (operand.getDefiningOp() != first)
      operands.insert(operand);
  return operands;
}

static bool isSmallEnough(nn::MapOp first, nn::MapOp second) {
  return bodyOf(first).getOperations().size() +
                 bodyOf(second).getOperations().size() <=
             mostBodyOps &&
         mergedOperands(first, second).size() <= mostOperands;
}

/// One map for both, before `place`. Results of the first that others read stay
/// results; with `duplicate` it keeps all of them itself.
static nn::MapOp mergeMaps(nn::MapOp first, nn::MapOp second, Operation *place,
                           bool duplicate) {
  llvm::SetVector<Value> operands = mergedOperands(first, second);
  SmallVector<Value> replaced;
  SmallVector<Type> types;
  if (!duplicate)
    for (Value result : first.getResults())
      if (!readsOnly(result, second))
        replaced.push_back(result);
  llvm::append_range(replaced, second.getResults());
  for (Value value : replaced)
    types.push_back(value.getType());
  OpBuilder builder(place);
  auto merged = nn::MapOp::create(builder, second.getLoc(), types,
                                  operands.getArrayRef());
  Block &body = merged.getBody().emplaceBlock();
  IRMapping mapping;
  for (Value operand : operands)
    mapping.map(operand, body.addArgument(getElementTypeOrSelf(operand),
                                          first.getLoc()));
  builder.setInsertionPointToStart(&body);
  // The tensors are mapped to their elements; then each body's arguments are.
  auto inlineBody = [&](nn::MapOp op) {
    for (auto [operand, argument] :
         llvm::zip_equal(op.getOperands(), bodyOf(op).getArguments()))
      mapping.map(argument, mapping.lookup(operand));
    for (Operation &inner : bodyOf(op).without_terminator())
      builder.clone(inner, mapping);
    auto yield = cast<nn::YieldOp>(bodyOf(op).getTerminator());
    for (auto [result, value] :
         llvm::zip_equal(op.getResults(), yield.getValues()))
      mapping.map(result, mapping.lookup(value));
  };
  inlineBody(first);
  inlineBody(second);
  SmallVector<Value> yielded;
  for (Value value : replaced)
    yielded.push_back(mapping.lookup(value));
  nn::YieldOp::create(builder, second.getLoc(), yielded);
  for (auto [value, result] : llvm::zip_equal(replaced, merged.getResults()))
    value.replaceAllUsesWith(result);
  second.erase();
  if (!duplicate)
    first.erase();
  return merged;
}

//===----------------------------------------------------------------------===//
// Which maps to merge
//===----------------------------------------------------------------------===//

/// Where a map for both can stand, or null: behind all operands and before all
/// readers.
static Operation *placeForBoth(nn::MapOp first, nn::MapOp second) {
  bool readersFollow = llvm::all_of(first->getUsers(), [&](Operation *user) {
    return user == second || second->isBeforeInBlock(user);
  });
  if (readersFollow)
    return second;
  bool operandsPrecede = llvm::all_of(second.getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return !producer || producer == first || producer->isBeforeInBlock(first);
  });
  return operandsPrecede ? first.getOperation() : nullptr;
}

/// Whether computing a map again costs less than reading what it computed.
static bool isCheap(nn::MapOp op) {
  Block &body = bodyOf(op);
  if (op.getNumResults() != 1 || body.getOperations().size() > mostCheapOps)
    return false;
  int64_t fullSize = 0;
  for (Value operand : op.getOperands())
    fullSize += nn::elementCount(operand) == nn::elementCount(op.getResult(0));
  return fullSize <= 1 &&
         llvm::all_of(body.without_terminator(), [](Operation &inner) {
           return isa<arith::ArithDialect>(inner.getDialect()) &&
                  !isa<arith::DivFOp, arith::RemFOp, arith::DivSIOp,
                       arith::RemSIOp, arith::FloorDivSIOp>(inner);
         });
}

/// Whether all who read a map's result are maps of its shape that could compute
/// it themselves.
static bool canDuplicate(nn::MapOp op) {
  return isCheap(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
           auto map = dyn_cast<nn::MapOp>(user);
           return map &&
                  nn::shapeOf(map.getResult(0)) ==
                      nn::shapeOf(op.getResult(0)) &&
                  isSmallEnough(op, map);
         });
}

/// Merges a map with one that it reads; the merged map, or null.
static nn::MapOp mergeOneOperand(nn::MapOp second) {
  for (Value operand : second.getOperands()) {
    auto first = operand.getDefiningOp<nn::MapOp>();
    if (!first || first->getBlock() != second->getBlock() ||
        nn::shapeOf(operand) != nn::shapeOf(second.getResult(0)) ||
        !isSmallEnough(first, second))
      continue;
    bool onlyReader = llvm::all_of(
        first->getUsers(), [&](Operation *user) { return user == second; });
    if (onlyReader)
      return mergeMaps(first, second, second, /*duplicate=*/false);
    if (canDuplicate(first))
      return mergeMaps(first, second, second, /*duplicate=*/true);
    if (Operation *place = placeForBoth(first, second))
      return mergeMaps(first, second, place, /*duplicate=*/false);
  }
  return {};
}

/// Broadcasts of an operand are the map's own.
static void readThroughBroadcasts(nn::MapOp op) {
  for (OpOperand &operand : op->getOpOperands())
    if (auto broadcast = operand.get().getDefiningOp<nn::BroadcastOp>())
      if (nn::broadcasts(nn::shapeOf(broadcast.getInput()),
                         nn::shapeOf(op.getResult(0))) &&
          nn::shapeOf(broadcast.getResult()) == nn::shapeOf(op.getResult(0)))
        operand.set(broadcast.getInput());
}

static void eraseUnread(Block &block) {
  for (Operation *op = &block.back(), *before; op; op = before) {
    before = op->getPrevNode();
    if (isOpTriviallyDead(op))
      op->erase();
  }
}

void cpu::fuseElementwise(func::FuncOp function) {
  Block &block = function.getBody().front();
  for (Operation &op : llvm::reverse(block))
    if (auto map = dyn_cast<nn::MapOp>(op)) {
      concatenatePads(map);
      readThroughBroadcasts(map);
    }
  eraseUnread(block);
  // What was merged is looked at again, from its place on.
  for (Operation *op = &block.front(); op; op = op->getNextNode()) {
    auto map = dyn_cast<nn::MapOp>(op);
    while (map) {
      nn::MapOp merged = mergeOneOperand(map);
      if (merged)
        op = merged;
      map = merged;
    }
  }
  eraseUnread(block);
}
