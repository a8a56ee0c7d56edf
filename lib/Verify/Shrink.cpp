//===- Shrink.cpp - The same program at small sizes -----------------------===//

#include "espalier/Verify/Shrink.h"

#include "dialects/Interfaces/ShardingRuleOpInterface.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Verifier.h"

#include "DimensionClasses.h"

using namespace mlir;
using namespace espalier;
using Id = DimensionClasses::Id;

namespace {

class Shrinker {
public:
  Shrinker(func::FuncOp function, const ShrinkOptions &options)
      : function(function), options(options) {}

  LogicalResult run();

private:
  ArrayRef<Id> dimsOf(Value value);
  void tieOp(Operation *op);
  void tieTensor(Value value, const TensorFactors &factors,
                 ArrayRef<Id> factorIds);
  bool keepsFactor(Operation *op, const Factor &factor) const;
  void tieSizes(Operation *op);
  void tieSlices(Value value);
  void fixBatch();
  void resize(Operation *op);
  RankedTensorType newType(Value value);
  SmallVector<int64_t> newShape(Value value);

  func::FuncOp function;
  const ShrinkOptions &options;
  DimensionClasses classes;
  llvm::DenseMap<Value, SmallVector<Id, 4>> ids;
};

} // namespace

ArrayRef<Id> Shrinker::dimsOf(Value value) {
  auto [it, isNew] = ids.try_emplace(value);
  if (isNew)
    for (int64_t size : nn::shapeOf(value))
      it->second.push_back(classes.add(size));
  return it->second;
}

/// Whether a factor's size may not change, where the op's meaning hangs on it.
bool Shrinker::keepsFactor(Operation *op, const Factor &factor) const {
  if (factor.size <= 1)
    return true;
  if (factor.kind != FactorKind::Whole)
    return false;
  // A table whose indices are the user's can shrink with them.
  if (auto gather = dyn_cast<nn::GatherOp>(op))
    return !isa<BlockArgument>(gather.getIndices());
  return isa<nn::ReshapeOp, nn::PadOp, nn::ConvOp, nn::MaxPoolOp, nn::AvgPoolOp,
             nn::ConvInputGradOp, nn::RopeOp>(op);
}

void Shrinker::tieTensor(Value value, const TensorFactors &factors,
                         ArrayRef<Id> factorIds) {
  for (auto [dim, parts] : llvm::zip(dimsOf(value), factors)) {
    SmallVector<Id, 2> partIds;
    for (unsigned part : parts)
      partIds.push_back(factorIds[part]);
    if (partIds.empty())
      classes.keep(dim);
    else
      classes.setProduct(dim, partIds);
  }
}

void Shrinker::tieOp(Operation *op) {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<Id> factorIds;
  for (const Factor &factor : rule.factors) {
    factorIds.push_back(classes.add(factor.size));
    if (keepsFactor(op, factor))
      classes.keep(factorIds.back());
  }
  for (auto [value, factors] : llvm::zip(op->getOperands(), rule.operands))
    tieTensor(value, factors, factorIds);
  for (auto [value, factors] : llvm::zip(op->getResults(), rule.results))
    tieTensor(value, factors, factorIds);
  tieSizes(op);
}

/// Ties sizes that an op's rule does not speak of.
void Shrinker::tieSizes(Operation *op) {
  if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
    int64_t dim = concat.getDim();
    SmallVector<Id, 2> parts;
    for (Value input : concat.getInputs())
      parts.push_back(dimsOf(input)[dim]);
    classes.setSum(dimsOf(concat.getResult())[dim], parts);
  }
}

/// The slices of `value` along one dimension that follow each other, if they
/// tile it.
static SmallVector<nn::SliceOp> tilingSlices(Value value, unsigned dim) {
  SmallVector<nn::SliceOp> slices;
  for (Operation *user : value.getUsers())
    if (auto slice = dyn_cast<nn::SliceOp>(user))
      slices.push_back(slice);
  llvm::sort(slices, [&](nn::SliceOp a, nn::SliceOp b) {
    return a.getOffsets()[dim] < b.getOffsets()[dim];
  });
  int64_t end = 0;
  for (nn::SliceOp slice : slices) {
    if (slice.getOffsets()[dim] != end || slice.getStrides()[dim] != 1)
      return {};
    end += nn::shapeOf(slice.getResult())[dim];
  }
  if (end != nn::shapeOf(value)[dim])
    return {};
  return slices;
}

/// A dimension that slices tile is the sum of theirs; else it keeps its size,
/// in which any smaller part still fits.
void Shrinker::tieSlices(Value value) {
  for (auto [dim, size] : llvm::enumerate(nn::shapeOf(value))) {
    bool isCut = llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto slice = dyn_cast<nn::SliceOp>(user);
      return slice && nn::shapeOf(slice.getResult())[dim] != size;
    });
    if (!isCut)
      continue;
    SmallVector<Id, 2> parts;
    for (nn::SliceOp slice : tilingSlices(value, dim))
      parts.push_back(dimsOf(slice.getResult())[dim]);
    if (parts.empty())
      classes.keep(dimsOf(value)[dim]);
    else
      classes.setSum(dimsOf(value)[dim], parts);
  }
}

void Shrinker::fixBatch() {
  for (BlockArgument argument : function.getArguments()) {
    auto role = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      "espalier.role");
    if (role && (role.getValue() == "input" || role.getValue() == "label" ||
                 role.getValue() == "valid"))
      classes.fix(dimsOf(argument).front(), options.batch);
  }
}

SmallVector<int64_t> Shrinker::newShape(Value value) {
  SmallVector<int64_t> shape;
  for (Id dim : dimsOf(value))
    shape.push_back(classes.sizeOf(dim));
  return shape;
}

RankedTensorType Shrinker::newType(Value value) {
  return RankedTensorType::get(newShape(value), getElementTypeOrSelf(value));
}

/// The leading part of a constant.
static DenseElementsAttr leadingPart(ElementsAttr value,
                                     RankedTensorType type) {
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (dense && dense.isSplat())
    return DenseElementsAttr::get(type, dense.getSplatValue<Attribute>());
  SmallVector<Attribute> elements;
  SmallVector<uint64_t> index(type.getRank());
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    elements.push_back(value.getValues<Attribute>()[index]);
    for (int64_t dim = type.getRank(); dim-- > 0;) {
      if (++index[dim] < uint64_t(type.getDimSize(dim)))
        break;
      index[dim] = 0;
    }
  }
  return DenseElementsAttr::get(type, elements);
}

/// Brings an op's attributes to the new sizes; its types come after.
void Shrinker::resize(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](nn::ConstantOp constant) {
        constant.setValueAttr(
            leadingPart(constant.getValue(), newType(constant.getResult())));
      })
      .Case([&](nn::RandomUniformOp random) {
        random.setLogicalShape(newShape(random.getResult()));
      })
      .Case([&](nn::SliceOp slice) {
        SmallVector<int64_t> offsets(slice.getOffsets());
        for (auto [dim, offset] : llvm::enumerate(offsets)) {
          SmallVector<nn::SliceOp> tiles = tilingSlices(slice.getInput(), dim);
          if (!llvm::is_contained(tiles, slice) || tiles.size() < 2)
            continue;
          offset = 0;
          for (nn::SliceOp tile : tiles) {
            if (tile == slice)
              break;
            offset += newShape(tile.getResult())[dim];
          }
        }
        slice->setAttr("espalier.shrunk_offsets",
                       DenseI64ArrayAttr::get(op->getContext(), offsets));
      });
}

LogicalResult Shrinker::run() {
  for (Value argument : function.getArguments())
    (void)dimsOf(argument);
  Block &block = function.front();
  for (Operation &op : block.without_terminator()) {
    if (!isa<ShardingRuleOpInterface>(op))
      return op.emitError("'") << op.getName() << "' has no sharding rule";
    tieOp(&op);
  }
  for (Value argument : function.getArguments())
    tieSlices(argument);
  for (Operation &op : block.without_terminator())
    for (Value result : op.getResults())
      tieSlices(result);
  fixBatch();
  classes.chooseSizes(options.largest);

  for (Operation &op : block.without_terminator())
    resize(&op);
  auto setType = [&](Value value) { value.setType(newType(value)); };
  llvm::for_each(function.getArguments(), setType);
  for (Operation &op : block.without_terminator()) {
    llvm::for_each(op.getResults(), setType);
    if (auto slice = dyn_cast<nn::SliceOp>(op)) {
      auto offsets =
          cast<DenseI64ArrayAttr>(slice->removeAttr("espalier.shrunk_offsets"));
      slice.setOffsets(offsets.asArrayRef());
    }
  }
  function.setFunctionType(FunctionType::get(
      function.getContext(), block.getArgumentTypes(),
      llvm::to_vector(block.getTerminator()->getOperandTypes())));
  return verify(function);
}

LogicalResult espalier::shrinkFunction(func::FuncOp forward,
                                       const ShrinkOptions &options) {
  return Shrinker(forward, options).run();
}
