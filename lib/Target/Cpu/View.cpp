//===- View.cpp - Tensors as strided parts of storage ---------------------===//

#include "View.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace espalier;
using namespace espalier::cpu;

int64_t View::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t View::span() const {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(shape, strides)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return last + 1;
}

bool View::isDense() const {
  int64_t expected = 1;
  for (auto [size, stride] : llvm::reverse(llvm::zip_equal(shape, strides))) {
    if (size != 1 && stride != expected)
      return false;
    expected *= size;
  }
  return true;
}

SmallVector<int64_t> cpu::denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

View cpu::denseView(int64_t storage, ArrayRef<int64_t> shape,
                    mlir::Type elementType) {
  return {storage, 0, SmallVector<int64_t>(shape), denseStrides(shape),
          elementType};
}

std::optional<View> cpu::reshapeView(const View &view,
                                     ArrayRef<int64_t> shape) {
  View result = view;
  result.shape.assign(shape.begin(), shape.end());
  if (view.elements() == 0 || view.isDense()) {
    result.strides = denseStrides(shape);
    return result;
  }
  // Groups of dimensions with equal products, from the last; in each the old
  // dimensions must merge to one, which the new ones then divide.
  result.strides.assign(shape.size(), 0);
  int64_t from = view.rank() - 1, to = int64_t(shape.size()) - 1;
  while (from >= 0 || to >= 0) {
    while (from >= 0 && view.shape[from] == 1)
      --from;
    while (to >= 0 && shape[to] == 1)
      --to;
    if (from < 0 || to < 0)
      break;
    int64_t stride = view.strides[from];
    int64_t oldSize = view.shape[from--], newSize = 1;
    while (true) {
      while (newSize < oldSize) {
        if (to < 0)
          return std::nullopt;
        result.strides[to] = stride * newSize;
        newSize *= shape[to--];
      }
      if (newSize == oldSize)
        break;
      while (from >= 0 && view.shape[from] == 1)
        --from;
      if (from < 0 || view.strides[from] != stride * oldSize)
        return std::nullopt;
      oldSize *= view.shape[from--];
    }
  }
  return result;
}

View cpu::transposeView(const View &view, ArrayRef<int64_t> permutation) {
  View result = view;
  for (auto [i, dim] : llvm::enumerate(permutation)) {
    result.shape[i] = view.shape[dim];
    result.strides[i] = view.strides[dim];
  }
  return result;
}

View cpu::sliceView(const View &view, ArrayRef<int64_t> offsets,
                    ArrayRef<int64_t> steps, ArrayRef<int64_t> shape) {
  View result = view;
  for (int64_t i = 0; i < view.rank(); ++i) {
    result.offset += offsets[i] * view.strides[i];
    result.strides[i] = view.strides[i] * steps[i];
    result.shape[i] = shape[i];
  }
  return result;
}

View cpu::broadcastView(const View &view, ArrayRef<int64_t> shape) {
  View result = view;
  result.shape.assign(shape.begin(), shape.end());
  result.strides.assign(shape.size(), 0);
  int64_t lead = int64_t(shape.size()) - view.rank();
  for (int64_t i = 0; i < view.rank(); ++i)
    if (view.shape[i] == shape[lead + i])
      result.strides[lead + i] = view.strides[i];
  return result;
}
