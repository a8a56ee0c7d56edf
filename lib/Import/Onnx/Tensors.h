//===- Tensors.h - Data types and tensors of a file -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_TENSORS_H
#define ESPALIER_LIB_IMPORT_ONNX_TENSORS_H

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"

#include <optional>
#include <string>

#include "ExternalData.h"
#include "lib/Import/Onnx/onnx.pb.h"

namespace espalier::onnx {

using Shape = llvm::SmallVector<int64_t, 4>;

/// ONNX's numbers of data types.
enum class Dtype : int32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  Bfloat16 = 16,
};

/// The type of this number if the importer knows it, else Undefined.
Dtype toDtype(int32_t number);
llvm::StringRef dtypeName(Dtype dtype);
bool isFloating(Dtype dtype);
/// Bytes of an element. String has none.
unsigned dtypeBytes(Dtype dtype);
/// Element type in MLIR (integers are signless); null for strings.
mlir::Type elementType(mlir::MLIRContext *context, Dtype dtype);
/// The data type of an element type; integers count as signed.
Dtype dtypeOf(mlir::Type type);

/// Product of sizes; nothing if one is negative or the product exceeds 2^62.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> shape);

/// A TensorProto after its checks: its bytes are exactly what its shape needs.
struct TensorInfo {
  enum class Carrier { Raw, Typed, External, Absent };
  const proto::TensorProto *proto = nullptr;
  Dtype dtype = Dtype::Undefined;
  Shape shape;
  int64_t elements = 0;
  uint64_t bytes = 0; // as raw data
  Carrier carrier = Carrier::Typed;
  ExternalRange external; // of carrier External or Absent
};

/// Checks a tensor: known data type, sizes without overflow, exactly one
/// carrier with exactly the bytes that the shape needs, external data by the
/// rules of ExternalFiles. The error has no name of the tensor in it.
llvm::Expected<TensorInfo> checkTensor(const proto::TensorProto &tensor,
                                       ExternalFiles &files);

/// The elements as raw data. Not for strings, nor for absent tensors.
llvm::Expected<std::string> tensorBytes(const TensorInfo &tensor,
                                        ExternalFiles &files);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_TENSORS_H
