//===- DimensionClasses.cpp - Which dimensions have one size --------------===//

#include "DimensionClasses.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace espalier;

DimensionClasses::Id DimensionClasses::add(int64_t size) {
  classes.push_back({Id(classes.size()), size});
  return classes.size() - 1;
}

DimensionClasses::Id DimensionClasses::find(Id id) {
  while (classes[id].parent != id)
    id = classes[id].parent = classes[classes[id].parent].parent;
  return id;
}

void DimensionClasses::unite(Id a, Id b) {
  a = find(a);
  b = find(b);
  if (a == b)
    return;
  if (classes[a].size != classes[b].size) {
    keep(a);
    keep(b);
    return;
  }
  // The one with parts goes on; the other's definition is then tied to it.
  if (classes[a].parts.empty())
    std::swap(a, b);
  Class other = classes[b];
  classes[b].parent = a;
  if (classes[a].chosen < 0)
    classes[a].chosen = other.chosen;
  if (other.kept || classes[a].kept)
    keep(a);
  if (!other.parts.empty())
    define(a, other.parts, other.isProduct);
  if (other.kept)
    for (Id part : other.parts)
      keep(part);
}

void DimensionClasses::define(Id id, ArrayRef<Id> parts, bool isProduct) {
  id = find(id);
  if (parts.size() == 1)
    return unite(id, parts.front());
  if (classes[id].parts.empty()) {
    classes[id].parts.assign(parts.begin(), parts.end());
    classes[id].isProduct = isProduct;
    if (classes[id].kept)
      keep(id);
    return;
  }
  SmallVector<Id, 2> known = classes[id].parts;
  bool same = classes[id].isProduct == isProduct &&
              equal(known, parts, [&](Id a, Id b) {
                return classes[find(a)].size == classes[find(b)].size;
              });
  if (!same) { // made of other parts in two ways: neither can be changed
    keep(id);
    for (Id part : parts)
      keep(part);
    return;
  }
  for (auto [a, b] : zip(known, parts))
    unite(a, b);
}

void DimensionClasses::keep(Id id) {
  SmallVector<Id> pending = {find(id)};
  while (!pending.empty()) {
    Class &top = classes[find(pending.pop_back_val())];
    bool isNew = !top.kept;
    top.kept = true;
    top.chosen = top.size;
    for (Id part : top.parts)
      if (isNew || !classes[find(part)].kept)
        pending.push_back(part);
  }
}

void DimensionClasses::fix(Id id, int64_t size) {
  Class &top = classes[find(id)];
  if (!top.kept)
    top.chosen = size;
}

void DimensionClasses::chooseSizes(int64_t largest) {
  int64_t next = 0;
  for (Id id = 0; id < classes.size(); ++id) {
    Class &top = classes[id];
    if (top.parent != id || top.chosen >= 0 || !top.parts.empty())
      continue;
    int64_t wanted = 2 + (next++ * 2 + 1) % std::max<int64_t>(1, largest - 1);
    top.chosen = std::min(top.size, wanted);
  }
}

int64_t DimensionClasses::sizeOf(Id id) {
  Id top = find(id);
  if (classes[top].kept || classes[top].parts.empty())
    return classes[top].kept ? classes[top].size : classes[top].chosen;
  // Parts are smaller than their whole, or their number is at least two and
  // each is at most it: the recursion is as deep as shapes were split, a few
  // levels.
  SmallVector<Id, 2> parts = classes[top].parts;
  int64_t size = classes[top].isProduct ? 1 : 0;
  for (Id part : parts)
    size = classes[top].isProduct ? size * sizeOf(part) : size + sizeOf(part);
  return size;
}
