//===- NodeContext.h - What the handler of an op sees -*- C++ -*-===//
//
// A handler reads a node's operands and attributes, and sets its results:
// constants where all it needs is constant, else values it builds. It reports
// through fail(), once, and returns; results that were not set are then
// unknown, and nodes that use them are passed over without a word.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_NODECONTEXT_H
#define ESPALIER_LIB_IMPORT_ONNX_NODECONTEXT_H

#include "mlir/IR/Value.h"

#include <optional>
#include <string>
#include <vector>

#include "Constant.h"
#include "Graph.h"
#include "NnBuilder.h"

namespace espalier::onnx {

/// A value of the graph during the import.
struct ImportedValue {
  enum class Kind { Unknown, Tensor, Sequence } kind = Kind::Unknown;
  Dtype dtype = Dtype::Undefined;
  Shape shape;
  std::optional<Constant> constant;
  mlir::Value value; // null while it is only a constant
  std::vector<ImportedValue> sequence;
  /// Number of the model's input that this is a rearrangement of, or -1.
  int input = -1;
};

/// Constants with the same elements and their ops.
using ConstantOps = llvm::SmallVector<std::pair<Constant, mlir::Value>, 1>;

/// What all nodes share.
struct ImportState {
  ImportState(mlir::MLIRContext &context, const ImportOptions &options,
              ErrorList &errors, std::vector<std::string> &remarks,
              ExternalFiles &files)
      : builder(&context), options(options), errors(errors), remarks(remarks),
        files(files) {}

  mlir::OpBuilder builder;
  mlir::Block *body = nullptr;
  const ImportOptions &options;
  ErrorList &errors;
  std::vector<std::string> &remarks;
  ExternalFiles &files;
  std::vector<ImportedValue> values; // by ValueId
  mlir::Value valid, rng;
  /// By number of input: smallest size of a table that it looks up in; -1 if
  /// it is used otherwise too.
  std::vector<int64_t> tableSizes;
  /// Running statistics: ValueId of the initializer to its updated value.
  llvm::DenseMap<ValueId, mlir::Value> updatedBuffers;
  /// By address of their elements, which the entries keep alive.
  llvm::DenseMap<const void *, ConstantOps> constants;
  uint64_t foldedTotal = 0;
  unsigned randomStreams = 0;
};

class NodeContext {
public:
  NodeContext(ImportState &state, const Node &node, mlir::Location location)
      : state(state), node(node), nn(state.builder, location) {}

  ImportState &state;
  const Node &node;
  NnBuilder nn;

  // Operands.
  unsigned inputs() const { return node.inputs.size(); }
  bool has(unsigned i) const {
    return i < node.inputs.size() && node.inputs[i] != noValue;
  }
  const ImportedValue &in(unsigned i) const {
    return state.values[node.inputs[i]];
  }
  const Shape &shape(unsigned i) const { return in(i).shape; }
  int64_t rank(unsigned i) const { return shape(i).size(); }
  Dtype dtype(unsigned i) const { return in(i).dtype; }
  mlir::Type element(unsigned i) const {
    return elementType(state.builder.getContext(), dtype(i));
  }
  const Constant *constant(unsigned i) const {
    return has(i) && in(i).constant ? &*in(i).constant : nullptr;
  }
  bool allConstant() const;
  /// The operand as a value of its shape.
  mlir::Value value(unsigned i) { return materialize(in(i)); }
  mlir::Value materialize(const ImportedValue &value);
  /// The constant in its stored shape, to which it broadcasts.
  mlir::Value compact(const ImportedValue &value);

  /// Elements of a constant integer operand; reports if it is none.
  std::optional<std::vector<int64_t>> ints(unsigned i);
  std::optional<int64_t> integer(unsigned i);

  // Attributes; their types were checked against the op table.
  const proto::AttributeProto *attribute(llvm::StringRef name) const;
  int64_t attr(llvm::StringRef name, int64_t fallback) const;
  double attr(llvm::StringRef name, double fallback) const;
  llvm::StringRef attr(llvm::StringRef name, llvm::StringRef fallback) const;
  std::optional<std::vector<int64_t>> attrInts(llvm::StringRef name) const;
  /// Attribute `axis` counted from the front; reports if out of range.
  std::optional<int64_t> axis(int64_t fallback, int64_t rank);
  /// The same for a list of axes: sorted, no duplicates.
  std::optional<Shape> axes(llvm::ArrayRef<int64_t> given, int64_t rank);
  std::optional<int64_t> normalizedAxis(int64_t axis, int64_t rank);

  // Results.
  void set(unsigned i, mlir::Value value);
  void set(unsigned i, Constant constant);
  void set(unsigned i, ImportedValue value);
  /// A result that is operand `i` under another shape or order, which keeps
  /// what is known of its origin.
  void setRearranged(mlir::Value value, unsigned i = 0);

  /// Reports "node 'x' (Op): message".
  void fail(const llvm::Twine &message);
  void unsupported(const llvm::Twine &what) { fail("not supported: " + what); }
  bool failed() const { return hasFailed; }
  void remark(const llvm::Twine &message);

  /// Whether a constant of this many stored elements may be made.
  bool mayFold(int64_t elements);

private:
  bool hasFailed = false;
};

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_NODECONTEXT_H
