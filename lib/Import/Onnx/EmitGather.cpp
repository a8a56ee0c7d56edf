//===- EmitGather.cpp - Ops that look up by index -*- C++ -*-===//
//
// nn.gather looks up rows of a table. Everything else is put in terms of it, or
// of slices where the indices are constant and regular. Indices may be negative
// in ONNX, counted from the end: constants are normalized, those of the model's
// inputs are taken as they are (their range is recorded for whoever feeds
// them), others get a select.
//
//===----------------------------------------------------------------------===//

#include "llvm/ADT/STLExtras.h"

#include "ConstantOps.h"
#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;

namespace espalier::onnx {

/// Indices into a dimension of this size, none negative; nothing after a
/// report.
static std::optional<Constant>
normalizedIndices(NodeContext &node, const Constant &indices, int64_t size) {
  std::vector<Scalar> data(*indices.data);
  for (Scalar &element : data) {
    if (element.i < -size || element.i >= size) {
      node.fail("index " + Twine(element.i) +
                " is out of range for a dimension of size " + Twine(size));
      return std::nullopt;
    }
    element.i += element.i < 0 ? size : 0;
  }
  Constant result = indices;
  result.dtype = Dtype::Int64;
  result.data = std::make_shared<const std::vector<Scalar>>(std::move(data));
  return result;
}

/// Indices that depend on data, as nn.gather takes them.
static mlir::Value dataIndices(NodeContext &node, unsigned i, int64_t size) {
  const ImportedValue &indices = node.in(i);
  mlir::Value value = node.value(i);
  if (indices.input >= 0) {
    int64_t &range = node.state.tableSizes[indices.input];
    range = range < 0 ? size : std::min(range, size);
    return value;
  }
  return node.nn.map(
      value, indices.shape, node.element(i),
      [&](ScalarBuilder &s, mlir::ValueRange x) {
        mlir::Value zero = s.constantLike(0, x[0]);
        mlir::Value wrapped = s.add(x[0], s.constantLike(size, x[0]));
        return s.select(s.compare(ScalarBuilder::Compare::Less, x[0], zero),
                        wrapped, x[0]);
      });
}

/// Constant indices that are start, start + step, ... along their only
/// dimension that varies, with step > 0 (or a single one).
static bool isRegular(const Constant &indices, int64_t &start, int64_t &step) {
  if (indices.shape.size() > 1 || indices.elements() == 0)
    return false;
  std::vector<int64_t> values = indices.ints();
  start = values[0];
  step = values.size() > 1 ? values[1] - values[0] : 1;
  if (step <= 0)
    return false;
  for (size_t i = 1; i < values.size(); ++i)
    if (values[i] - values[i - 1] != step)
      return false;
  return true;
}

static void gatherFromData(NodeContext &node, int64_t axis,
                           const std::optional<Constant> &constant) {
  const Shape &shape = node.shape(0);
  int64_t rank = shape.size(), start, step;
  Shape result(ArrayRef(shape).take_front(axis));
  llvm::append_range(result, node.shape(1));
  llvm::append_range(result, ArrayRef(shape).drop_front(axis + 1));
  if (constant && isRegular(*constant, start, step)) {
    mlir::Value part = node.nn.sliceDim(node.value(0), axis, start,
                                        constant->elements(), step);
    return node.setRearranged(node.nn.reshape(part, result));
  }
  mlir::Value indices = constant ? node.materialize(tensorValue(*constant))
                                 : dataIndices(node, 1, shape[axis]);
  // The axis goes to the front, and the indices' dimensions back in its place.
  Shape perm{axis};
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      perm.push_back(i);
  mlir::Value table = node.nn.transpose(node.value(0), perm);
  mlir::Value rows = node.nn.gather(table, indices);
  int64_t width = node.rank(1);
  Shape back;
  for (int64_t i = 0; i < axis; ++i)
    back.push_back(width + i);
  for (int64_t i = 0; i < width; ++i)
    back.push_back(i);
  for (int64_t i = axis; i + 1 < rank; ++i)
    back.push_back(width + i);
  node.set(0, node.nn.transpose(rows, back));
}

void emitGather(NodeContext &node) {
  std::optional<int64_t> axis = node.axis(0, node.rank(0));
  if (!axis)
    return;
  if (node.dtype(1) != Dtype::Int64 && node.dtype(1) != Dtype::Int32)
    return node.fail("expects indices of int64 or int32, but got " +
                     dtypeName(node.dtype(1)));
  std::optional<Constant> indices;
  if (const Constant *given = node.constant(1)) {
    indices = normalizedIndices(node, *given, node.shape(0)[*axis]);
    if (!indices)
      return;
  }
  const Constant *table = node.constant(0);
  if (table && indices) {
    auto mayFold = [&](int64_t n) { return node.mayFold(n); };
    if (Folded folded = gatherConstant(*table, *indices, *axis, mayFold))
      return node.set(0, std::move(*folded));
  }
  gatherFromData(node, *axis, indices);
}

//===----------------------------------------------------------------------===//
// GatherND
//===----------------------------------------------------------------------===//

/// The `k`-th of the numbers that the last dimension holds, as a constant of
/// the shape without it.
static Constant component(const Constant &indices, int64_t k) {
  Shape sizes = indices.shape, offsets(sizes.size(), 0), ones(sizes.size(), 1);
  sizes.back() = 1;
  offsets.back() = k;
  auto always = [](int64_t) { return true; };
  Constant part = *sliceConstant(indices, offsets, sizes, ones, always);
  part.shape.pop_back();
  part.stored.pop_back();
  part.compress();
  return part;
}

namespace {
/// Which dimension of the result an index component runs along, from where.
struct Run {
  int64_t dim = -1; // -1: it is the same everywhere
  int64_t start = 0;
};
} // namespace

static std::optional<Run> findRun(const Constant &index) {
  Run run;
  for (size_t i = 0; i < index.stored.size(); ++i) {
    if (index.stored[i] == 1)
      continue;
    if (run.dim >= 0)
      return std::nullopt;
    run.dim = i;
  }
  run.start = index.first().i;
  for (size_t i = 0; i < index.data->size(); ++i)
    if ((*index.data)[i].i != run.start + int64_t(i))
      return std::nullopt;
  return run;
}

/// Indices made of ranges along different dimensions, as exporters write x[b,
/// t] with whole ranges: slices, a transpose, and repetition. False if they are
/// not of this form.
static bool gatherByRuns(NodeContext &node, ArrayRef<Constant> components,
                         ArrayRef<int64_t> shape) {
  int64_t depth = components.size(), outer = node.rank(1) - 1;
  SmallVector<Run> runs;
  for (const Constant &index : components) {
    std::optional<Run> run = findRun(index);
    if (!run)
      return false;
    for (const Run &other : runs)
      if (run->dim >= 0 && run->dim == other.dim)
        return false;
    runs.push_back(*run);
  }
  mlir::Value value = node.value(0);
  for (int64_t k = 0; k < depth; ++k)
    value = node.nn.sliceDim(value, k, runs[k].start,
                             runs[k].dim < 0 ? 1 : shape[runs[k].dim]);
  // Dimensions in the order of the result; those along which nothing runs
  // first, then reshaped away.
  Shape perm, spread(shape.size(), 1);
  for (int64_t k = 0; k < depth; ++k)
    if (runs[k].dim < 0)
      perm.push_back(k);
  for (int64_t dim = 0; dim < outer; ++dim)
    for (int64_t k = 0; k < depth; ++k)
      if (runs[k].dim == dim) {
        perm.push_back(k);
        spread[dim] = shape[dim];
      }
  for (int64_t i = depth; i < node.rank(0); ++i)
    perm.push_back(i);
  for (size_t i = outer; i < shape.size(); ++i)
    spread[i] = shape[i];
  value = node.nn.reshape(node.nn.transpose(value, perm), spread);
  node.setRearranged(node.nn.broadcast(value, shape));
  return true;
}

/// Any constant indices: rows of the table with its first dimensions merged.
static void gatherByRows(NodeContext &node, ArrayRef<Constant> components,
                         ArrayRef<int64_t> shape) {
  int64_t depth = components.size();
  ArrayRef<int64_t> table = node.shape(0);
  Shape merged{*elementCount(table.take_front(depth))};
  llvm::append_range(merged, table.drop_front(depth));
  Shape strides = rowMajor(table.take_front(depth));
  SmallVector<ImportedValue> operands;
  for (const Constant &part : components)
    operands.push_back(tensorValue(part));
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar row;
    row.i = 0;
    for (int64_t k = 0; k < depth; ++k)
      row.i += x[k].i * strides[k];
    return row;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) {
    mlir::Value row = s.mul(x[0], s.constantLike(strides[0], x[0]));
    for (int64_t k = 1; k < depth; ++k)
      row = s.add(row, s.mul(x[k], s.constantLike(strides[k], x[k])));
    return row;
  };
  ImportedValue rows = elementwise(node, operands, Dtype::Int64, {fold, body});
  if (node.failed())
    return;
  mlir::Value flat = node.nn.reshape(node.value(0), merged);
  node.set(0, node.nn.gather(flat, node.materialize(rows)));
}

void emitGatherNd(NodeContext &node) {
  if (node.attr("batch_dims", int64_t(0)) != 0)
    return node.unsupported("attribute 'batch_dims' other than 0");
  if (node.rank(1) < 1 || node.dtype(1) != Dtype::Int64)
    return node.fail("expects int64 indices of rank 1 or more");
  int64_t depth = node.shape(1).back();
  if (depth < 1 || depth > node.rank(0))
    return node.fail("has indices of " + Twine(depth) + " numbers for rank " +
                     Twine(node.rank(0)));
  const Constant *indices = node.constant(1);
  if (!indices)
    return node.unsupported("indices that depend on data");
  if (indices->elements() == 0)
    return node.unsupported("an empty result");
  SmallVector<Constant> components;
  for (int64_t k = 0; k < depth; ++k) {
    auto part =
        normalizedIndices(node, component(*indices, k), node.shape(0)[k]);
    if (!part)
      return;
    components.push_back(std::move(*part));
  }
  if (const Constant *table = node.constant(0)) {
    auto mayFold = [&](int64_t n) { return node.mayFold(n); };
    Folded folded = gatherNdConstant(*table, components, mayFold);
    if (folded)
      return node.set(0, std::move(*folded));
  }
  Shape shape(ArrayRef(node.shape(1)).drop_back());
  llvm::append_range(shape, ArrayRef(node.shape(0)).drop_front(depth));
  if (!elementCount(shape))
    return node.fail("result is too large");
  if (!gatherByRuns(node, components, shape))
    gatherByRows(node, components, shape);
}

void emitGatherElements(NodeContext &node) {
  const Constant *table = node.constant(0), *indices = node.constant(1);
  if (!table || !indices)
    return node.unsupported("GatherElements of values that depend on data");
  std::optional<int64_t> axis = node.axis(0, node.rank(0));
  if (!axis)
    return;
  bool fits = node.rank(0) == node.rank(1);
  for (int64_t i = 0; fits && i < node.rank(0); ++i)
    fits = i == *axis || node.shape(1)[i] <= node.shape(0)[i];
  if (!fits || indices->isFloat())
    return node.fail("indices of shape " + shapeText(node.shape(1)) +
                     " do not fit data of shape " + shapeText(node.shape(0)));
  auto rows = normalizedIndices(node, *indices, node.shape(0)[*axis]);
  if (!rows)
    return;
  if (!node.mayFold(indices->elements()))
    return node.unsupported("a result of " + Twine(indices->elements()) +
                            " elements");
  Shape strides = table->strides();
  int64_t along = strides[*axis];
  strides[*axis] = 0;
  std::vector<Scalar> data;
  walk(indices->shape, {strides, rows->strides()}, [&](ArrayRef<int64_t> at) {
    data.push_back((*table->data)[at[0] + along * (*rows->data)[at[1]].i]);
  });
  Constant result =
      Constant::make(table->dtype, indices->shape, std::move(data));
  result.compress();
  node.set(0, std::move(result));
}

} // namespace espalier::onnx
