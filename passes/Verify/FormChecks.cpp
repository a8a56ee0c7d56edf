//===- FormChecks.cpp - What contracts say of functions -------------------===//

#include "passes/Verify/FormChecks.h"

#include "dialects/Nn/Nn.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace espalier;

func::FuncOp espalier::findFunction(ModuleOp module, StringRef name) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    module.emitError("expects a function @") << name;
    return {};
  }
  if (!function.getBody().hasOneBlock()) {
    function.emitError("expects a body of one block");
    return {};
  }
  return function;
}

LogicalResult espalier::checkSlots(func::FuncOp function, ArrayRef<Slot> slots,
                                   ArrayRef<StringRef> roles, StringRef what) {
  const auto *current = roles.begin();
  llvm::StringSet<> seen;
  for (auto [i, slot] : llvm::enumerate(slots)) {
    auto type = dyn_cast<RankedTensorType>(slot.type);
    if (!type || !type.hasStaticShape())
      return function.emitError("expects static ranked tensors, but ")
             << what << " " << i << " has type " << slot.type;
    if (slot.name.empty())
      return function.emitError("expects 'espalier.name' on ")
             << what << " " << i;
    current = std::find(current, roles.end(), StringRef(slot.role));
    if (current == roles.end())
      return function.emitError("expects roles in the order ")
             << llvm::join(roles, ", ") << ", but " << what << " " << i << ", '"
             << slot.name << "', has role '" << slot.role << "'";
    if (!seen.insert(slot.role + "/" + slot.name).second)
      return function.emitError("expects names once, but two ")
             << what << "s of role '" << slot.role << "' are named '"
             << slot.name << "'";
  }
  return success();
}

static SmallVector<const Slot *> slotsOf(ArrayRef<Slot> slots, StringRef role) {
  SmallVector<const Slot *> found;
  for (const Slot &slot : slots)
    if (slot.role == role)
      found.push_back(&slot);
  return found;
}

LogicalResult espalier::checkSame(func::FuncOp function, ArrayRef<Slot> slots,
                                  StringRef role, ArrayRef<Slot> others,
                                  StringRef otherRole, StringRef what) {
  auto own = slotsOf(slots, role), other = slotsOf(others, otherRole);
  if (own.size() != other.size())
    return function.emitError("expects ")
           << other.size() << " " << what << ", but got " << own.size();
  for (auto [a, b] : llvm::zip(own, other))
    if (a->name != b->name || a->type != b->type)
      return function.emitError("expects ")
             << what << " '" << b->name << "' of type " << b->type
             << ", but got '" << a->name << "' of type " << a->type;
  return success();
}

LogicalResult espalier::checkSingle(func::FuncOp function, ArrayRef<Slot> slots,
                                    StringRef role, Type expected) {
  auto found = slotsOf(slots, role);
  if (found.size() != 1)
    return function.emitError("expects one '")
           << role << "', but got " << found.size();
  if (expected && found.front()->type != expected)
    return function.emitError("expects '")
           << role << "' of type " << expected << ", but got "
           << found.front()->type;
  return success();
}

LogicalResult espalier::checkOps(func::FuncOp function) {
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (!isa<nn::NnDialect>(op.getDialect()))
      return op.emitOpError("is not of the nn dialect");
    if (isa<UnknownLoc>(op.getLoc()))
      return op.emitOpError("does not say where it comes from");
  }
  return success();
}
