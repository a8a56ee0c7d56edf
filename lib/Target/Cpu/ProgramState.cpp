//===- ProgramState.cpp - Ops, ranks and groups of a program --------------===//

#include "Lowering.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

ProgramState::ProgramState(ModuleOp module, ProgramLayout &layout)
    : layout(layout) {
  if (dist::MeshOp mesh = dist::meshOf(module))
    for (auto axis : mesh.getAxes().getAsRange<dist::MeshAxisAttr>()) {
      axes.push_back({axis.getName().str(), axis.getSize()});
      ranks *= axis.getSize();
    }
}

/// The name of the node that an op comes from.
static std::string describe(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    return fused.getLocations().empty()
               ? std::string("?")
               : describe(fused.getLocations().front());
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return describe(call.getCallee());
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return (file.getFilename().getValue() + ":" + Twine(file.getLine())).str();
  return "?";
}

int64_t ProgramState::opIndex(Location loc) {
  auto [entry, inserted] =
      opIndices.try_emplace(describe(loc), layout.ops.size());
  if (inserted)
    layout.ops.push_back(entry->first().str());
  return entry->second;
}

int64_t ProgramState::groupSize(ArrayAttr names) {
  int64_t size = 1;
  for (auto name : names.getAsValueRange<StringAttr>())
    for (auto &[axis, axisSize] : axes)
      if (axis == name)
        size *= axisSize;
  return size;
}

SmallVector<int64_t> ProgramState::positions(ArrayAttr names) {
  SmallVector<int64_t> result(ranks, 0);
  for (auto name : names.getAsValueRange<StringAttr>()) {
    int64_t below = ranks; // ranks that share a coordinate, and those after it
    for (auto &[axis, size] : axes) {
      below /= size;
      if (axis != name)
        continue;
      for (int64_t rank = 0; rank < ranks; ++rank)
        result[rank] = result[rank] * size + rank / below % size;
    }
  }
  return result;
}

SmallVector<int32_t> ProgramState::groupsOf(ArrayAttr names) {
  // Ranks of a group agree in all coordinates but those of the axes.
  std::vector<std::vector<int32_t>> found;
  SmallVector<int64_t> key(ranks, 0), position = positions(names);
  int64_t below = ranks;
  for (auto &[axis, size] : axes) {
    below /= size;
    bool inGroup = llvm::is_contained(names.getAsValueRange<StringAttr>(),
                                      StringRef(axis));
    for (int64_t rank = 0; rank < ranks; ++rank)
      key[rank] = key[rank] * size + (inGroup ? 0 : rank / below % size);
  }
  SmallVector<int32_t> result(ranks, 0);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<int32_t> members(groupSize(names));
    for (int64_t other = 0; other < ranks; ++other)
      if (key[other] == key[rank])
        members[position[other]] = int32_t(other);
    auto known = llvm::find(layout.groups, members);
    result[rank] = int32_t(known - layout.groups.begin());
    if (known == layout.groups.end())
      layout.groups.push_back(members);
  }
  return result;
}
