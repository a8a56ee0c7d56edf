//===- Constant.cpp - Tensors known at import -*- C++ -*-===//

#include "Constant.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>

using namespace llvm;

namespace espalier::onnx {

Shape dimsBetween(int64_t first, int64_t end) {
  Shape dims;
  for (int64_t i = first; i < end; ++i)
    dims.push_back(i);
  return dims;
}

Shape rowMajor(ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (int i = int(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

std::optional<Shape> broadcastShapes(ArrayRef<Shape> shapes) {
  Shape result;
  for (const Shape &shape : shapes) {
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), 1);
    size_t skip = result.size() - shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t &size = result[skip + i];
      if (size == 1)
        size = shape[i];
      else if (shape[i] != 1 && shape[i] != size)
        return std::nullopt;
    }
  }
  return result;
}

void walk(ArrayRef<int64_t> shape, ArrayRef<Shape> strides,
          function_ref<void(ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(shape, 0))
    return;
  Shape index(shape.size(), 0);
  SmallVector<int64_t, 4> offsets(strides.size(), 0);
  while (true) {
    visit(offsets);
    int dim = int(shape.size()) - 1;
    for (; dim >= 0; --dim) {
      bool carries = ++index[dim] == shape[dim];
      for (size_t i = 0; i < strides.size(); ++i)
        offsets[i] +=
            carries ? -strides[i][dim] * (shape[dim] - 1) : strides[i][dim];
      if (!carries)
        break;
      index[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

static double roundFloat(const fltSemantics &semantics, double value) {
  APFloat number(value);
  bool losesInfo;
  number.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

Scalar roundTo(Dtype dtype, Scalar value) {
  switch (dtype) {
  case Dtype::Float:
    value.f = float(value.f);
    break;
  case Dtype::Float16:
    value.f = roundFloat(APFloat::IEEEhalf(), value.f);
    break;
  case Dtype::Bfloat16:
    value.f = roundFloat(APFloat::BFloat(), value.f);
    break;
  case Dtype::Int32:
    value.i = int32_t(value.i);
    break;
  case Dtype::Uint32:
    value.i = uint32_t(value.i);
    break;
  case Dtype::Int16:
    value.i = int16_t(value.i);
    break;
  case Dtype::Uint16:
    value.i = uint16_t(value.i);
    break;
  case Dtype::Int8:
    value.i = int8_t(value.i);
    break;
  case Dtype::Uint8:
    value.i = uint8_t(value.i);
    break;
  case Dtype::Bool:
    value.i = value.i != 0;
    break;
  default:
    break;
  }
  return value;
}

Constant Constant::make(Dtype dtype, ArrayRef<int64_t> shape,
                        std::vector<Scalar> data) {
  Constant result;
  result.dtype = dtype;
  result.shape.assign(shape.begin(), shape.end());
  result.stored = result.shape;
  result.data = std::make_shared<const std::vector<Scalar>>(std::move(data));
  return result;
}

Constant Constant::fromInts(ArrayRef<int64_t> values, Dtype dtype,
                            bool isScalar) {
  std::vector<Scalar> data(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    data[i].i = values[i];
  if (isScalar)
    return make(dtype, {}, std::move(data));
  return make(dtype, {int64_t(values.size())}, std::move(data));
}

Constant Constant::scalar(double value, Dtype dtype) {
  Scalar element;
  element.f = value;
  return make(dtype, {}, {roundTo(dtype, element)});
}

Constant Constant::scalarInt(int64_t value, Dtype dtype) {
  return fromInts(value, dtype, /*isScalar=*/true);
}

template <typename T>
static T load(const char *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

static Scalar loadScalar(Dtype dtype, const char *from) {
  Scalar value;
  switch (dtype) {
  case Dtype::Float:
    value.f = load<float>(from);
    break;
  case Dtype::Double:
    value.f = load<double>(from);
    break;
  case Dtype::Float16:
    value.f = APFloat(APFloat::IEEEhalf(), APInt(16, load<uint16_t>(from)))
                  .convertToDouble();
    break;
  case Dtype::Bfloat16:
    value.f = APFloat(APFloat::BFloat(), APInt(16, load<uint16_t>(from)))
                  .convertToDouble();
    break;
  case Dtype::Int64:
  case Dtype::Uint64:
    value.i = load<int64_t>(from);
    break;
  case Dtype::Int32:
    value.i = load<int32_t>(from);
    break;
  case Dtype::Uint32:
    value.i = load<uint32_t>(from);
    break;
  case Dtype::Int16:
    value.i = load<int16_t>(from);
    break;
  case Dtype::Uint16:
    value.i = load<uint16_t>(from);
    break;
  case Dtype::Int8:
    value.i = load<int8_t>(from);
    break;
  case Dtype::Bool:
    value.i = load<uint8_t>(from) != 0;
    break;
  default:
    value.i = load<uint8_t>(from);
    break;
  }
  return value;
}

Constant Constant::fromBytes(Dtype dtype, ArrayRef<int64_t> shape,
                             StringRef bytes) {
  unsigned size = dtypeBytes(dtype);
  std::vector<Scalar> data(bytes.size() / size);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = loadScalar(dtype, bytes.data() + i * size);
  Constant result = make(dtype, shape, std::move(data));
  result.compress();
  return result;
}

Shape Constant::strides() const {
  Shape strides = rowMajor(stored);
  for (size_t i = 0; i < stored.size(); ++i)
    if (stored[i] == 1)
      strides[i] = 0;
  return strides;
}

Shape Constant::stridesFor(ArrayRef<int64_t> target) const {
  Shape result = strides();
  result.insert(result.begin(), target.size() - shape.size(), 0);
  return result;
}

Constant Constant::expanded() const {
  if (stored == shape)
    return *this;
  std::vector<Scalar> full;
  full.reserve(elements());
  walk(shape, {strides()},
       [&](ArrayRef<int64_t> at) { full.push_back((*data)[at[0]]); });
  return make(dtype, shape, std::move(full));
}

std::vector<int64_t> Constant::ints() const {
  std::vector<int64_t> result;
  walk(shape, {strides()},
       [&](ArrayRef<int64_t> at) { result.push_back((*data)[at[0]].i); });
  return result;
}

/// Nothing changes along `dim`. Compares bits, so that -0 and 0 differ and NaN
/// equals itself.
static bool isConstantAlong(const std::vector<Scalar> &data,
                            ArrayRef<int64_t> stored, size_t dim) {
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < stored.size(); ++i)
    (i < dim ? outer : inner) *= i == dim ? 1 : stored[i];
  for (int64_t o = 0; o < outer; ++o) {
    const Scalar *begin = data.data() + o * stored[dim] * inner;
    for (int64_t j = 1; j < stored[dim]; ++j)
      if (std::memcmp(begin, begin + j * inner, inner * sizeof(Scalar)) != 0)
        return false;
  }
  return true;
}

void Constant::compress() {
  if (data->empty())
    return;
  Shape smaller = stored;
  for (size_t dim = 0; dim < stored.size(); ++dim)
    if (stored[dim] > 1 && isConstantAlong(*data, stored, dim))
      smaller[dim] = 1;
  if (smaller == stored)
    return;
  std::vector<Scalar> kept;
  walk(smaller, {rowMajor(stored)},
       [&](ArrayRef<int64_t> at) { kept.push_back((*data)[at[0]]); });
  stored = smaller;
  data = std::make_shared<const std::vector<Scalar>>(std::move(kept));
}

} // namespace espalier::onnx
