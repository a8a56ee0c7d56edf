//===- MapMatch.cpp - Matching maps of one scalar op -*- C++ -*-===//

#include "MapMatch.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace espalier;

static std::optional<double> scalarNumber(Attribute attribute) {
  if (auto floating = dyn_cast_or_null<FloatAttr>(attribute))
    return floating.getValueAsDouble();
  if (auto integer = dyn_cast_or_null<IntegerAttr>(attribute))
    return integer.getType().isInteger(1)
               ? double(integer.getValue().getZExtValue())
               : double(integer.getInt());
  return std::nullopt;
}

DenseElementsAttr espalier::matchConstant(Value value) {
  auto constant = value ? value.getDefiningOp<nn::ConstantOp>() : nullptr;
  return constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                  : DenseElementsAttr();
}

std::optional<double> espalier::uniformNumber(Value value) {
  DenseElementsAttr elements = matchConstant(value);
  if (!elements || !elements.isSplat())
    return std::nullopt;
  return scalarNumber(elements.getSplatValue<Attribute>());
}

static std::optional<MapOperand> resolve(nn::MapOp map, Value scalar) {
  if (auto argument = dyn_cast<BlockArgument>(scalar)) {
    Value tensor = map.getOperand(argument.getArgNumber());
    auto type = cast<RankedTensorType>(tensor.getType());
    if (type.getNumElements() == 1)
      if (auto number = uniformNumber(tensor))
        return MapOperand{{}, number};
    return MapOperand{tensor, std::nullopt};
  }
  Attribute constant;
  if (matchPattern(scalar, m_Constant(&constant)))
    if (auto number = scalarNumber(constant))
      return MapOperand{{}, number};
  return std::nullopt;
}

std::optional<SmallVector<MapOperand, 3>>
espalier::matchMap(Value value, StringRef scalarOp) {
  auto map = value.getDefiningOp<nn::MapOp>();
  if (!map || map.getNumResults() != 1)
    return std::nullopt;
  Operation *yield = map.getBody().front().getTerminator();
  Operation *op = yield->getOperand(0).getDefiningOp();
  if (!op || op->getName().getStringRef() != scalarOp)
    return std::nullopt;
  SmallVector<MapOperand, 3> operands;
  for (Value scalar : op->getOperands()) {
    std::optional<MapOperand> operand = resolve(map, scalar);
    if (!operand)
      return std::nullopt;
    operands.push_back(*operand);
  }
  return operands;
}

std::optional<TensorAndNumber> espalier::matchScaled(Value value) {
  if (auto product = matchWithNumber<arith::MulFOp>(value))
    return product;
  auto quotient = matchMap<arith::DivFOp>(value);
  if (quotient && (*quotient)[0].tensor && (*quotient)[1].number &&
      *(*quotient)[1].number != 0)
    return TensorAndNumber{(*quotient)[0].tensor, 1 / *(*quotient)[1].number};
  return std::nullopt;
}

/// The body 1 / sqrt(argument) in one map.
static Value matchRootInOneMap(Value value) {
  auto map = value.getDefiningOp<nn::MapOp>();
  if (!map || map.getNumOperands() != 1 || map.getNumResults() != 1)
    return {};
  Value yielded = map.getBody().front().getTerminator()->getOperand(0);
  Value argument = map.getBody().front().getArgument(0);
  if (auto root = yielded.getDefiningOp<math::RsqrtOp>())
    return root.getOperand() == argument ? map.getOperand(0) : Value();
  auto quotient = yielded.getDefiningOp<arith::DivFOp>();
  if (!quotient || !matchPattern(quotient.getLhs(), m_OneFloat()))
    return {};
  auto root = quotient.getRhs().getDefiningOp<math::SqrtOp>();
  return root && root.getOperand() == argument ? map.getOperand(0) : Value();
}

Value espalier::matchReciprocalRoot(Value value) {
  if (Value root = matchRootInOneMap(value))
    return root;
  auto quotient = matchMap<arith::DivFOp>(value);
  if (!quotient || (*quotient)[0].number != 1.0 || !(*quotient)[1].tensor)
    return {};
  auto root = matchMap<math::SqrtOp>((*quotient)[1].tensor);
  return root ? (*root)[0].tensor : Value();
}

bool espalier::dependsOnParameter(Value value) {
  SmallVector<Value> work{value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (Operation *op = next.getDefiningOp()) {
      work.append(op->operand_begin(), op->operand_end());
      continue;
    }
    auto argument = cast<BlockArgument>(next);
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto role = function ? function.getArgAttrOfType<StringAttr>(
                               argument.getArgNumber(), "espalier.role")
                         : StringAttr();
    if (role && role.getValue() == "parameter")
      return true;
  }
  return false;
}
