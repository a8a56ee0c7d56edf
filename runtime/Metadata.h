//===- Metadata.h - What a program says about itself ------------*- C++ -*-===//
//
// The program's JSON metadata, read strictly: unknown keys, wrong types and
// tensors that do not fit their arena are errors. README.md gives the schema.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_RUNTIME_METADATA_H
#define ESPALIER_RUNTIME_METADATA_H

#include "espalier/runtime/abi.h"
#include "runtime/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace espalier::runtime {

enum class Role {
  Parameter,
  Frozen,
  Buffer,
  State,
  Input,
  Label,
  Valid,
  Rng,
  Step,
  Loss,
  GradNorm,
  Lr,
  WeightSum
};

/// A mesh axis that cuts a dimension: rank r is its block (r / stride) % size.
struct ShardAxis {
  std::string axis;
  int64_t size = 1;
  int64_t stride = 1;
};

struct TensorInit {
  enum class Kind { None, File, Zeros, Ones, Normal, Constant };
  Kind kind = Kind::None;
  std::string path; // relative to the model's folder
  uint64_t offset = 0;
  uint64_t bytes = 0;
  double mean = 0, deviation = 0, value = 0;
};

struct TensorInfo {
  std::string name;
  Role role = Role::Parameter;
  EspalierDtype dtype = EspalierF32;
  std::vector<int64_t> shape;                   // logical
  std::vector<int64_t> offsets;                 // per class; -1: not there
  std::vector<std::vector<ShardAxis>> sharding; // per dimension, major first
  std::vector<int64_t> granules;                // per dimension
  TensorInit init;
  bool checkpoint = false;
  std::string alias; // empty: none
  bool aliasTransposed = false;
  std::optional<std::pair<int64_t, int64_t>> range; // valid ids, [first, end)
  std::optional<int64_t> ignore;                    // also valid, in labels

  int64_t elements() const;
  uint64_t bytes() const;
};

struct DataInfo {
  enum class Kind { None, Tokens, Samples };
  Kind kind = Kind::None;
  std::string file;
  // tokens
  uint32_t tokenBytes = 2;
  std::string input, labels;
  int64_t sequence = 0;
  // samples
  bool shuffle = false;
};

struct FillInfo {
  enum class With { Positions, Ones, Zeros };
  std::string input;
  With with = With::Zeros;
};

struct LibraryInfo {
  std::string name, file, why;
};

struct OpInfo {
  std::string name;
  std::string kind; // for the sums of --profile
};

struct Metadata {
  std::string tool, jobName, precision;
  std::optional<int64_t> steps;
  int64_t globalBatch = 1;  // samples of a step
  int64_t microBatch = 1;   // samples of one replica's microbatch
  int64_t microBatches = 1; // of a step
  int64_t seed = 0;
  std::vector<std::pair<std::string, int64_t>> mesh; // axis, size
  std::vector<std::vector<int32_t>> groups;
  std::vector<OpInfo> ops;
  std::vector<LibraryInfo> libraries;
  std::string modelFingerprint, planFingerprint;
  std::vector<TensorInfo> tensors;
  DataInfo data;
  std::string jobDirectory, modelDirectory;
  std::vector<FillInfo> fill;
  std::optional<double> predictedStepSeconds, flopsPerStep;

  int64_t batch = 0; // samples of the logical microbatch: all replicas

  const TensorInfo *find(Role role) const; // the first of that role, or null
};

uint64_t dtypeBytes(EspalierDtype dtype);
const char *dtypeName(EspalierDtype dtype); // "f32"

/// Reads the metadata of `program` and checks it against the program.
Status parseMetadata(const EspalierProgram &program, Metadata &metadata);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_METADATA_H
