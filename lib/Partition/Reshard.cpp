//===- Reshard.cpp - From one sharding to another -------------------------===//

#include "espalier/Partition/Reshard.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace espalier;

namespace {

/// Plans one reshard: `now` is the sharding after the steps so far.
class ReshardPlanner {
public:
  ReshardPlanner(const Mesh &mesh, ArrayRef<int64_t> shape,
                 const Sharding &from, const Sharding &to)
      : mesh(mesh), shape(shape), now(from), to(to) {}

  FailureOr<SmallVector<ReshardStep>> run() {
    for (const Partial &partial : to.partial)
      if (!llvm::is_contained(now.partial, partial))
        return failure();
    if (!divides(now) || !divides(to))
      return failure();
    reducePartials();
    moveBetweenDims();
    for (unsigned dim = 0; dim < now.dims.size(); ++dim)
      gatherExcess(dim);
    for (unsigned dim = 0; dim < now.dims.size(); ++dim)
      sliceMissing(dim);
    if (now != to)
      return failure();
    return std::move(steps);
  }

private:
  /// The dimension that `axis` cuts in the end, if it is the next to be put
  /// there.
  std::optional<unsigned> placeFor(Axis axis) const {
    for (auto [dim, lists] : llvm::enumerate(llvm::zip(now.dims, to.dims))) {
      auto &[has, wanted] = lists;
      if (has.size() < wanted.size() && wanted[has.size()] == axis &&
          llvm::equal(has, ArrayRef<Axis>(wanted).take_front(has.size())))
        return dim;
    }
    return std::nullopt;
  }

  void reducePartials() {
    for (const Partial &partial : SmallVector<Partial, 1>(now.partial)) {
      if (llvm::is_contained(to.partial, partial))
        continue;
      llvm::erase(now.partial, partial);
      if (std::optional<unsigned> dim = placeFor(partial.axis)) {
        steps.push_back(
            {ReshardKind::ReduceScatter, partial.axis, partial.kind, *dim});
        now.dims[*dim].push_back(partial.axis);
      } else {
        steps.push_back({ReshardKind::AllReduce, partial.axis, partial.kind});
      }
    }
  }

  /// Moves minor-most axes to the dimension where they belong, as long as one
  /// can.
  void moveBetweenDims() {
    for (bool moved = true; moved;) {
      moved = false;
      for (unsigned dim = 0; dim < now.dims.size(); ++dim) {
        if (now.dims[dim].empty() || now.dims[dim] == to.dims[dim])
          continue;
        Axis axis = now.dims[dim].back();
        std::optional<unsigned> target = placeFor(axis);
        if (!target || *target == dim)
          continue;
        steps.push_back(
            {ReshardKind::AllToAll, axis, ReductionKind::Sum, dim, *target});
        now.dims[dim].pop_back();
        now.dims[*target].push_back(axis);
        moved = true;
      }
    }
  }

  /// Gathers from the minor-most axis on until a prefix of what is wanted is
  /// left.
  void gatherExcess(unsigned dim) {
    AxisList &has = now.dims[dim];
    ArrayRef<Axis> wanted = to.dims[dim];
    while (has.size() > wanted.size() ||
           !llvm::equal(has, wanted.take_front(has.size()))) {
      steps.push_back(
          {ReshardKind::AllGather, has.back(), ReductionKind::Sum, dim});
      has.pop_back();
    }
  }

  void sliceMissing(unsigned dim) {
    for (Axis axis :
         ArrayRef<Axis>(to.dims[dim]).drop_front(now.dims[dim].size())) {
      steps.push_back({ReshardKind::Slice, axis, ReductionKind::Sum, dim});
      now.dims[dim].push_back(axis);
    }
  }

  bool divides(const Sharding &sharding) const {
    for (auto [size, axes] : llvm::zip(shape, sharding.dims))
      if (size % mesh.sizeOf(axes) != 0)
        return false;
    return true;
  }

  const Mesh &mesh;
  ArrayRef<int64_t> shape;
  Sharding now;
  const Sharding &to;
  SmallVector<ReshardStep> steps;
};

} // namespace

FailureOr<SmallVector<ReshardStep>>
espalier::planReshard(const Mesh &mesh, ArrayRef<int64_t> shape,
                      const Sharding &from, const Sharding &to) {
  return ReshardPlanner(mesh, shape, from, to).run();
}
