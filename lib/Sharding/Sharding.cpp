//===- Sharding.cpp - Meshes and shardings as values ----------------------===//

#include "espalier/Sharding/Sharding.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace espalier;

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

int64_t Mesh::deviceCount() const {
  int64_t count = 1;
  for (const MeshAxis &axis : axes)
    count *= axis.size;
  return count;
}

int64_t Mesh::sizeOf(ArrayRef<Axis> list) const {
  int64_t size = 1;
  for (Axis axis : list)
    size *= axes[axis].size;
  return size;
}

std::optional<Axis> Mesh::find(StringRef name) const {
  for (auto [number, axis] : llvm::enumerate(axes))
    if (axis.name == name)
      return number;
  return std::nullopt;
}

SmallVector<int64_t, 4> Mesh::coordinatesOf(int64_t device) const {
  SmallVector<int64_t, 4> coordinates(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    coordinates[i] = device % axes[i].size;
    device /= axes[i].size;
  }
  return coordinates;
}

int64_t Mesh::indexIn(int64_t device, ArrayRef<Axis> list) const {
  SmallVector<int64_t, 4> coordinates = coordinatesOf(device);
  int64_t index = 0;
  for (Axis axis : list)
    index = index * axes[axis].size + coordinates[axis];
  return index;
}

SmallVector<int64_t> Mesh::groupOf(int64_t device, ArrayRef<Axis> list) const {
  SmallVector<int64_t> strides(axes.size(), 1);
  for (size_t i = axes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * axes[i].size;
  SmallVector<int64_t, 4> coordinates = coordinatesOf(device);
  int64_t first = device;
  for (Axis axis : list)
    first -= coordinates[axis] * strides[axis];
  SmallVector<int64_t> group = {first};
  for (Axis axis : list) {
    SmallVector<int64_t> larger;
    for (int64_t member : group)
      for (int64_t i = 0; i < axes[axis].size; ++i)
        larger.push_back(member + i * strides[axis]);
    group = std::move(larger);
  }
  return group;
}

Mesh Mesh::from(dist::MeshOp op) {
  Mesh mesh;
  for (auto axis : op.getAxes().getAsRange<dist::MeshAxisAttr>())
    mesh.axes.push_back(
        {axis.getName().str(), axis.getSize(), axis.getLink().str()});
  return mesh;
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

bool Sharding::isPartialOver(Axis axis) const {
  return llvm::any_of(partial,
                      [&](const Partial &p) { return p.axis == axis; });
}

bool Sharding::cuts(Axis axis) const {
  return llvm::any_of(dims, [&](const AxisList &list) {
    return llvm::is_contained(list, axis);
  });
}

dist::ShardingAttr Sharding::toAttr(MLIRContext *context,
                                    const Mesh &mesh) const {
  SmallVector<ArrayAttr> dimAttrs;
  for (const AxisList &list : dims) {
    SmallVector<Attribute> names;
    for (Axis axis : list)
      names.push_back(StringAttr::get(context, mesh.axes[axis].name));
    dimAttrs.push_back(ArrayAttr::get(context, names));
  }
  SmallVector<StringAttr> partialAxes;
  SmallVector<ReductionKind> kinds;
  for (const Partial &entry : partial) {
    partialAxes.push_back(StringAttr::get(context, mesh.axes[entry.axis].name));
    kinds.push_back(entry.kind);
  }
  return dist::ShardingAttr::get(context, dimAttrs, partialAxes, kinds);
}

FailureOr<Sharding> Sharding::from(dist::ShardingAttr attr, const Mesh &mesh) {
  Sharding sharding;
  for (ArrayAttr dim : attr.getDims()) {
    AxisList list;
    for (auto name : dim.getAsRange<StringAttr>()) {
      std::optional<Axis> axis = mesh.find(name.getValue());
      if (!axis)
        return failure();
      list.push_back(*axis);
    }
    sharding.dims.push_back(list);
  }
  for (auto [name, kind] :
       llvm::zip(attr.getPartialAxes(), attr.getPartialKinds())) {
    std::optional<Axis> axis = mesh.find(name.getValue());
    if (!axis)
      return failure();
    sharding.partial.push_back({*axis, kind});
  }
  return sharding;
}

std::string Sharding::str(const Mesh &mesh) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(dims, os, [&](const AxisList &list) {
    os << "[";
    llvm::interleaveComma(list, os,
                          [&](Axis axis) { os << mesh.axes[axis].name; });
    os << "]";
  });
  os << "]";
  for (const Partial &entry : partial)
    os << " partial " << mesh.axes[entry.axis].name << ":"
       << stringifyReductionKind(entry.kind);
  return text;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

ShardBlock espalier::blockOf(const Mesh &mesh, int64_t device, int64_t size,
                             ArrayRef<Axis> axes) {
  SmallVector<int64_t, 4> coordinates = mesh.coordinatesOf(device);
  ShardBlock block{0, size};
  int64_t room = size; // of a block with its padding
  for (Axis axis : axes) {
    room = llvm::divideCeil(room, mesh.axes[axis].size);
    int64_t skipped = std::min(block.size, coordinates[axis] * room);
    block.offset += skipped;
    block.size = std::min(block.size - skipped, room);
  }
  return block;
}

int64_t espalier::blockSize(const Mesh &mesh, int64_t size,
                            ArrayRef<Axis> axes) {
  for (Axis axis : axes)
    size = llvm::divideCeil(size, mesh.axes[axis].size);
  return size;
}

SmallVector<int64_t> espalier::localShape(const Mesh &mesh,
                                          ArrayRef<int64_t> shape,
                                          const Sharding &sharding) {
  SmallVector<int64_t> local;
  for (auto [size, axes] : llvm::zip(shape, sharding.dims))
    local.push_back(blockSize(mesh, size, axes));
  return local;
}
