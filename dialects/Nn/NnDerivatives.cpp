//===- NnDerivatives.cpp - Derivatives of elementwise and structural ops ----------===//

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace espalier::nn;

FailureOr<SmallVector<Value>> ConstantOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> IotaOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> RandomUniformOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> MapOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> ReshapeOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> TransposeOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> SliceOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> ConcatOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> PadOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> BroadcastOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> ReduceOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> ContractOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}
