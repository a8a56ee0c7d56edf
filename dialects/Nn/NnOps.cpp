//===- NnOps.cpp - Verifiers of elementwise and structural ops ------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnShapes.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

//===----------------------------------------------------------------------===//
// Values from nothing
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  ShapedType type = getValue().getShapedType();
  if (type.getShape() != shapeOf(getResult()) ||
      type.getElementType() != getElementTypeOrSelf(getResult())) // (C1)
    return emitOpError(
               "expects a value of the result's shape and type, but got ")
           << type;
  return success();
}

LogicalResult IotaOp::verify() {
  if (int64_t(getDim()) < 0 || int64_t(getDim()) >= rankOf(getResult())) // (C1)
    return emitOpError("expects a dimension of the result, but got ")
           << getDim();
  return success();
}

LogicalResult RandomUniformOp::verify() {
  if (int64_t(getLogicalShape().size()) != rankOf(getResult())) // (C1)
    return emitOpError("expects a logical shape of rank ")
           << rankOf(getResult()) << ", but got " << getLogicalShape().size()
           << " sizes";
  return success();
}

//===----------------------------------------------------------------------===//
// MapOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyMapShapes(MapOp op) {
  if (op.getNumResults() == 0) // (C1)
    return op.emitOpError("expects a result");
  ArrayRef<int64_t> shape = shapeOf(op.getResult(0));
  for (Value result : op.getResults())
    if (shapeOf(result) != shape) // (C1)
      return op.emitOpError("expects results of one shape, but got ")
             << result.getType() << " beside " << op.getResult(0).getType();
  for (Value operand : op.getOperands())
    if (!broadcasts(shapeOf(operand), shape)) // (C2)
      return op.emitOpError("expects operands that broadcast to the results, "
                            "but got ")
             << operand.getType() << " for " << op.getResult(0).getType();
  return success();
}

LogicalResult MapOp::verify() {
  if (failed(verifyMapShapes(*this)))
    return failure();
  Block &block = getBody().front();
  auto elementTypes = [](ValueRange values) {
    return llvm::map_to_vector(
        values, [](Value value) { return getElementTypeOrSelf(value); });
  };
  if (!llvm::equal(elementTypes(getOperands()),
                   block.getArgumentTypes())) // (C3)
    return emitOpError("expects a body with an argument for each operand, of "
                       "its element type");
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || !llvm::equal(elementTypes(getResults()),
                             yield.getValues().getTypes())) // (C4)
    return emitOpError("expects a body that yields a value for each result, of "
                       "its element type");
  for (Operation &op : block.without_terminator())
    if (!isa<arith::ArithDialect, math::MathDialect>(op.getDialect())) // (C5)
      return emitOpError("expects a body of arith and math ops, but got ")
             << op.getName();
  return success();
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  if (elementCount(getInput()) != elementCount(getResult()) ||
      getElementTypeOrSelf(getInput()) !=
          getElementTypeOrSelf(getResult())) // (C1)
    return emitOpError("expects as many elements, of one type, but got ")
           << getInput().getType() << " and " << getResult().getType();
  return success();
}

LogicalResult TransposeOp::verify() {
  ArrayRef<int64_t> permutation = getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, rankOf(getInput())))) // (C1)
    return emitOpError("expects a permutation of the dimensions, but got [")
           << permutation << "]";
  SmallVector<int64_t> permuted;
  for (int64_t dim : permutation)
    permuted.push_back(shapeOf(getInput())[dim]);
  return verifyShape(*this, getResult(), permuted,
                     "the permuted shape"); // (C2)
}

LogicalResult SliceOp::verify() {
  int64_t rank = rankOf(getInput());
  if (int64_t(getOffsets().size()) != rank ||
      int64_t(getStrides().size()) != rank || rankOf(getResult()) != rank ||
      llvm::any_of(getStrides(), [](int64_t s) { return s < 1; })) // (C1)
    return emitOpError("expects an offset and a positive stride for each "
                       "dimension");
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t count = shapeOf(getResult())[dim];
    int64_t last = getOffsets()[dim] + (count - 1) * getStrides()[dim];
    if (getOffsets()[dim] < 0 ||
        (count > 0 && last >= shapeOf(getInput())[dim])) // (C2)
      return emitOpError("expects a part inside the input, but dimension ")
             << dim << " of size " << shapeOf(getInput())[dim]
             << " is read up to " << last;
  }
  return success();
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty() || int64_t(getDim()) < 0 ||
      int64_t(getDim()) >= rankOf(getResult())) // (C1)
    return emitOpError("expects a dimension of the inputs, but got ")
           << getDim();
  SmallVector<int64_t> shape(shapeOf(getInputs().front()));
  if (int64_t(shape.size()) != rankOf(getResult())) // (C2)
    return emitOpError("expects inputs of the result's rank");
  shape[getDim()] = 0;
  for (Value input : getInputs()) {
    SmallVector<int64_t> other(shapeOf(input));
    if (other.size() != shape.size())
      return emitOpError("expects inputs of one rank"); // (C2)
    shape[getDim()] += other[getDim()];
    other[getDim()] = shape[getDim()];
    if (other != shape) // (C2)
      return emitOpError("expects inputs that differ only in dimension ")
             << getDim() << ", but got " << input.getType();
  }
  return verifyShape(*this, getResult(), shape, "the sum of the sizes"); // (C2)
}

LogicalResult PadOp::verify() {
  int64_t rank = rankOf(getInput());
  auto isMargin = [&](ArrayRef<int64_t> sizes) {
    return int64_t(sizes.size()) == rank &&
           llvm::all_of(sizes, [](int64_t size) { return size >= 0; });
  };
  if (!isMargin(getLow()) || !isMargin(getHigh())) // (C1)
    return emitOpError("expects a margin, not negative, for each dimension");
  SmallVector<int64_t> shape(shapeOf(getInput()));
  for (int64_t dim = 0; dim < rank; ++dim)
    shape[dim] += getLow()[dim] + getHigh()[dim];
  return verifyShape(*this, getResult(), shape, "the margins added"); // (C2)
}

LogicalResult BroadcastOp::verify() {
  if (!broadcasts(shapeOf(getInput()), shapeOf(getResult()))) // (C1)
    return emitOpError(
               "expects an input that broadcasts to the result, but got ")
           << getInput().getType() << " for " << getResult().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions and products
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  SmallVector<int64_t> shape(shapeOf(getInput()));
  int64_t previous = -1;
  for (int64_t dim : getDims()) {
    if (dim <= previous || dim >= int64_t(shape.size())) // (C1)
      return emitOpError("expects ascending dimensions of the input, but got [")
             << getDims() << "]";
    previous = dim;
    shape[dim] = 1;
  }
  return verifyShape(*this, getResult(), shape, "size 1 where reduced"); // (C2)
}

std::array<StringRef, 3> ContractOp::getLetters() {
  auto [operands, result] = getEquation().split("->");
  auto [lhs, rhs] = operands.split(',');
  return {lhs, rhs, result};
}

static bool isLetters(StringRef letters) {
  SmallVector<char> sorted(letters.begin(), letters.end());
  llvm::sort(sorted);
  return llvm::all_of(sorted, [](char c) { return c >= 'a' && c <= 'z'; }) &&
         std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

LogicalResult ContractOp::verify() {
  std::array<StringRef, 3> letters = getLetters();
  std::array<Value, 3> tensors = {getLhs(), getRhs(), getResult()};
  for (auto [names, tensor] : llvm::zip(letters, tensors))
    if (!isLetters(names) || int64_t(names.size()) != rankOf(tensor)) // (C1)
      return emitOpError("expects an equation with a letter for each "
                         "dimension, but got \"")
             << getEquation() << "\"";
  std::array<int64_t, 26> sizes;
  sizes.fill(-1);
  for (auto [names, tensor] : llvm::zip(letters, tensors))
    for (auto [name, size] : llvm::zip(names, shapeOf(tensor))) {
      int64_t &known = sizes[name - 'a'];
      if (known >= 0 && known != size) // (C2)
        return emitOpError("expects one size for '")
               << name << "', but got " << known << " and " << size;
      known = size;
    }
  for (char name = 'a'; name <= 'z'; ++name) {
    bool inLhs = letters[0].contains(name), inRhs = letters[1].contains(name);
    bool inResult = letters[2].contains(name);
    if (inResult ? !inLhs && !inRhs : inLhs != inRhs) // (C3)
      return emitOpError("expects a letter of one operand to be in the result, "
                         "and one of the result in an operand, but got '")
             << name << "' in \"" << getEquation() << "\"";
  }
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Nn/NnOps.cpp.inc"
