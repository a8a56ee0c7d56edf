//===- FakeProgram.h - A small program, written by hand ---------*- C++ -*-===//
//
// Linear regression, y = x . w, trained by gradient descent with momentum on n
// ranks: samples are sharded, the gradient is all-reduced, the momentum is
// sharded (as ZeRO-1 does it) and the parameters are all-gathered. It does by
// hand what a compiled program does, and can be told to misbehave.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_TEST_UNIT_RUNTIME_FAKEPROGRAM_H
#define ESPALIER_TEST_UNIT_RUNTIME_FAKEPROGRAM_H

#include "espalier/runtime/abi.h"

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::test {

constexpr int64_t features = 6;
constexpr int64_t batch = 4; // samples of the logical microbatch
constexpr int64_t microBatches = 2;
constexpr int64_t globalBatch = 7; // one sample of a step is not valid

enum class Fault {
  None,
  Die,
  Stop,
  NotFinite,
  OtherCollective,
  Skip,
  Slow,
  Sleep
};

struct FaultAt {
  Fault kind = Fault::None;
  int32_t rank = 0;
  int64_t step = 0;
};
extern FaultAt fault;

/// The program on `ranks` ranks. Valid until the next call.
const EspalierProgram &fakeProgram(int32_t ranks,
                                   const std::string &model = "model-a");

/// A folder that is removed at the end, with all that is in it.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path;
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
};

struct RunResult {
  int status = -1;
  std::string output, errors;
};

/// Runs a training binary of `program` in a child process.
RunResult runTraining(const EspalierProgram &program,
                      const std::vector<std::string> &arguments);

/// The same without waiting: returns the process.
int startTraining(const EspalierProgram &program,
                  const std::vector<std::string> &arguments,
                  const std::string &outputFile);

/// A safetensors file of one tensor after the other.
struct FileTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
void writeSafetensors(const std::string &path,
                      const std::vector<FileTensor> &tensors);

/// The data of the fake program: `samples` samples.
void writeFakeData(const std::string &path, int64_t samples);

std::string readText(const std::string &path);
void writeText(const std::string &path, const std::string &text);

} // namespace espalier::test

#endif // ESPALIER_TEST_UNIT_RUNTIME_FAKEPROGRAM_H
