//===- ConstantCache.cpp - What is known of constants ---------------------===//

#include "ConstantCache.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/BuiltinTypes.h"

#include <cstring>

using namespace mlir;
using namespace espalier;

/// Elements as bits, true where a key is seen; nothing if it is no mask.
static std::optional<SmallVector<bool>> maskBits(DenseElementsAttr elements) {
  SmallVector<bool> bits;
  Type type = elements.getElementType();
  bits.reserve(elements.getNumElements());
  if (type.isInteger(1)) {
    llvm::append_range(bits, elements.getValues<bool>());
    return bits;
  }
  auto add = [&](double value) {
    bits.push_back(value == 0);
    return value == 0 || isMasking(value);
  };
  bool isMask = isa<FloatType>(type);
  if (type.isF32())
    isMask = llvm::all_of(elements.getValues<float>(), add);
  else if (isMask)
    isMask = llvm::all_of(elements.getValues<APFloat>(), [&](APFloat value) {
      return add(value.convertToDouble());
    });
  if (!isMask)
    return std::nullopt;
  return bits;
}

static bool isCausal(ArrayRef<bool> bits, ArrayRef<int64_t> shape) {
  if (shape.size() < 2 ||
      llvm::any_of(shape.drop_back(2), [](int64_t size) { return size != 1; }))
    return false;
  int64_t queries = shape[shape.size() - 2], keys = shape.back();
  for (int64_t s = 0; s < queries; ++s)
    for (int64_t t = 0; t < keys; ++t)
      if (bits[s * keys + t] != (t <= s + keys - queries))
        return false;
  return true;
}

static bool everyRowSees(ArrayRef<bool> bits, int64_t keys) {
  for (size_t row = 0; row < bits.size(); row += keys)
    if (llvm::none_of(bits.slice(row, keys), [](bool bit) { return bit; }))
      return false;
  return true;
}

const MaskFacts &ConstantCache::mask(DenseElementsAttr elements) {
  auto [entry, isNew] = masks.try_emplace(elements);
  MaskFacts &facts = entry->second;
  ArrayRef<int64_t> shape = elements.getType().getShape();
  if (!isNew || shape.empty() || elements.empty())
    return facts;
  std::optional<SmallVector<bool>> bits = maskBits(elements);
  if (!bits)
    return facts;
  facts.isMask = true;
  facts.allSeen = llvm::all_of(*bits, [](bool bit) { return bit; });
  facts.causal = isCausal(*bits, shape);
  facts.everyRowSees = everyRowSees(*bits, shape.back());
  auto type =
      RankedTensorType::get(shape, IntegerType::get(elements.getContext(), 1));
  facts.boolean = DenseElementsAttr::get(type, *bits);
  return facts;
}

/// The half of equal halves, from raw rows of `rowBytes` bytes.
static std::optional<std::vector<char>> halfRows(ArrayRef<char> data,
                                                 size_t rowBytes) {
  std::vector<char> half;
  half.reserve(data.size() / 2);
  for (size_t row = 0; row < data.size(); row += rowBytes) {
    const char *begin = data.data() + row, *middle = begin + rowBytes / 2;
    if (std::memcmp(begin, middle, rowBytes / 2) != 0)
      return std::nullopt;
    half.insert(half.end(), begin, middle);
  }
  return half;
}

DenseElementsAttr ConstantCache::half(DenseElementsAttr elements) {
  auto [entry, isNew] = halves.try_emplace(elements);
  auto type = cast<RankedTensorType>(elements.getType());
  if (!isNew || type.getRank() == 0 || type.getShape().back() % 2 ||
      !isa<FloatType>(type.getElementType()))
    return entry->second;
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= 2;
  auto halfType = RankedTensorType::get(shape, type.getElementType());
  if (elements.isSplat())
    return entry->second = elements.resizeSplat(halfType);
  size_t rowBytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  if (auto half = halfRows(elements.getRawData(), rowBytes))
    entry->second = DenseElementsAttr::getFromRawBuffer(halfType, *half);
  return entry->second;
}
