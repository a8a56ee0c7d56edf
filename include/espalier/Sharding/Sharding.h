//===- Sharding.h - Meshes and shardings as values --------------*- C++ -*-===//
//
// A mesh is a box of devices with named axes. A sharding says how one tensor
// lies on it: for each dimension the axes that cut it, major to minor, and the
// axes over which the value is partial, that is, still to be reduced. Over all
// other axes the tensor is replicated.
//
// n elements over axes a1, a2, ... are cut by nested ceilings: into blocks of
// ceil(n / a1), then each block over a2. Dropping the minor axis gives the
// major sharding. 10 elements:
//
//   axes           blocks
//   4              3 3 3 1
//   4, 2           2 1 2 1 2 1 1 0
//
// Devices are numbered row-major over the axes, the last one fastest.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_SHARDING_SHARDING_H
#define ESPALIER_SHARDING_SHARDING_H

#include "dialects/Dist/Dist.h"
#include "dialects/Interfaces/ReductionKind.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace espalier {

struct MeshAxis {
  std::string name;
  int64_t size;     // devices
  std::string link; // the class of its links, as in the cluster's description
};

/// The number of an axis in its mesh.
using Axis = unsigned;
using AxisList = llvm::SmallVector<Axis, 2>;

struct Mesh {
  llvm::SmallVector<MeshAxis, 4> axes;

  int64_t deviceCount() const;
  /// The product of the sizes of `list`.
  int64_t sizeOf(llvm::ArrayRef<Axis> list) const;
  /// The axis of that name, or nothing.
  std::optional<Axis> find(llvm::StringRef name) const;
  /// The place of a device along each axis.
  llvm::SmallVector<int64_t, 4> coordinatesOf(int64_t device) const;
  /// The place of a device in its group over `list`, row-major.
  int64_t indexIn(int64_t device, llvm::ArrayRef<Axis> list) const;
  /// The devices that differ from `device` only along `list`, in the order of
  /// `indexIn`.
  llvm::SmallVector<int64_t> groupOf(int64_t device,
                                     llvm::ArrayRef<Axis> list) const;

  static Mesh from(dist::MeshOp op);
};

struct Partial {
  Axis axis;
  ReductionKind kind;
  bool operator==(const Partial &other) const {
    return axis == other.axis && kind == other.kind;
  }
};

/// How a tensor lies on a mesh. See the top of the file.
struct Sharding {
  llvm::SmallVector<AxisList, 4> dims;
  llvm::SmallVector<Partial, 1> partial; // ascending by axis

  /// Replicated, for a tensor of `rank` dimensions.
  static Sharding replicated(size_t rank) {
    Sharding sharding;
    sharding.dims.resize(rank);
    return sharding;
  }
  bool operator==(const Sharding &other) const {
    return dims == other.dims && partial == other.partial;
  }
  bool operator!=(const Sharding &other) const { return !(*this == other); }

  bool isPartialOver(Axis axis) const;
  /// Whether a dimension is cut along `axis`.
  bool cuts(Axis axis) const;

  dist::ShardingAttr toAttr(mlir::MLIRContext *context, const Mesh &mesh) const;
  /// Fails where an axis is not in the mesh.
  static mlir::FailureOr<Sharding> from(dist::ShardingAttr attr,
                                        const Mesh &mesh);
  std::string str(const Mesh &mesh) const;
};

/// The part of a dimension that is one device's.
struct ShardBlock {
  int64_t offset; // elements
  int64_t size;   // without padding; may be 0
};

/// The block of `device` of `size` elements cut along `axes`.
ShardBlock blockOf(const Mesh &mesh, int64_t device, int64_t size,
                   llvm::ArrayRef<Axis> axes);

/// The size of the largest block of `size` elements cut along `axes`: what a
/// device allocates.
int64_t blockSize(const Mesh &mesh, int64_t size, llvm::ArrayRef<Axis> axes);

/// The shape that a device allocates for a tensor.
llvm::SmallVector<int64_t> localShape(const Mesh &mesh,
                                      llvm::ArrayRef<int64_t> shape,
                                      const Sharding &sharding);

} // namespace espalier

#endif // ESPALIER_SHARDING_SHARDING_H
