//===- PlanFile.h - A plan, written and read --------------------*- C++ -*-===//
//
// The plan file, as lib/Job/README.md describes it. Written by the compiler or
// by hand, and checked like any input.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_JOB_PLANFILE_H
#define ESPALIER_JOB_PLANFILE_H

#include "espalier/Support/YamlTree.h"

#include <map>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace espalier {

struct PlanAxis {
  std::string name;
  int64_t size = 1;
  std::string link; // the class of its links
  bool operator==(const PlanAxis &) const = default;
};

/// The tensors of one kind: those whose names differ in numbers alone.
struct PlanTensor {
  std::string name; // with * for the numbers
  std::vector<int64_t> shape;
  std::vector<std::vector<std::string>> sharding; // axes of each dimension
  bool operator==(const PlanTensor &) const = default;
};

struct PlanFile {
  std::string modelFingerprint;
  std::vector<PlanAxis> mesh;
  std::map<std::string, int64_t> layout; // pins by name: dp
  int64_t globalBatch = 1, microBatch = 1, microBatches = 1;
  std::string matrixProducts; // the library for them
  std::vector<PlanTensor> tensors;

  /// Adds a tensor to its kind, as a new one if it is the first.
  void addTensor(const std::string &name, const std::vector<int64_t> &shape,
                 const std::vector<std::vector<std::string>> &sharding);

  bool operator==(const PlanFile &) const = default;
};

void writePlan(const PlanFile &plan, llvm::raw_ostream &os);

/// Reads a plan. Returns nothing, with messages, where it is wrong.
std::optional<PlanFile> parsePlan(llvm::StringRef text, llvm::StringRef path,
                                  Messages &messages);
std::optional<PlanFile> readPlan(llvm::StringRef path, Messages &messages);

} // namespace espalier

#endif // ESPALIER_JOB_PLANFILE_H
