//===- RtOps.cpp - Forms and verifiers of the rt dialect's ops ------------===//

#include "dialects/Rt/Rt.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::rt;

static int64_t elementsOf(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getNumElements();
}

LogicalResult BufferOp::verify() {
  if (int64_t(getOffset()) < 0 ||
      llvm::any_of(getByRank().value_or(ArrayRef<int64_t>()),
                   [](int64_t offset) { return offset < 0; })) // (C1)
    return emitOpError("expects offsets that are not negative");
  return success();
}

LogicalResult rt::ConstantOp::verify() {
  ShapedType type = getValue().getShapedType();
  if (type.getNumElements() != elementsOf(getResult()) ||
      type.getElementType() != getElementTypeOrSelf(getResult())) // (C1)
    return emitOpError(
               "expects a value of the buffer's size and type, but got ")
           << type;
  return success();
}

//===----------------------------------------------------------------------===//
// LoopsOp
//===----------------------------------------------------------------------===//

static ParseResult parseIntegerArray(OpAsmParser &parser,
                                     DenseI64ArrayAttr &array) {
  SmallVector<int64_t> values;
  if (parser.parseCommaSeparatedList(
          OpAsmParser::Delimiter::Square, [&]() -> ParseResult {
            return parser.parseInteger(values.emplace_back());
          }))
    return failure();
  array = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printIntegerArray(OpAsmPrinter &printer, Operation *,
                              DenseI64ArrayAttr array) {
  printer << '[';
  llvm::interleaveComma(array.asArrayRef(), printer);
  printer << ']';
}

static ParseResult parseStrideArrays(OpAsmParser &parser, ArrayAttr &arrays) {
  SmallVector<Attribute> values;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                     [&]() -> ParseResult {
                                       DenseI64ArrayAttr array;
                                       if (parseIntegerArray(parser, array))
                                         return failure();
                                       values.push_back(array);
                                       return success();
                                     }))
    return failure();
  arrays = parser.getBuilder().getArrayAttr(values);
  return success();
}

static void printStrideArrays(OpAsmPrinter &printer, Operation *op,
                              ArrayAttr arrays) {
  printer << '[';
  llvm::interleaveComma(arrays, printer, [&](Attribute array) {
    printIntegerArray(printer, op, cast<DenseI64ArrayAttr>(array));
  });
  printer << ']';
}

/// How many elements a walk over `shape` by `strides` spans.
static int64_t spanOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> strides) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(shape, strides)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return last + 1;
}

static LogicalResult verifyBody(LoopsOp op) {
  Block &block = op.getBody().front();
  auto typesOf = [](ValueRange values) {
    return llvm::map_to_vector(
        values, [](Value value) { return getElementTypeOrSelf(value); });
  };
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!llvm::equal(typesOf(op.getInputs()), block.getArgumentTypes()) ||
      !yield ||
      !llvm::equal(typesOf(op.getOutputs()), yield.getValues().getTypes()))
    return op.emitOpError("expects a body from the inputs' element types to "
                          "the outputs'");
  return success();
}

LogicalResult LoopsOp::verify() {
  if (getStrides().size() != getNumOperands()) // (C1)
    return emitOpError("expects strides for each buffer");
  for (unsigned i = 0; i < getNumOperands(); ++i) {
    if (getStridesOf(i).size() != getShape().size()) // (C1)
      return emitOpError("expects strides of rank ") << getShape().size();
    int64_t span = spanOf(getShape(), getStridesOf(i));
    if (span > elementsOf(getOperand(i))) // (C4)
      return emitOpError("expects buffer ")
             << i << " to have " << span << " elements, but got "
             << getOperand(i).getType();
  }
  if (getKinds().size() != getOutputs().size() ||
      llvm::any_of(getKinds().getAsValueRange<StringAttr>(),
                   [](StringRef kind) {
                     return kind != "store" && !symbolizeReductionKind(kind);
                   })) // (C2)
    return emitOpError("expects a kind for each output");
  return verifyBody(*this); // (C3)
}

#define GET_OP_CLASSES
#include "dialects/Rt/RtOps.cpp.inc"
