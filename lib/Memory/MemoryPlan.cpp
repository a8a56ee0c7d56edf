//===- MemoryPlan.cpp - The persistent part of the arena ------------------===//

#include "espalier/Memory/MemoryPlan.h"

#include "espalier/Memory/ArenaLayout.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::memory;

int64_t memory::bytesOfElement(Type type) {
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return (bits + 7) / 8;
}

int64_t MemoryPlan::find(StringRef name, StringRef role) const {
  for (auto [index, tensor] : llvm::enumerate(tensors))
    if (tensor.name == name && tensor.role == role)
      return index;
  return -1;
}

namespace {

/// Collects tensors by name and role, in the order of their first mention.
class Collector {
public:
  explicit Collector(MemoryPlan &plan) : plan(plan) {}

  LogicalResult add(func::FuncOp function, DictionaryAttr attributes, Type type,
                    const Twine &what) {
    auto name = attributes ? attributes.getAs<StringAttr>("espalier.name")
                           : StringAttr();
    auto role = attributes ? attributes.getAs<StringAttr>("espalier.role")
                           : StringAttr();
    if (!name || !role)
      return function.emitOpError("has no name and role for ") << what;
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return function.emitOpError("expects a tensor of static shape for '")
             << name.getValue() << "', but got " << type;
    std::string key = (role.getValue() + "\n" + name.getValue()).str();
    auto [entry, inserted] = known.try_emplace(key, plan.tensors.size());
    if (inserted)
      plan.tensors.push_back(
          {name.str(), role.str(), tensor, 0, bytesOfTensor(tensor)});
    RankedTensorType before = plan.tensors[entry->second].type;
    if (before != tensor)
      return function.emitOpError("has '")
             << name.getValue() << "' as " << tensor << ", elsewhere it is "
             << before;
    return success();
  }

private:
  MemoryPlan &plan;
  llvm::StringMap<size_t> known;
};

} // namespace

/// Tensors of one role together, in a fixed order of the roles.
static void orderByRole(std::vector<PlannedTensor> &tensors) {
  auto rankOf = [](const PlannedTensor &tensor) {
    static constexpr StringLiteral order[] = {"parameter", "state", "grad",
                                              "buffer", "frozen"};
    return llvm::find(order, tensor.role) - std::begin(order);
  };
  llvm::stable_sort(tensors, [&](const auto &a, const auto &b) {
    return rankOf(a) < rankOf(b);
  });
}

FailureOr<MemoryPlan> memory::planPersistent(ArrayRef<func::FuncOp> functions) {
  MemoryPlan plan;
  Collector collector(plan);
  for (func::FuncOp function : functions) {
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      if (failed(collector.add(function, function.getArgAttrDict(i), type,
                               "argument " + Twine(i))))
        return failure();
    for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
      if (failed(collector.add(function, function.getResultAttrDict(i), type,
                               "result " + Twine(i))))
        return failure();
  }
  orderByRole(plan.tensors);
  for (PlannedTensor &tensor : plan.tensors) {
    tensor.offset = plan.persistentBytes;
    plan.persistentBytes += alignToArena(tensor.bytes);
  }
  plan.arenaBytes = plan.boundBytes = plan.persistentBytes;
  return plan;
}
