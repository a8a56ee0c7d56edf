//===- LowerMap.cpp - Elementwise ops and reductions to loops -------------===//

#include "dialects/Nn/NnShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "Fusion.h"
#include "Lowering.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

/// Makes of a map's operand what the loops' body computes itself: a constant of
/// one value, or an index.
static Value inlineOperand(OpBuilder &builder, Location loc, Value operand,
                           int64_t rank) {
  if (auto constant = operand.getDefiningOp<nn::ConstantOp>()) {
    if (!constant.getValue().isSplat())
      return {};
    auto value =
        cast<TypedAttr>(constant.getValue().getSplatValue<Attribute>());
    return arith::ConstantOp::create(builder, loc, value);
  }
  auto iota = operand.getDefiningOp<nn::IotaOp>();
  if (!iota || iota.getOffset() || nn::shapeOf(operand)[iota.getDim()] == 1)
    return {};
  Value index = rt::IndexOp::create(builder, loc, builder.getI64Type(),
                                    rank - nn::rankOf(operand) + iota.getDim());
  Type type = getElementTypeOrSelf(operand);
  if (isa<FloatType>(type))
    return arith::SIToFPOp::create(builder, loc, type, index);
  if (type.getIntOrFloatBitWidth() < 64)
    return arith::TruncIOp::create(builder, loc, type, index);
  return index;
}

static bool isInlined(Value operand) {
  if (auto constant = operand.getDefiningOp<nn::ConstantOp>())
    return constant.getValue().isSplat();
  auto iota = operand.getDefiningOp<nn::IotaOp>();
  return iota && !iota.getOffset() && nn::shapeOf(operand)[iota.getDim()] != 1;
}

/// Sums of narrow floats are taken in fp32.
static bool widensSum(nn::ReduceOp op) {
  Type type = getElementTypeOrSelf(op.getResult());
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
}

/// The map's loops also take the reductions of what it computes, and store only
/// what others read.
void Lowering::lowerMap(nn::MapOp op) {
  ArrayRef<int64_t> shape = nn::shapeOf(op.getResult(0));
  SmallVector<View> inputs, outputs;
  SmallVector<StringRef> kinds;
  SmallVector<unsigned> yielded; // the map's result of each output
  for (Value operand : op.getOperands())
    if (!isInlined(operand))
      inputs.push_back(broadcastView(viewOf(operand), shape));
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    bool isRead = false;
    for (Operation *user : result.getUsers()) {
      auto reduce = dyn_cast<nn::ReduceOp>(user);
      if (!reduce || widensSum(reduce)) {
        isRead = true;
        continue;
      }
      outputs.push_back(broadcastView(resultView(reduce.getResult()), shape));
      kinds.push_back(stringifyReductionKind(reduce.getKind()));
      yielded.push_back(index);
      done.insert(reduce);
    }
    if (!isRead)
      continue;
    outputs.push_back(resultView(result));
    kinds.push_back("store");
    yielded.push_back(index);
  }
  if (outputs.empty())
    return;
  loops(shape, inputs, outputs, kinds, [&](OpBuilder &b, ValueRange arguments) {
    IRMapping mapping;
    Block &body = op.getBody().front();
    auto next = arguments.begin();
    for (auto [operand, argument] :
         llvm::zip_equal(op.getOperands(), body.getArguments())) {
      Value inlined = inlineOperand(b, loc, operand, shape.size());
      mapping.map(argument, inlined ? inlined : *next++);
    }
    for (Operation &inner : body.without_terminator())
      b.clone(inner, mapping);
    auto yield = cast<nn::YieldOp>(body.getTerminator());
    return llvm::map_to_vector(yielded, [&](unsigned index) {
      return mapping.lookup(yield.getValues()[index]);
    });
  });
}

void Lowering::lowerReduce(nn::ReduceOp op) {
  View input = viewOf(op.getInput());
  StringRef kind = stringifyReductionKind(op.getKind());
  View result = resultView(op.getResult());
  if (!widensSum(op)) {
    loops(input.shape, {input}, {broadcastView(result, input.shape)}, {kind},
          [](OpBuilder &, ValueRange arguments) -> SmallVector<Value> {
            return {arguments[0]};
          });
    return;
  }
  View wide = temporary(result.shape, builder.getF32Type());
  loops(input.shape, {input}, {broadcastView(wide, input.shape)}, {kind},
        [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
          return {arith::ExtFOp::create(b, loc, b.getF32Type(), arguments[0])};
        });
  convert(wide, result);
}

//===----------------------------------------------------------------------===//
// Sums of products
//===----------------------------------------------------------------------===//

/// Products that can add to a sum in place. A product is worth it only if no
/// copy of the other terms is needed: if they are one argument, which the sum
/// then overwrites (gradients that accumulate), or if there are none.
void Lowering::findDeferred() {
  for (auto op : source.getBody().front().getOps<nn::MapOp>()) {
    Type type = op.getResult(0).getType();
    if (!addsItsArguments(op) || !getElementTypeOrSelf(type).isF32())
      continue;
    SmallVector<Operation *> products;
    SmallVector<Value> others;
    for (Value operand : op.getOperands()) {
      Operation *producer = operand.getDefiningOp();
      bool isProduct =
          isa_and_nonnull<nn::ContractOp, nn::ScatterAddOp>(producer) &&
          operand.hasOneUse() && operand.getType() == type;
      if (!isProduct) {
        others.push_back(operand);
        continue;
      }
      products.push_back(producer);
    }
    bool inPlace =
        others.empty() || (others.size() == 1 && others[0].getType() == type &&
                           isa<BlockArgument>(others[0]));
    for (Operation *product : products)
      if (inPlace || isa<nn::ScatterAddOp>(product))
        deferred.insert(product);
  }
}

bool Lowering::isSumMap(nn::MapOp op) {
  return op.getNumResults() == 1 &&
         llvm::any_of(op.getOperands(), [&](Value operand) {
           return deferred.contains(operand.getDefiningOp());
         });
}

void Lowering::lowerDeferredSum(nn::MapOp op) {
  View to = denseResult(op.getResult(0));
  SmallVector<View> others;
  SmallVector<Operation *> products;
  for (Value operand : op.getOperands()) {
    if (deferred.contains(operand.getDefiningOp()))
      products.push_back(operand.getDefiningOp());
    else
      others.push_back(broadcastView(viewOf(operand), to.shape));
  }
  if (others.size() == 1)
    copy(others[0], to);
  else if (!others.empty())
    loops(to.shape, others, {to}, {"store"},
          [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
            Value sum = arguments[0];
            for (Value argument : arguments.drop_front())
              sum = arith::AddFOp::create(b, loc, sum, argument);
            return {sum};
          });
  // Products first: they write all, scatters only some rows.
  llvm::stable_sort(products, [](Operation *a, Operation *b) {
    return isa<nn::ContractOp>(a) && !isa<nn::ContractOp>(b);
  });
  bool accumulate = !others.empty();
  for (Operation *product : products) {
    loc = product->getLoc();
    if (auto contract = dyn_cast<nn::ContractOp>(product))
      lowerContract(contract, to, accumulate);
    else
      lowerScatterAdd(cast<nn::ScatterAddOp>(product), to, accumulate);
    accumulate = true;
  }
}
