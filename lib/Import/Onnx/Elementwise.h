//===- Elementwise.h - Folding and building of elementwise ops -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_ELEMENTWISE_H
#define ESPALIER_LIB_IMPORT_ONNX_ELEMENTWISE_H

#include "NodeContext.h"

namespace espalier::onnx {

/// One elementwise computation in its two forms.
struct Computation {
  /// On constants.
  llvm::function_ref<Scalar(llvm::ArrayRef<Scalar>)> fold;
  /// As the body of a map.
  NnBuilder::Body body;
};

/// Computes operands [0, count) of the node elementwise into result 0 of this
/// data type: a constant if all operands are, else a map into whose body
/// uniform constants go. Reports shapes that do not broadcast.
void elementwise(NodeContext &node, Dtype result, const Computation &compute);

/// The same on given operands; the result is returned, not set. Unknown after
/// a failure.
ImportedValue elementwise(NodeContext &node,
                          llvm::ArrayRef<ImportedValue> operands, Dtype result,
                          const Computation &compute);

/// Conversion of an element, as ONNX's Cast defines it.
Scalar castScalar(Scalar value, Dtype from, Dtype to);

/// A value of another data type.
ImportedValue castTo(NodeContext &node, const ImportedValue &value, Dtype to);

ImportedValue tensorValue(mlir::Value value);
ImportedValue tensorValue(Constant constant);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_ELEMENTWISE_H
