//===- OpTable.h - Which ops are supported, by opset -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_OPTABLE_H
#define ESPALIER_LIB_IMPORT_ONNX_OPTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace espalier::onnx {

class NodeContext;
class Constant;

/// ONNX's numbers of attribute types.
enum class AttributeType : int32_t {
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
};

/// Opsets of the default domain that a file may say.
constexpr int64_t minOpset = 13, maxOpset = 25;

/// One op over a range of opset versions.
struct OpRow {
  const char *name;
  int64_t since;            // first version with this form
  int64_t until;            // last one
  int minInputs, maxInputs; // -1 = any number
  int maxOutputs;
  /// "axis:i perm:is ..." with the letters of attributeType.
  const char *attributes;
  /// Inputs through which a gradient flows to the outputs, one bit each; of
  /// inputs beyond the 31st the last bit speaks.
  uint32_t differentiable;
  /// Emits the node, or folds it if all it needs is constant; reports through
  /// the context. Null for ops that are known and refused.
  void (*handle)(NodeContext &);
};

/// The row of an op of the default domain in this version, or null.
const OpRow *findOp(llvm::StringRef name, int64_t version);

/// All rows, by family.
llvm::ArrayRef<OpRow> allOps();

/// Whether any version of the default domain has this op here; for messages.
/// Returns the versions of its rows as text ("18 to 25"), "" if none.
std::string supportedVersions(llvm::StringRef name);

/// The type that a row gives an attribute; nothing if it does not list it.
std::optional<AttributeType> attributeType(const OpRow &row,
                                           llvm::StringRef attribute);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_OPTABLE_H
