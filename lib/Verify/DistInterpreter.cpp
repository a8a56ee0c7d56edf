//===- DistInterpreter.cpp - Collectives among virtual ranks --------------===//

#include "espalier/Verify/DistInterpreter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace espalier;

//===----------------------------------------------------------------------===//
// Regions of tensors
//===----------------------------------------------------------------------===//

static Tensor emptyLike(const Tensor &like, ArrayRef<int64_t> shape) {
  return Tensor(RankedTensorType::get(shape, like.elementType));
}

/// Copies `part` to (or, `extract`, from) the place `offsets` of `whole`.
static void copyRegion(Tensor &whole, ArrayRef<int64_t> offsets, Tensor &part,
                       bool extract) {
  int64_t rank = whole.rank();
  SmallVector<int64_t> index(rank);
  for (int64_t i = 0, count = part.size(); i < count; ++i) {
    int64_t at = 0;
    for (int64_t dim = 0; dim < rank; ++dim)
      at = at * whole.shape[dim] + offsets[dim] + index[dim];
    if (whole.isFloat())
      extract ? part.floats[i] = whole.floats[at]
              : whole.floats[at] = part.floats[i];
    else
      extract ? part.integers[i] = whole.integers[at]
              : whole.integers[at] = part.integers[i];
    for (int64_t dim = rank; dim-- > 0;) {
      if (++index[dim] < part.shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

static Tensor extractRegion(const Tensor &whole, ArrayRef<int64_t> offsets,
                            ArrayRef<int64_t> shape) {
  Tensor part = emptyLike(whole, shape);
  copyRegion(const_cast<Tensor &>(whole), offsets, part, /*extract=*/true);
  return part;
}

static void insertRegion(Tensor &whole, ArrayRef<int64_t> offsets,
                         const Tensor &part) {
  copyRegion(whole, offsets, const_cast<Tensor &>(part), /*extract=*/false);
}

/// Block number `index` of `count` along `dim`.
static Tensor splitBlock(const Tensor &whole, int64_t dim, int64_t index,
                         int64_t count) {
  SmallVector<int64_t> shape(whole.shape), offsets(whole.rank(), 0);
  shape[dim] /= count;
  offsets[dim] = index * shape[dim];
  return extractRegion(whole, offsets, shape);
}

static Tensor joinBlocks(ArrayRef<Tensor> blocks, int64_t dim) {
  SmallVector<int64_t> shape(blocks[0].shape), offsets(shape.size(), 0);
  int64_t size = shape[dim];
  shape[dim] *= blocks.size();
  Tensor whole = emptyLike(blocks[0], shape);
  for (const Tensor &block : blocks) {
    insertRegion(whole, offsets, block);
    offsets[dim] += size;
  }
  return whole;
}

template <typename T>
static T combine(ReductionKind kind, T a, T b) {
  switch (kind) {
  case ReductionKind::Sum:
    return a + b;
  case ReductionKind::Max:
    return std::max(a, b);
  case ReductionKind::Min:
    return std::min(a, b);
  case ReductionKind::Prod:
    return a * b;
  }
  llvm_unreachable("all kinds are handled");
}

static void combineInto(ReductionKind kind, Tensor &sum, const Tensor &term) {
  for (size_t i = 0; i < sum.floats.size(); ++i)
    sum.floats[i] = combine(kind, sum.floats[i], term.floats[i]);
  for (size_t i = 0; i < sum.integers.size(); ++i)
    sum.integers[i] = combine(kind, sum.integers[i], term.integers[i]);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {

/// One collective on all ranks. Results are set once all operands are read.
class Collective {
public:
  Collective(const Mesh &mesh, MutableArrayRef<Environment> ranks,
             ArrayAttr axes, Precision precision)
      : mesh(mesh), ranks(ranks), precision(precision) {
    for (auto name : axes.getAsRange<StringAttr>())
      if (std::optional<Axis> axis = mesh.find(name.getValue()))
        list.push_back(*axis);
      else
        valid = false;
  }

  /// Whether all axes are in the mesh.
  bool valid = true;

  /// Sets `result` on each rank to what `compute` makes of it, given the
  /// operand's tensors on the ranks of its group and its place in the group.
  void run(Value operand, Value result,
           function_ref<Tensor(ArrayRef<const Tensor *>, int64_t)> compute) {
    std::vector<Tensor> results;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      SmallVector<const Tensor *> members;
      for (int64_t member : mesh.groupOf(rank, list))
        members.push_back(&ranks[member].get(operand));
      results.push_back(compute(members, mesh.indexIn(rank, list)));
      if (precision == Precision::AsTyped)
        results.back().round();
    }
    for (auto [environment, tensor] : llvm::zip(ranks, results))
      environment.set(result, std::move(tensor));
  }

  void setBlockIndex(dist::BlockIndexOp op) {
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      ranks[rank].set(op.getResult(),
                      Tensor(cast<RankedTensorType>(op.getType()),
                             std::vector<int64_t>{int64_t(op.getScale()) *
                                                  mesh.indexIn(rank, list)}));
  }

private:
  const Mesh &mesh;
  MutableArrayRef<Environment> ranks;
  Precision precision;
  AxisList list;
};

} // namespace

static Tensor reduceMembers(ReductionKind kind,
                            ArrayRef<const Tensor *> members) {
  Tensor sum = *members.front();
  for (const Tensor *member : members.drop_front())
    combineInto(kind, sum, *member);
  return sum;
}

LogicalResult
DistInterpreter::evaluateTogether(Operation *op,
                                  MutableArrayRef<Environment> ranks) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  if (!isa<dist::DistDialect>(op->getDialect()) || !axes)
    return RankedInterpreter::evaluateTogether(op, ranks);
  Collective collective(mesh, ranks, axes, precision);
  if (!collective.valid)
    return op->emitOpError("names an axis that the mesh does not have");
  using Members = ArrayRef<const Tensor *>;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](dist::AllReduceOp reduce) {
        for (auto [input, result] :
             llvm::zip(reduce.getInputs(), reduce.getResults()))
          collective.run(input, result, [&](Members members, int64_t) {
            return reduceMembers(reduce.getKind(), members);
          });
      })
      .Case([&](dist::AllGatherOp gather) {
        collective.run(gather.getInput(), gather.getResult(),
                       [&](Members members, int64_t) {
                         std::vector<Tensor> blocks;
                         for (const Tensor *member : members)
                           blocks.push_back(*member);
                         return joinBlocks(blocks, gather.getDim());
                       });
      })
      .Case([&](dist::ReduceScatterOp scatter) {
        collective.run(scatter.getInput(), scatter.getResult(),
                       [&](Members members, int64_t index) {
                         return splitBlock(
                             reduceMembers(scatter.getKind(), members),
                             scatter.getDim(), index, members.size());
                       });
      })
      .Case([&](dist::AllToAllOp exchange) {
        collective.run(exchange.getInput(), exchange.getResult(),
                       [&](Members members, int64_t index) {
                         std::vector<Tensor> blocks;
                         for (const Tensor *member : members)
                           blocks.push_back(splitBlock(*member,
                                                       exchange.getSplitDim(),
                                                       index, members.size()));
                         return joinBlocks(blocks, exchange.getConcatDim());
                       });
      })
      .Case([&](dist::ShardSliceOp slice) {
        collective.run(slice.getInput(), slice.getResult(),
                       [&](Members members, int64_t index) {
                         return splitBlock(*members[index], slice.getDim(),
                                           index, members.size());
                       });
      })
      .Case([&](dist::BlockIndexOp index) { collective.setBlockIndex(index); });
  return success();
}

//===----------------------------------------------------------------------===//
// Whole tensors and blocks
//===----------------------------------------------------------------------===//

static std::pair<SmallVector<int64_t>, SmallVector<int64_t>>
regionOf(const Mesh &mesh, int64_t device, const Sharding &sharding,
         ArrayRef<int64_t> shape) {
  SmallVector<int64_t> offsets, sizes;
  for (auto [size, axes] : llvm::zip(shape, sharding.dims)) {
    ShardBlock block = blockOf(mesh, device, size, axes);
    offsets.push_back(block.offset);
    sizes.push_back(block.size);
  }
  return {offsets, sizes};
}

Tensor espalier::blockOfTensor(const Mesh &mesh, int64_t device,
                               const Sharding &sharding, const Tensor &whole) {
  auto [offsets, sizes] = regionOf(mesh, device, sharding, whole.shape);
  Tensor block = extractRegion(whole, offsets, sizes);
  for (const Partial &partial : sharding.partial)
    if (mesh.indexIn(device, {partial.axis}) != 0) {
      llvm::fill(block.floats, 0.0);
      llvm::fill(block.integers, 0);
    }
  return block;
}

Tensor espalier::composeTensor(const Mesh &mesh, const Sharding &sharding,
                               ArrayRef<int64_t> shape,
                               ArrayRef<const Tensor *> blocks,
                               std::optional<int64_t> &disagreeing) {
  Tensor whole = emptyLike(*blocks.front(), shape);
  AxisList partialAxes, owned;
  for (const Partial &partial : sharding.partial)
    partialAxes.push_back(partial.axis);
  for (Axis axis = 0; axis < mesh.axes.size(); ++axis)
    if (!sharding.isPartialOver(axis) && !sharding.cuts(axis))
      owned.push_back(axis); // replicated over these
  for (int64_t device = 0; device < int64_t(blocks.size()); ++device) {
    if (mesh.indexIn(device, partialAxes) != 0)
      continue;
    Tensor sum = *blocks[device];
    for (int64_t member :
         ArrayRef<int64_t>(mesh.groupOf(device, partialAxes)).drop_front())
      combineInto(sharding.partial.front().kind, sum, *blocks[member]);
    auto [offsets, sizes] = regionOf(mesh, device, sharding, shape);
    if (mesh.indexIn(device, owned) == 0) {
      insertRegion(whole, offsets, sum);
      continue;
    }
    // Devices are visited in order: the first copy is already in its place.
    Tensor first = extractRegion(whole, offsets, sizes);
    if (!disagreeing &&
        (first.floats != sum.floats || first.integers != sum.integers))
      disagreeing = device;
  }
  return whole;
}
