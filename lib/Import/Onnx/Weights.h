//===- Weights.h - Bytes of initializers -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_WEIGHTS_H
#define ESPALIER_LIB_IMPORT_ONNX_WEIGHTS_H

#include <string>
#include <vector>

#include "ModelFile.h"
#include "Parameters.h"

namespace espalier::onnx {

/// What is needed to compare tensors without holding them.
struct Digest {
  bool isKnown = false; // false: the bytes are absent
  uint64_t hash = 0;
  uint64_t sum = 0; // of the elements' bits: the same for every order of them
  bool isUniform = false; // all elements are equal
};

/// Digests of all initializers, by number.
llvm::Expected<std::vector<Digest>> digestWeights(const Graph &graph,
                                                  ExternalFiles &files);

/// Over the file and all weights that are there; 32 hexadecimal digits.
std::string fingerprint(const ModelFile &file, llvm::ArrayRef<Digest> digests);

/// Where the runtime finds an initializer's bytes.
WeightSource weightSource(const ModelFile &file, const Initializer &initializer,
                          ExternalFiles &files);

/// A tied pair, by numbers of initializers: `other` is `kept`, or its
/// transpose.
struct TiedPair {
  size_t kept, other;
  bool isTransposed;
};

/// Resolves the job's `tied` pairs: errors for unknown names, shapes that do
/// not fit, different values.
std::vector<TiedPair> findTiedPairs(const Graph &graph,
                                    llvm::ArrayRef<Digest> digests,
                                    const ImportOptions &options,
                                    ErrorList &errors);

/// Remarks on trained initializers with equal elements that are not tied.
void remarkCopies(const Graph &graph, llvm::ArrayRef<Digest> digests,
                  llvm::ArrayRef<InitializerPlan> plans,
                  std::vector<std::string> &remarks);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_WEIGHTS_H
