//===- ConstantOps.cpp - Rearranging constants -*- C++ -*-===//

#include "ConstantOps.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;

namespace espalier::onnx {

/// A constant with these stored elements, seen in this shape.
static Constant seenAs(Dtype dtype, ArrayRef<int64_t> shape,
                       ArrayRef<int64_t> stored, std::vector<Scalar> data) {
  Constant result = Constant::make(dtype, stored, std::move(data));
  result.shape.assign(shape.begin(), shape.end());
  return result;
}

/// The elements at `strides` of `value`, over `stored`.
static std::vector<Scalar> collect(const Constant &value,
                                   ArrayRef<int64_t> stored, Shape strides,
                                   int64_t base = 0) {
  std::vector<Scalar> data;
  data.reserve(*elementCount(stored));
  walk(stored, {strides}, [&](ArrayRef<int64_t> at) {
    data.push_back((*value.data)[base + at[0]]);
  });
  return data;
}

Folded withStored(const Constant &value, ArrayRef<int64_t> dims,
                  MayFold mayFold) {
  Shape stored = value.stored;
  for (int64_t dim : dims)
    stored[dim] = value.shape[dim];
  if (stored == value.stored)
    return value;
  std::optional<int64_t> count = elementCount(stored);
  if (!count || !mayFold(*count))
    return std::nullopt;
  return seenAs(value.dtype, value.shape, stored,
                collect(value, stored, value.strides()));
}

/// Splits two shapes of equal element counts into smallest groups of
/// consecutive dimensions with equal products, as ends of groups.
static SmallVector<std::pair<size_t, size_t>>
reshapeGroups(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<std::pair<size_t, size_t>> ends;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    int64_t a = i < from.size() ? from[i++] : 1;
    int64_t b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b && i < from.size())
        a *= from[i++];
      else if (j < to.size())
        b *= to[j++];
      else
        break;
    }
    ends.push_back({i, j});
  }
  return ends;
}

Folded reshapeConstant(const Constant &value, ArrayRef<int64_t> shape,
                       MayFold mayFold) {
  if (value.elements() == 0)
    return Constant::make(value.dtype, shape, {});
  Shape full;   // dimensions to store in full first
  Shape stored; // of the result
  size_t i = 0, j = 0;
  for (auto [fromEnd, toEnd] : reshapeGroups(value.shape, shape)) {
    bool varies = false;
    for (size_t k = i; k < fromEnd; ++k)
      varies |= value.stored[k] != 1;
    for (size_t k = i; varies && k < fromEnd; ++k)
      full.push_back(k);
    for (size_t k = j; k < toEnd; ++k)
      stored.push_back(varies ? shape[k] : 1);
    i = fromEnd;
    j = toEnd;
  }
  Folded expanded = withStored(value, full, mayFold);
  if (!expanded)
    return std::nullopt;
  expanded->shape.assign(shape.begin(), shape.end());
  expanded->stored = stored;
  return expanded;
}

Folded transposeConstant(const Constant &value, ArrayRef<int64_t> perm,
                         MayFold mayFold) {
  if (!mayFold(value.storedElements()))
    return std::nullopt;
  Shape shape, stored, strides, own = value.strides();
  for (int64_t dim : perm) {
    shape.push_back(value.shape[dim]);
    stored.push_back(value.stored[dim]);
    strides.push_back(own[dim]);
  }
  return seenAs(value.dtype, shape, stored, collect(value, stored, strides));
}

Folded expandConstant(const Constant &value, ArrayRef<int64_t> shape) {
  Constant result = value;
  if (*elementCount(shape) == 0)
    return Constant::make(value.dtype, shape, {});
  result.stored.insert(result.stored.begin(), shape.size() - value.shape.size(),
                       1);
  result.shape.assign(shape.begin(), shape.end());
  return result;
}

Folded sliceConstant(const Constant &value, ArrayRef<int64_t> offsets,
                     ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps,
                     MayFold mayFold) {
  if (*elementCount(sizes) == 0)
    return Constant::make(value.dtype, sizes, {});
  Shape stored, strides = value.strides();
  int64_t base = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    stored.push_back(value.stored[i] == 1 ? 1 : sizes[i]);
    base += strides[i] * offsets[i];
    strides[i] *= steps[i];
  }
  if (!mayFold(*elementCount(stored)))
    return std::nullopt;
  return seenAs(value.dtype, sizes, stored,
                collect(value, stored, strides, base));
}

Folded concatConstants(ArrayRef<const Constant *> values, int64_t dim,
                       MayFold mayFold) {
  Shape stored(values[0]->shape.size(), 1);
  Shape shape = values[0]->shape;
  shape[dim] = 0;
  for (const Constant *value : values) {
    for (size_t i = 0; i < stored.size(); ++i)
      stored[i] = std::max(stored[i], value->stored[i]);
    shape[dim] += value->shape[dim];
  }
  if (elementCount(shape) == 0)
    return Constant::make(values[0]->dtype, shape, {});
  stored[dim] = shape[dim];
  std::optional<int64_t> count = elementCount(stored);
  if (!count || !mayFold(*count))
    return std::nullopt;
  std::vector<Scalar> data(*count);
  Shape target = rowMajor(stored);
  int64_t offset = 0;
  for (const Constant *value : values) {
    Shape part = stored;
    part[dim] = value->shape[dim];
    walk(part, {value->strides(), target}, [&](ArrayRef<int64_t> at) {
      data[offset + at[1]] = (*value->data)[at[0]];
    });
    offset += target[dim] * part[dim];
  }
  return seenAs(values[0]->dtype, shape, stored, std::move(data));
}

Folded gatherConstant(const Constant &table, const Constant &indices,
                      int64_t axis, MayFold mayFold) {
  bool varies = table.stored[axis] != 1;
  Shape shape, stored, tableStrides, indexStrides;
  Shape ownTable = table.strides(), ownIndex = indices.strides();
  auto add = [&](int64_t size, int64_t kept, int64_t inTable, int64_t inIndex) {
    shape.push_back(size);
    stored.push_back(kept);
    tableStrides.push_back(inTable);
    indexStrides.push_back(inIndex);
  };
  for (int64_t i = 0; i < int64_t(table.shape.size()); ++i) {
    if (i != axis) {
      add(table.shape[i], table.stored[i], ownTable[i], 0);
      continue;
    }
    for (size_t k = 0; k < indices.shape.size(); ++k)
      add(indices.shape[k], varies ? indices.stored[k] : 1, 0, ownIndex[k]);
  }
  if (*elementCount(shape) == 0)
    return Constant::make(table.dtype, shape, {});
  if (!mayFold(*elementCount(stored)))
    return std::nullopt;
  std::vector<Scalar> data;
  walk(stored, {tableStrides, indexStrides}, [&](ArrayRef<int64_t> at) {
    int64_t row = varies ? (*indices.data)[at[1]].i : 0;
    data.push_back((*table.data)[at[0] + row * ownTable[axis]]);
  });
  Constant result = seenAs(table.dtype, shape, stored, std::move(data));
  result.compress();
  return result;
}

Folded gatherNdConstant(const Constant &table, ArrayRef<Constant> indices,
                        MayFold mayFold) {
  size_t depth = indices.size(), outer = indices[0].shape.size();
  Shape ownTable = table.strides();
  Shape shape = indices[0].shape, stored(outer, 1);
  SmallVector<Shape> strides{Shape(outer, 0)};
  for (size_t k = 0; k < depth; ++k) {
    strides.push_back(indices[k].strides());
    for (size_t i = 0; i < outer && table.stored[k] != 1; ++i)
      stored[i] = std::max(stored[i], indices[k].stored[i]);
  }
  for (size_t i = depth; i < table.shape.size(); ++i) {
    shape.push_back(table.shape[i]);
    stored.push_back(table.stored[i]);
    strides[0].push_back(ownTable[i]);
    for (size_t k = 0; k < depth; ++k)
      strides[k + 1].push_back(0);
  }
  if (*elementCount(shape) == 0)
    return Constant::make(table.dtype, shape, {});
  if (!mayFold(*elementCount(stored)))
    return std::nullopt;
  std::vector<Scalar> data;
  walk(stored, strides, [&](ArrayRef<int64_t> at) {
    int64_t offset = at[0];
    for (size_t k = 0; k < depth; ++k)
      offset += ownTable[k] * (*indices[k].data)[at[k + 1]].i;
    data.push_back((*table.data)[offset]);
  });
  Constant result = seenAs(table.dtype, shape, stored, std::move(data));
  result.compress();
  return result;
}

Folded cumulateConstant(const Constant &given, int64_t axis, bool exclusive,
                        bool reverse, MayFold mayFold) {
  Folded value = withStored(given, {axis}, mayFold);
  if (!value || !mayFold(value->storedElements()))
    return std::nullopt;
  std::vector<Scalar> data(*value->data);
  Shape outer = value->stored, strides = value->strides();
  int64_t count = outer[axis], stride = strides[axis];
  outer[axis] = 1;
  walk(outer, {strides}, [&](ArrayRef<int64_t> at) {
    Scalar sum;
    sum.i = 0; // the bits of 0.0 too
    for (int64_t k = 0; k < count; ++k) {
      Scalar &element = data[at[0] + (reverse ? count - 1 - k : k) * stride];
      Scalar next = sum;
      if (value->isFloat())
        next.f += element.f;
      else
        next.i = uint64_t(next.i) + uint64_t(element.i);
      element = roundTo(value->dtype, exclusive ? sum : next);
      sum = next;
    }
  });
  Constant result =
      seenAs(value->dtype, value->shape, value->stored, std::move(data));
  result.compress();
  return result;
}

static void accumulate(Reduction kind, bool isFloat, Scalar &into, Scalar x) {
  switch (kind) {
  case Reduction::Sum:
  case Reduction::Mean:
    if (isFloat)
      into.f += x.f;
    else
      into.i = uint64_t(into.i) + uint64_t(x.i);
    break;
  case Reduction::Prod:
    if (isFloat)
      into.f *= x.f;
    else
      into.i = uint64_t(into.i) * uint64_t(x.i);
    break;
  case Reduction::Max:
    if (isFloat ? x.f > into.f : x.i > into.i)
      into = x;
    break;
  case Reduction::Min:
    if (isFloat ? x.f < into.f : x.i < into.i)
      into = x;
    break;
  }
}

Folded reduceConstant(const Constant &given, Reduction kind,
                      ArrayRef<int64_t> dims, MayFold mayFold) {
  Folded value = withStored(given, dims, mayFold);
  if (!value || value->elements() == 0)
    return std::nullopt;
  Shape shape = value->shape, inner(shape.size(), 1), outer = value->stored;
  int64_t count = 1;
  for (int64_t dim : dims) {
    shape[dim] = 1;
    inner[dim] = value->stored[dim];
    outer[dim] = 1;
    count *= inner[dim];
  }
  Shape strides = value->strides();
  std::vector<Scalar> data;
  walk(outer, {strides}, [&](ArrayRef<int64_t> base) {
    Scalar sum;
    bool isFirst = true;
    walk(inner, {strides}, [&](ArrayRef<int64_t> at) {
      Scalar element = (*value->data)[base[0] + at[0]];
      if (isFirst)
        sum = element;
      else
        accumulate(kind, value->isFloat(), sum, element);
      isFirst = false;
    });
    if (kind == Reduction::Mean) {
      if (value->isFloat())
        sum.f /= double(count);
      else
        sum.i /= count;
    }
    data.push_back(roundTo(value->dtype, sum));
  });
  return seenAs(value->dtype, shape, outer, std::move(data));
}

} // namespace espalier::onnx
