//===- Onnx.h - From an ONNX file to a module in dialect nn -*- C++ -*-===//
//
// importOnnx reads a model file of unknown origin, binds its symbolic
// dimensions, folds what is constant then, and writes the rest as one function
// @forward in dialect nn. lib/Import/README.md says what is supported, which
// initializers are trained, and what is refused.
//
// The importer reads the model's file and external data below the file's
// directory; it opens nothing else, starts nothing, and looks at no environment
// variable. Time and memory are bounded by the limits below.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_IMPORT_ONNX_H
#define ESPALIER_IMPORT_ONNX_H

#include "llvm/Support/Error.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

/// What BatchNormalization does. An ONNX file cannot say it (exporters write
/// the inference form even of a model in training mode), so it is asked for.
enum class BatchNormMode {
  Unset,  // a model with BatchNormalization is refused
  Train,  // statistics of the valid samples; running statistics are results
  Frozen, // running statistics, as in the file
};

/// Bounds on what a file may make the importer do. Sizes of weights that are
/// not read (external data) are only numbers and not bounded by these.
struct ImportLimits {
  uint64_t fileBytes = (uint64_t(1) << 31) - 1; // protobuf's own limit
  unsigned messageDepth = 200;
  unsigned callDepth = 64;
  uint64_t nodes = 1000000;          // after functions are inlined
  uint64_t dimension = 1ull << 40;   // a single bound size
  uint64_t foldedElements = 1 << 22; // of one folded constant
  uint64_t foldedTotal = 1 << 24;    // of all folded constants above 1024
};

/// The job's keys, as far as they concern the import.
struct ImportOptions {
  /// Sizes of symbolic dimensions. A key "batch" that no dimension is called
  /// binds the first dimension of the inputs, whatever its name.
  std::map<std::string, int64_t> dims;
  /// Globs (*, ?, [...]) of initializer names. One without a match is an error.
  std::vector<std::string> frozen;
  std::vector<std::string> trained;
  /// Pairs of initializers that are one parameter.
  std::vector<std::pair<std::string, std::string>> tied;
  BatchNormMode batchNorm = BatchNormMode::Unset;
  bool acceptExportRewrites = false;
  bool allowUnused = false;
  /// External data may be reached by hard links, as in caches.
  bool allowHardLinks = false;
  /// Puts attention, norms and the like back together (Recognize.h).
  bool recognize = true;
  ImportLimits limits;
};

/// Where the bytes of an initializer are (little endian, row-major).
struct WeightSource {
  enum class Kind { File, Bytes, Absent } kind = Kind::Absent;
  std::string file;    // File: relative to the model's directory
  uint64_t offset = 0; // File: from its beginning
  uint64_t bytes = 0;  // size in all kinds
  std::string content; // Bytes: typed fields, which are not contiguous on disk
};

/// An initializer that became an argument of @forward.
struct ImportedInitializer {
  std::string name;
  std::string role; // parameter, frozen or buffer
  mlir::RankedTensorType type;
  WeightSource source;
  /// The other name of a tied pair, and whether its layout is transposed.
  std::string alias;
  bool aliasTransposed = false;
};

/// An input of the model. `range`: ids that it may hold, [lo, hi), if the model
/// only uses it to look up in tables.
struct ImportedInput {
  std::string name;
  mlir::RankedTensorType type;
  std::optional<std::pair<int64_t, int64_t>> range;
};

/// An initializer that is not trained, and why.
struct Untrained {
  std::string name;
  std::string reason;
};

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<ImportedInitializer> initializers; // in the order of arguments
  std::vector<ImportedInput> inputs;
  std::vector<std::string> outputs;
  std::vector<Untrained> untrained;
  std::vector<std::string> remarks;
  /// Some external data is not there: planning and simulation work, no more.
  bool weightsAbsent = false;
  /// Directory of the model's file, to which `WeightSource::file` is relative.
  std::string directory;
  /// 32 hexadecimal digits over the file's bytes and all weights that are
  /// there.
  std::string fingerprint;
  int64_t batch = 0; // size of dimension 0 of the inputs
};

/// Imports the model at `path`. Loads the dialects that it needs into
/// `context`. The error lists everything that is wrong, a line each, in the
/// model's terms: file, node, op, attribute.
llvm::Expected<ImportedModel> importOnnx(mlir::MLIRContext &context,
                                         llvm::StringRef path,
                                         const ImportOptions &options);

} // namespace espalier

#endif // ESPALIER_IMPORT_ONNX_H
