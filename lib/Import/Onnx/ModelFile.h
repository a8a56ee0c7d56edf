//===- ModelFile.h - Reading the protobuf file -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_MODELFILE_H
#define ESPALIER_LIB_IMPORT_ONNX_MODELFILE_H

#include "espalier/Import/Onnx.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

#include "lib/Import/Onnx/onnx.pb.h"

namespace espalier::onnx {

/// A parsed file. Nothing but its form has been checked.
struct ModelFile {
  std::unique_ptr<proto::ModelProto> model;
  std::string path;      // as given
  std::string directory; // "." if the path has none
  std::string name;      // of the file in it
  uint64_t hash = 0;     // of the file's bytes
  /// For each initializer of the graph, where in the file its raw_data begins;
  /// -1 if it has none.
  std::vector<int64_t> rawOffsets;
};

/// Reads and parses. An error names the offset at which parsing stopped.
llvm::Expected<ModelFile> readModelFile(llvm::StringRef path,
                                        const ImportLimits &limits);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_MODELFILE_H
