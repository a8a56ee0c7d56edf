//===- Tensor.cpp - A tensor's elements, for the interpreter --------------===//

#include "espalier/Interpreter/Tensor.h"

#include "llvm/ADT/APFloat.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace espalier;

double espalier::roundToType(double value, Type type) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  APFloat rounded(value);
  bool losesInfo = false;
  rounded.convert(cast<FloatType>(type).getFloatSemantics(),
                  APFloat::rmNearestTiesToEven, &losesInfo);
  return rounded.convertToDouble();
}

Tensor::Tensor(RankedTensorType type)
    : elementType(type.getElementType()), shape(type.getShape()) {
  if (isFloat())
    floats.resize(size());
  else
    integers.resize(size());
}

Tensor::Tensor(RankedTensorType type, std::vector<double> floats)
    : elementType(type.getElementType()), shape(type.getShape()),
      floats(std::move(floats)) {
  assert(isFloat() && int64_t(this->floats.size()) == size() &&
         "there is a number for each element");
}

Tensor::Tensor(RankedTensorType type, std::vector<int64_t> integers)
    : elementType(type.getElementType()), shape(type.getShape()),
      integers(std::move(integers)) {
  assert(!isFloat() && int64_t(this->integers.size()) == size() &&
         "there is an integer for each element");
}

static int64_t integerOf(const APInt &value) {
  return value.getBitWidth() == 1 ? value.getZExtValue() : value.getSExtValue();
}

FailureOr<Tensor> Tensor::fromAttribute(ElementsAttr value,
                                        RankedTensorType type) {
  Tensor tensor(type);
  if (tensor.isFloat()) {
    auto numbers = value.tryGetValues<APFloat>();
    if (!numbers)
      return failure();
    llvm::transform(*numbers, tensor.floats.begin(),
                    [](const APFloat &x) { return x.convertToDouble(); });
    return tensor;
  }
  auto numbers = value.tryGetValues<APInt>();
  if (!numbers)
    return failure();
  llvm::transform(*numbers, tensor.integers.begin(), integerOf);
  return tensor;
}

int64_t Tensor::size() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

void Tensor::round() {
  if (!isFloat() || elementType.isF64())
    return;
  for (double &value : floats)
    value = roundToType(value, elementType);
}
