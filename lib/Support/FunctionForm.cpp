//===- FunctionForm.cpp - Arguments and results by role and name ----------===//

#include "espalier/Support/FunctionForm.h"

using namespace mlir;
using namespace espalier;

static Slot makeSlot(Type type, DictionaryAttr attributes) {
  auto text = [&](StringRef key) -> std::string {
    auto value = attributes ? attributes.getAs<StringAttr>(key) : StringAttr();
    return value ? value.str() : "";
  };
  return {type, text(nameAttribute), text(roleAttribute)};
}

SmallVector<Slot> espalier::argumentSlots(func::FuncOp function) {
  SmallVector<Slot> slots;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    slots.push_back(makeSlot(type, function.getArgAttrDict(i)));
  return slots;
}

SmallVector<Slot> espalier::resultSlots(func::FuncOp function) {
  SmallVector<Slot> slots;
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    slots.push_back(makeSlot(type, function.getResultAttrDict(i)));
  return slots;
}

static DictionaryAttr attributesOf(OpBuilder &builder, const Slot &slot) {
  return builder.getDictionaryAttr(
      {builder.getNamedAttr(nameAttribute, builder.getStringAttr(slot.name)),
       builder.getNamedAttr(roleAttribute, builder.getStringAttr(slot.role))});
}

func::FuncOp espalier::createFunction(OpBuilder &builder, Location loc,
                                      StringRef name, ArrayRef<Slot> arguments,
                                      ArrayRef<Slot> results) {
  auto typeOf = [](const Slot &slot) { return slot.type; };
  auto function = func::FuncOp::create(
      builder, loc, name,
      builder.getFunctionType(llvm::map_to_vector(arguments, typeOf),
                              llvm::map_to_vector(results, typeOf)));
  for (auto [i, slot] : llvm::enumerate(arguments))
    function.setArgAttrs(i, attributesOf(builder, slot));
  for (auto [i, slot] : llvm::enumerate(results))
    function.setResultAttrs(i, attributesOf(builder, slot));
  function.addEntryBlock();
  return function;
}
