//===- Job.cpp - What to train, and on what -------------------------------===//

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>

#include "JobReader.h"

using namespace llvm;
using namespace espalier;

std::string Job::resolve(StringRef file) const {
  if (sys::path::is_absolute(file))
    return file.str();
  SmallString<128> path(directory);
  sys::path::append(path, file);
  return path.str().str();
}

//===----------------------------------------------------------------------===//
// Fields that store what they read
//===----------------------------------------------------------------------===//

JobReader::Field JobReader::textField(StringRef key, bool required,
                                      std::string &target) {
  return {key, required,
          [this, &target](const YamlNode &n, const std::string &p) {
            target = yaml.text(n, p);
          }};
}

JobReader::Field JobReader::boolField(StringRef key, bool &target) {
  return {key, false, [this, &target](const YamlNode &n, const std::string &p) {
            target = yaml.boolean(n, p);
          }};
}

JobReader::Field JobReader::numberField(StringRef key, bool required,
                                        double &target, double least,
                                        double most, bool open) {
  return {key, required,
          [=, this, &target](const YamlNode &n, const std::string &p) {
            target = yaml.number(n, p, least, most, open);
          }};
}

JobReader::Field JobReader::textsField(StringRef key,
                                       std::vector<std::string> &target) {
  return {key, false, [this, &target](const YamlNode &n, const std::string &p) {
            target = yaml.texts(n, p);
          }};
}

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

void JobReader::readRoot(const YamlNode &node) {
  auto call = [this](auto method) {
    return [this, method](const YamlNode &n, const std::string &p) {
      (this->*method)(n, p);
    };
  };
  job.batchIsAuto = true; // unless dims says otherwise
  yaml.fields(node, "",
              {textField("model", true, job.model),
               {"dims", false, call(&JobReader::readDims)},
               {"train", true, call(&JobReader::readTrain)},
               {"data", false, call(&JobReader::readData)},
               {"cluster", true, call(&JobReader::readCluster)},
               {"layout", false, call(&JobReader::readLayout)},
               {"shardings", false, call(&JobReader::readShardings)},
               {"memory", false, call(&JobReader::readMemory)}});
}

void JobReader::readDims(const YamlNode &node, const std::string &path) {
  if (!yaml.expectMapping(node, path))
    return;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string &name = node.keys[i].scalar;
    std::string full = path + "." + name;
    const YamlNode &value = node.items[i];
    bool isBatch = name == "batch";
    if (isBatch && value.isScalar() && value.scalar == "auto")
      continue;
    if (isBatch)
      job.batchIsAuto = false;
    if (!job.dims.emplace(name, yaml.integer(value, full, 1, int64_t(1) << 40))
             .second)
      yaml.error(node.keys[i], full, "is given twice");
  }
}

void JobReader::readData(const YamlNode &node, const std::string &path) {
  DataJob &data = job.data.emplace();
  std::string kind;
  for (size_t i = 0; i < node.keys.size(); ++i)
    if (node.keys[i].scalar == "kind")
      kind = node.items[i].scalar;
  Field kindField = {"kind", true,
                     [&](const YamlNode &n, const std::string &p) {
                       yaml.choice(n, p, {"tokens", "samples"});
                     }};
  if (kind == "samples") {
    data.kind = DataJob::Kind::Samples;
    yaml.fields(node, path,
                {kindField, textField("file", true, data.file),
                 boolField("shuffle", data.shuffle)});
    return;
  }
  data.kind = DataJob::Kind::Tokens;
  yaml.fields(node, path,
              {kindField,
               textField("file", true, data.file),
               {"dtype", false,
                [&](const YamlNode &n, const std::string &p) {
                  data.dtype = yaml.choice(n, p, {"uint16", "uint32"});
                }},
               textField("input", true, data.input),
               textField("labels", true, data.labels)});
}

void JobReader::readCluster(const YamlNode &node, const std::string &path) {
  ClusterJob &cluster = job.cluster;
  auto count = [this](StringRef key, int64_t &target) -> Field {
    return {key, false,
            [this, &target](const YamlNode &n, const std::string &p) {
              target = yaml.integer(n, p, 1, 1 << 24);
            }};
  };
  yaml.fields(node, path,
              {textField("device", true, cluster.device),
               count("nodes", cluster.nodes),
               count("devices_per_node", cluster.devicesPerNode),
               {"inter_node_gbit_per_s", false,
                [&](const YamlNode &n, const std::string &p) {
                  cluster.interNodeGbitPerSecond =
                      yaml.number(n, p, 0, HUGE_VAL, /*open=*/true);
                }}});
}

void JobReader::readZero(const YamlNode &node, const std::string &path) {
  LayoutJob &layout = job.layout;
  if (!node.isMapping()) {
    layout.zeroStage = yaml.integer(node, path, 0, 3);
    return;
  }
  yaml.fields(node, path,
              {{"stage", true,
                [&](const YamlNode &n, const std::string &p) {
                  layout.zeroStage = yaml.integer(n, p, 0, 3);
                }},
               {"group", false, [&](const YamlNode &n, const std::string &p) {
                  layout.zeroGroup = yaml.integer(n, p, 1, 1 << 24);
                }}});
}

void JobReader::readTensorDegrees(const YamlNode &node,
                                  const std::string &path) {
  std::vector<int64_t> degrees;
  if (!node.isSequence())
    degrees.push_back(yaml.integer(node, path, 1, 1 << 24));
  else if (node.items.empty() || node.items.size() > 3)
    yaml.error(node, path, "expects one to three degrees");
  else
    for (const YamlNode &item : node.items)
      degrees.push_back(yaml.integer(item, path, 1, 1 << 24));
  job.layout.tensor = degrees;
}

void JobReader::readLayout(const YamlNode &node, const std::string &path) {
  LayoutJob &layout = job.layout;
  layout.line = node.line;
  if (node.isScalar()) {
    yaml.choice(node, path, {"auto"});
    return;
  }
  layout.isAuto = false;
  auto degree = [this, &layout](StringRef key) -> Field {
    return {key, false,
            [this, &layout, key](const YamlNode &n, const std::string &p) {
              if (!(n.isScalar() && n.scalar == "auto"))
                layout.degrees[key.str()] = yaml.integer(n, p, 1, 1 << 24);
            }};
  };
  yaml.fields(
      node, path,
      {degree("dp"),
       degree("pp"),
       degree("vpp"),
       degree("cp"),
       degree("ep"),
       {"tp", false,
        [this](const YamlNode &n, const std::string &p) {
          readTensorDegrees(n, p);
        }},
       {"zero", false,
        [this](const YamlNode &n, const std::string &p) { readZero(n, p); }},
       {"sequence_parallel", false,
        [&](const YamlNode &n, const std::string &p) {
          layout.sequenceParallel = yaml.boolean(n, p);
        }},
       {"recompute", false,
        [&](const YamlNode &n, const std::string &p) {
          layout.recompute = yaml.choice(n, p, {"none", "selective", "full"});
        }},
       {"schedule", false, [&](const YamlNode &n, const std::string &p) {
          layout.schedule = yaml.choice(
              n, p, {"gpipe", "1f1b", "interleaved", "zero_bubble", "v"});
        }}});
}

void JobReader::readShardings(const YamlNode &node, const std::string &path) {
  if (!yaml.expectMapping(node, path))
    return;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    std::string full = path + "." + node.keys[i].scalar;
    std::vector<std::vector<std::string>> dims;
    if (yaml.expectSequence(node.items[i], full))
      for (const YamlNode &dim : node.items[i].items)
        dims.push_back(yaml.texts(dim, full));
    job.shardings.emplace_back(node.keys[i].scalar, dims);
  }
}

void JobReader::readMemory(const YamlNode &node, const std::string &path) {
  yaml.fields(node, path,
              {{"reserve", false,
                [&](const YamlNode &n, const std::string &p) {
                  YamlNode number = n;
                  if (!n.isScalar() || !StringRef(n.scalar).ends_with("%"))
                    return yaml.error(n, p, "expects a percentage, as 5%");
                  number.scalar.pop_back();
                  job.memory.reserve = yaml.number(number, p, 0, 99) / 100;
                }},
               {"limit", false, [&](const YamlNode &n, const std::string &p) {
                  static const std::pair<StringRef, double> units[] = {
                      {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
                  for (auto [unit, bytes] : units)
                    if (n.isScalar() && StringRef(n.scalar).ends_with(unit)) {
                      YamlNode number = n;
                      number.scalar.resize(n.scalar.size() - 2);
                      job.memory.limit =
                          bytes * yaml.number(number, p, 0, 1e9, /*open=*/true);
                      return;
                    }
                  yaml.error(n, p,
                             "expects a size in KB, MB, GB or TB, as 60GB");
                }}});
}

//===----------------------------------------------------------------------===//
// The whole job
//===----------------------------------------------------------------------===//

std::optional<Job> espalier::parseJob(StringRef text, StringRef path,
                                      Messages &messages) {
  auto tree = parseYaml(text, path, messages);
  if (!tree)
    return std::nullopt;
  Job job;
  job.path = path.str();
  job.directory = sys::path::parent_path(path).str();
  if (job.directory.empty())
    job.directory = ".";
  JobReader(job, messages, path).readRoot(*tree);
  if (job.data && job.data->kind == DataJob::Kind::Tokens &&
      !job.dims.count("sequence") && messages.empty())
    messages.add((path + ": key 'dims.sequence': is missing: windows of tokens "
                         "have that length")
                     .str());
  if (!messages.empty())
    return std::nullopt;
  return job;
}

std::optional<Job> espalier::readJob(StringRef path, Messages &messages) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    messages.add((path + ": " + buffer.getError().message()).str());
    return std::nullopt;
  }
  return parseJob((*buffer)->getBuffer(), path, messages);
}
