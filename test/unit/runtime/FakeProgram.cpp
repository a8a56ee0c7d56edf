//===- FakeProgram.cpp - A small program, written by hand -----------------===//

#include "FakeProgram.h"

#include "runtime/Support.h"
#include "runtime/Training.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace espalier::test {

FaultAt fault;

namespace {

// Places in the arena.
enum Place : uint64_t {
  X = 0,
  Y = 1024,
  Valid = 1280,
  Rng = 1344,
  Step = 1408,
  W = 1472,
  Momentum = 1536,
  Gradient = 1600,
  LossSum = 1664,
  WeightSum = 1728,
  Loss = 1792,
  Lr = 1856,
  Updated = 1920,
  Gathered = 2048,
  ArenaBytes = 4096
};

float *floats(EspalierContext *context, Place place) {
  return reinterpret_cast<float *>(context->arena + place);
}

int64_t ceiling(int64_t value, int64_t parts) {
  return (value + parts - 1) / parts;
}

void misbehave(EspalierContext *context) {
  if (fault.rank != context->rank || fault.step != context->step)
    return;
  if (fault.kind == Fault::Die)
    raise(SIGKILL);
  if (fault.kind == Fault::Stop)
    raise(SIGSTOP);
  if (fault.kind == Fault::Slow)
    usleep(1500 * 1000);
  if (fault.kind == Fault::OtherCollective) {
    uint64_t offset = Gradient, count = features - 1;
    espalierRtAllReduce(context, 3, 0, EspalierSum, EspalierF32, 1, &offset,
                        &count);
  }
}

void accumulate(EspalierContext *context) {
  espalierRtMark(context, 0);
  if (fault.kind == Fault::Sleep)
    usleep(20 * 1000);
  misbehave(context);
  const float *x = floats(context, X), *y = floats(context, Y);
  const uint8_t *valid = context->arena + Valid;
  float *gradient = floats(context, Gradient), *w = floats(context, W);
  for (int64_t i = 0; i < ceiling(batch, context->ranks); ++i) {
    if (!valid[i])
      continue;
    float error = -y[i];
    for (int64_t j = 0; j < features; ++j)
      error += x[i * features + j] * w[j];
    for (int64_t j = 0; j < features; ++j)
      gradient[j] += 2 * error * x[i * features + j];
    *floats(context, LossSum) += error * error;
    *floats(context, WeightSum) += 1;
  }
}

void first(EspalierContext *context) {
  std::memset(context->arena + Gradient, 0, features * sizeof(float));
  *floats(context, LossSum) = 0;
  *floats(context, WeightSum) = 0;
  accumulate(context);
}

void update(EspalierContext *context) {
  if (fault.kind == Fault::Skip && fault.rank == context->rank &&
      fault.step == context->step)
    return;
  uint64_t offsets[] = {Gradient, LossSum, WeightSum};
  uint64_t counts[] = {features, 1, 1};
  espalierRtAllReduce(context, 1, 0, EspalierSum, EspalierF32, 3, offsets,
                      counts);
  float weight = *floats(context, WeightSum), lr = 0.05f;
  *floats(context, Loss) = *floats(context, LossSum) / weight;
  if (fault.kind == Fault::NotFinite && fault.step == context->step)
    *floats(context, Loss) = 0.0f / (weight - weight);
  *floats(context, Lr) = lr;
  int64_t block = ceiling(features, context->ranks);
  for (int64_t i = 0; i < block; ++i) {
    int64_t j = context->rank * block + i;
    if (j >= features)
      break;
    float &momentum = floats(context, Momentum)[i];
    momentum = 0.9f * momentum + floats(context, Gradient)[j] / weight;
    floats(context, Updated)[i] = floats(context, W)[j] - lr * momentum;
  }
  espalierRtAllGather(context, 2, 0, EspalierF32, 1,
                      static_cast<uint64_t>(block), Updated, Gathered);
  std::memcpy(floats(context, W), floats(context, Gathered),
              features * sizeof(float));
}

std::string tensor(const std::string &name, const std::string &role,
                   const std::string &dtype, const std::string &shape,
                   uint64_t place, const std::string &more) {
  return "{\"name\": \"" + name + "\", \"role\": \"" + role +
         "\", \"dtype\": \"" + dtype + "\", \"shape\": " + shape +
         ", \"offset\": [" + std::to_string(place) + "]" + more + "},\n";
}

std::string metadataText(int32_t ranks, const std::string &model) {
  std::string n = std::to_string(ranks), group = "[0";
  for (int32_t i = 1; i < ranks; ++i)
    group += ", " + std::to_string(i);
  std::string over = "[{\"axis\": \"dp\", \"size\": " + n + ", \"stride\": 1}]";
  std::string one = ", \"sharding\": [" + over + "]";
  std::string two = ", \"sharding\": [" + over + ", []]";
  std::string text = "{\"version\": 1, \"tool\": \"espalier test\", \"job\": "
                     "{\"name\": \"fake\", \"steps\": 10, \"global_batch\": 7, "
                     "\"micro_batch\": " +
                     std::to_string(ceiling(batch, ranks)) +
                     ", \"micro_batches\": 2, \"seed\": 3, \"precision\": "
                     "\"fp32\"}, \"mesh\": [{\"axis\": \"dp\", \"size\": " +
                     n + "}], \"groups\": [" + group +
                     "]],\n\"ops\": [\"forward_1\", \"/reduce/Gradients_2\", "
                     "{\"name\": \"gather\", \"class\": \"AllGather\"}, "
                     "\"odd\"], \"libraries\": [], \"fingerprints\": "
                     "{\"model\": \"" +
                     model + "\", \"plan\": \"plan-" + n +
                     "\"},\n\"tensors\": [\n";
  text += tensor("x", "input", "f32", "[4, 6]", X, two);
  text += tensor("y", "label", "f32", "[4]", Y, one);
  text += tensor("valid", "valid", "i1", "[4]", Valid, one);
  text += tensor("rng", "rng", "i64", "[3]", Rng, "");
  text += tensor("step", "step", "i64", "[]", Step, "");
  text += tensor("w", "parameter", "f32", "[6]", W,
                 ", \"init\": {\"kind\": \"normal\", \"std\": 0.5, \"mean\": "
                 "0}, \"checkpoint\": true, \"alias\": \"w.tied\"");
  text += tensor("momentum/w", "state", "f32", "[6]", Momentum,
                 one + ", \"init\": {\"kind\": \"zeros\"}, \"checkpoint\": "
                       "true");
  text += tensor("loss", "loss", "f32", "[]", Loss, "");
  text += tensor("lr", "lr", "f32", "[]", Lr, "");
  text += tensor("weight_sum", "weight_sum", "f32", "[]", WeightSum, "");
  text.resize(text.size() - 2);
  return text + "], \"data\": {\"kind\": \"samples\", \"file\": "
                "\"data.safetensors\", \"shuffle\": true}, \"job_directory\": "
                "\"/nowhere\", \"model_directory\": \"/nowhere\"}";
}

} // namespace

const EspalierProgram &fakeProgram(int32_t ranks, const std::string &model) {
  static std::string metadata;
  static std::vector<int32_t> classes;
  static const EspalierClass only = {first, accumulate, update, ArenaBytes};
  static EspalierProgram program;
  metadata = metadataText(ranks, model);
  classes.assign(static_cast<size_t>(ranks), 0);
  program = {ESPALIER_ABI_VERSION, ranks,           &only, 1,
             classes.data(),       metadata.c_str()};
  return program;
}

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/espalier-test-XXXXXX";
  path = mkdtemp(name);
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path); }

int startTraining(const EspalierProgram &program,
                  const std::vector<std::string> &arguments,
                  const std::string &outputFile) {
  pid_t pid = fork();
  if (pid != 0)
    return pid;
  int output =
      open((outputFile + ".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  int errors =
      open((outputFile + ".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  std::vector<std::string> texts = {"train"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char *> pointers;
  for (std::string &text : texts)
    pointers.push_back(text.data());
  int status = runtime::train(program, static_cast<int>(pointers.size()),
                              pointers.data());
  std::fflush(stdout);
  _exit(status);
}

RunResult runTraining(const EspalierProgram &program,
                      const std::vector<std::string> &arguments) {
  TemporaryFolder folder;
  int pid = startTraining(program, arguments, folder / "run");
  int ending = 0;
  waitpid(pid, &ending, 0);
  RunResult run;
  run.status = WIFEXITED(ending) ? WEXITSTATUS(ending) : -WTERMSIG(ending);
  run.output = readText(folder / "run.out");
  run.errors = readText(folder / "run.err");
  return run;
}

void writeSafetensors(const std::string &path,
                      const std::vector<FileTensor> &tensors) {
  std::string header = "{", data;
  for (const FileTensor &tensor : tensors) {
    std::string shape;
    for (int64_t extent : tensor.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name +
              "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" + shape +
              "],\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data += tensor.bytes;
    header += std::to_string(data.size()) + "]}";
  }
  header += "}";
  uint64_t length = header.size();
  writeText(path, std::string(reinterpret_cast<const char *>(&length), 8) +
                      header + data);
}

void writeFakeData(const std::string &path, int64_t samples) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < samples; ++i) {
    float sum = 0;
    for (int64_t j = 0; j < features; ++j) {
      auto value = static_cast<float>((i * 7 + j * 13) % 11) / 11.0f - 0.5f;
      x.push_back(value);
      sum += value * static_cast<float>(j);
    }
    y.push_back(sum);
  }
  auto bytes = [](const std::vector<float> &values) {
    return std::string(reinterpret_cast<const char *>(values.data()),
                       values.size() * sizeof(float));
  };
  writeSafetensors(path, {{"x", "F32", {samples, features}, bytes(x)},
                          {"y", "F32", {samples}, bytes(y)}});
}

std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void writeText(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

} // namespace espalier::test
