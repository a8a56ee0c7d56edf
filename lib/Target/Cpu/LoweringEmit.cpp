//===- LoweringEmit.cpp - How the lowering makes rt ops -------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "Lowering.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

Value Lowering::buffer(const View &view) {
  int64_t bytes = memory::bytesOfElement(view.elementType);
  if (ElementsAttr constant = storage[view.storage].constant) {
    // The whole of it; a part of a constant is copied by its walk, from offset
    // 0.
    auto type = MemRefType::get({constant.getNumElements() - view.offset},
                                view.elementType);
    if (view.offset == 0)
      return rt::ConstantOp::create(builder, loc, type, constant);
    auto values = llvm::to_vector(constant.getValues<Attribute>());
    auto part = DenseElementsAttr::get(
        RankedTensorType::get({type.getDimSize(0)}, view.elementType),
        ArrayRef<Attribute>(values).drop_front(view.offset));
    return rt::ConstantOp::create(builder, loc, type, cast<ElementsAttr>(part));
  }
  auto type = MemRefType::get({view.span()}, view.elementType);
  return rt::BufferOp::create(builder, loc, type, view.offset * bytes,
                              builder.getI64IntegerAttr(view.storage),
                              DenseI64ArrayAttr());
}

void Lowering::loops(ArrayRef<int64_t> shape, ArrayRef<View> inputs,
                     ArrayRef<View> outputs, ArrayRef<StringRef> kinds,
                     LoopBody body) {
  SmallVector<Value> from, to;
  SmallVector<Attribute> strides;
  for (const View &view : inputs) {
    from.push_back(buffer(view));
    strides.push_back(builder.getDenseI64ArrayAttr(view.strides));
  }
  for (const View &view : outputs) {
    to.push_back(buffer(view));
    strides.push_back(builder.getDenseI64ArrayAttr(view.strides));
  }
  auto op = rt::LoopsOp::create(
      builder, loc, builder.getDenseI64ArrayAttr(shape), from, to,
      builder.getArrayAttr(strides), builder.getStrArrayAttr(kinds));
  Block &block = op.getBody().emplaceBlock();
  for (const View &view : inputs)
    block.addArgument(view.elementType, loc);
  OpBuilder inner = OpBuilder::atBlockBegin(&block);
  rt::YieldOp::create(inner, loc, body(inner, block.getArguments()));
}

void Lowering::copy(const View &from, const View &to) {
  loops(to.shape, {from}, {to}, {"store"},
        [](OpBuilder &, ValueRange arguments) -> SmallVector<Value> {
          return {arguments[0]};
        });
}

void Lowering::convert(const View &from, const View &to) {
  if (from.elementType == to.elementType)
    return copy(from, to);
  bool widen = from.elementType.getIntOrFloatBitWidth() <
               to.elementType.getIntOrFloatBitWidth();
  loops(
      to.shape, {from}, {to}, {"store"},
      [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
        if (widen)
          return {arith::ExtFOp::create(b, loc, to.elementType, arguments[0])};
        return {arith::TruncFOp::create(b, loc, to.elementType, arguments[0])};
      });
}

void Lowering::fill(const View &to, TypedAttr value) {
  loops(to.shape, {}, {to}, {"store"},
        [&](OpBuilder &b, ValueRange) -> SmallVector<Value> {
          return {arith::ConstantOp::create(b, loc, value)};
        });
}

void Lowering::launch(StringRef kernel, ArrayRef<Operand> buffers,
                      ArrayRef<int64_t> integers, ArrayRef<double> reals) {
  SmallVector<Value> values;
  SmallVector<bool> present;
  for (const Operand &operand : buffers) {
    present.push_back(operand.has_value());
    if (operand)
      values.push_back(buffer(*operand));
  }
  SmallVector<Attribute> constants;
  for (int64_t value : integers)
    constants.push_back(builder.getI64IntegerAttr(value));
  for (double value : reals)
    constants.push_back(builder.getF64FloatAttr(value));
  bool all = llvm::all_of(present, [](bool here) { return here; });
  rt::LaunchOp::create(builder, loc, builder.getStringAttr(kernel), values,
                       builder.getArrayAttr(constants),
                       all ? DenseBoolArrayAttr()
                           : builder.getDenseBoolArrayAttr(present));
}
