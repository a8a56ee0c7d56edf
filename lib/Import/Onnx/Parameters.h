//===- Parameters.h - What becomes of each initializer -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_PARAMETERS_H
#define ESPALIER_LIB_IMPORT_ONNX_PARAMETERS_H

#include "espalier/Import/Onnx.h"

#include "llvm/ADT/StringSet.h"

#include <string>
#include <vector>

#include "Graph.h"

namespace espalier::onnx {

/// What PyTorch's exporter says about where an initializer comes from.
struct ExportInfo {
  enum class Kind { None, Parameter, Buffer } kind = Kind::None;
  std::vector<std::string> foldedFrom;
};

/// Metadata of the whole file. `known` is false for other producers.
struct ExportMetadata {
  bool known = false;
  llvm::StringSet<> parameters, buffers; // by the exported program's signature
  std::vector<ExportInfo> initializers;  // as in Graph

  /// The initializer is a parameter, or was folded from one.
  bool isParameter(size_t initializer) const;
};

ExportMetadata readExportMetadata(const Graph &graph,
                                  const proto::GraphProto &proto);

struct InitializerPlan {
  enum class Role { Parameter, Frozen, Buffer, Constant, Alias, Unused };
  Role role = Role::Unused;
  std::string reason; // why it is not trained
  int aliasOf = -1;   // Alias: number of the initializer that it is
};

/// Values through which a gradient flows from some output, by ValueId.
std::vector<bool> gradientReaches(const Graph &graph,
                                  const std::vector<bool> &live);

/// Decides on every initializer by metadata, globs and use. Errors: globs
/// without a match, unused initializers, things that cannot be trained.
std::vector<InitializerPlan>
planInitializers(const Graph &graph, const std::vector<bool> &live,
                 const ExportMetadata &metadata, const ImportOptions &options,
                 ErrorList &errors, std::vector<std::string> &remarks);

/// Reports the marks of weights that the exporter merged, dropped or folded:
/// errors, or remarks if the job accepts them.
void checkExportRewrites(const Graph &graph, const std::vector<bool> &live,
                         const ExportMetadata &metadata,
                         const ImportOptions &options, ErrorList &errors,
                         std::vector<std::string> &remarks);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_PARAMETERS_H
