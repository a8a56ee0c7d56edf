//===- NnLayerDerivatives.cpp - Derivatives of layers ----------===//

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace espalier::nn;

FailureOr<SmallVector<Value>> SoftmaxOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> SoftmaxGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> LayerNormOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> LayerNormGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> RmsNormOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> RmsNormGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> ConvOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> ConvInputGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> ConvFilterGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> MaxPoolOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> MaxPoolGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> AvgPoolOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> AvgPoolGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> GatherOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> ScatterAddOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> AttentionOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> AttentionGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> RopeOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> CrossEntropyOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}

FailureOr<SmallVector<Value>> CrossEntropyGradOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients, ArrayRef<bool> wanted) {
  return emitOpError("has no derivative");
}
