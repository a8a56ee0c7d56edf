//===- PlanFile.cpp - A plan, written and read ----------------------------===//

#include "espalier/Job/PlanFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace espalier;

static constexpr int64_t kVersion = 1;
static constexpr int64_t kMostElements = int64_t(1) << 48;

//===----------------------------------------------------------------------===//
// Kinds of tensors
//===----------------------------------------------------------------------===//

/// The name with each number between dots replaced: h.0.attn.weight is
/// h.*.attn.weight.
static std::string kindOf(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef &part : parts)
    if (!part.empty() && all_of(part, isDigit))
      part = "*";
  return join(parts, ".");
}

void PlanFile::addTensor(
    const std::string &name, const std::vector<int64_t> &shape,
    const std::vector<std::vector<std::string>> &sharding) {
  PlanTensor tensor{kindOf(name), shape, sharding};
  if (!is_contained(tensors, tensor))
    tensors.push_back(std::move(tensor));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// In double quotes, which need the fewest exceptions.
static std::string quoted(StringRef text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

static void writeTensor(const PlanTensor &tensor, raw_ostream &os) {
  os << "  - {name: " << quoted(tensor.name) << ", shape: [";
  interleaveComma(tensor.shape, os);
  os << "], sharding: [";
  interleaveComma(tensor.sharding, os, [&](ArrayRef<std::string> axes) {
    os << "[";
    interleaveComma(axes, os);
    os << "]";
  });
  os << "]}\n";
}

void espalier::writePlan(const PlanFile &plan, raw_ostream &os) {
  os << "version: " << kVersion << "\n"
     << "fingerprints: {model: " << quoted(plan.modelFingerprint) << "}\n"
     << "mesh:\n";
  for (const PlanAxis &axis : plan.mesh)
    os << "  - {axis: " << axis.name << ", size: " << axis.size
       << ", link: " << axis.link << "}\n";
  os << "layout: {";
  interleaveComma(plan.layout, os, [&](const auto &pin) {
    os << pin.first << ": " << pin.second;
  });
  os << "}\n"
     << "batch: {global: " << plan.globalBatch << ", micro: " << plan.microBatch
     << ", micro_batches: " << plan.microBatches << "}\n"
     << "libraries: {matrix_products: " << plan.matrixProducts << "}\n"
     << "tensors:\n";
  for (const PlanTensor &tensor : plan.tensors)
    writeTensor(tensor, os);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

class PlanReader {
public:
  using Field = YamlReader::Field;

  PlanReader(PlanFile &plan, Messages &messages, StringRef file)
      : plan(plan), yaml(messages, file) {}

  void readRoot(const YamlNode &node) {
    yaml.fields(
        node, "",
        {{"version", true,
          [&](const YamlNode &n, const std::string &p) {
            yaml.integer(n, p, kVersion, kVersion);
          }},
         {"fingerprints", true,
          [&](const YamlNode &n, const std::string &p) {
            yaml.fields(n, p, {textField("model", plan.modelFingerprint)});
          }},
         {"mesh", true,
          [&](const YamlNode &n, const std::string &p) { readMesh(n, p); }},
         {"layout", true,
          [&](const YamlNode &n, const std::string &p) { readLayout(n, p); }},
         {"batch", true,
          [&](const YamlNode &n, const std::string &p) {
            yaml.fields(n, p,
                        {sizeField("global", plan.globalBatch),
                         sizeField("micro", plan.microBatch),
                         sizeField("micro_batches", plan.microBatches)});
          }},
         {"libraries", true,
          [&](const YamlNode &n, const std::string &p) {
            yaml.fields(n, p,
                        {{"matrix_products", true,
                          [&](const YamlNode &m, const std::string &q) {
                            plan.matrixProducts = yaml.choice(m, q, {"oneDNN"});
                          }}});
          }},
         {"tensors", true, [&](const YamlNode &n, const std::string &p) {
            readTensors(n, p);
          }}});
  }

private:
  Field textField(StringRef key, std::string &target) {
    return {key, true,
            [this, &target](const YamlNode &n, const std::string &p) {
              target = yaml.text(n, p);
            }};
  }

  Field sizeField(StringRef key, int64_t &target) {
    return {key, true,
            [this, &target](const YamlNode &n, const std::string &p) {
              target = yaml.integer(n, p, 1, kMostElements);
            }};
  }

  void readMesh(const YamlNode &node, const std::string &path) {
    if (!yaml.expectSequence(node, path))
      return;
    for (const YamlNode &item : node.items) {
      PlanAxis axis;
      yaml.fields(item, path,
                  {textField("axis", axis.name), sizeField("size", axis.size),
                   textField("link", axis.link)});
      plan.mesh.push_back(axis);
    }
  }

  void readLayout(const YamlNode &node, const std::string &path) {
    if (!yaml.expectMapping(node, path))
      return;
    for (auto [key, value] : zip(node.keys, node.items)) {
      std::string full = path + "." + key.scalar;
      if (!plan.layout
               .emplace(key.scalar, yaml.integer(value, full, 0, 1 << 24))
               .second)
        yaml.error(key, full, "is given twice");
    }
  }

  void readTensors(const YamlNode &node, const std::string &path) {
    if (!yaml.expectSequence(node, path))
      return;
    for (const YamlNode &item : node.items) {
      PlanTensor tensor;
      yaml.fields(
          item, path,
          {textField("name", tensor.name),
           {"shape", true,
            [&](const YamlNode &n, const std::string &p) {
              if (yaml.expectSequence(n, p))
                for (const YamlNode &size : n.items)
                  tensor.shape.push_back(
                      yaml.integer(size, p, 0, kMostElements));
            }},
           {"sharding", true, [&](const YamlNode &n, const std::string &p) {
              if (yaml.expectSequence(n, p))
                for (const YamlNode &axes : n.items)
                  tensor.sharding.push_back(yaml.texts(axes, p));
            }}});
      plan.tensors.push_back(tensor);
    }
  }

  PlanFile &plan;
  YamlReader yaml;
};

} // namespace

std::optional<PlanFile> espalier::parsePlan(StringRef text, StringRef path,
                                            Messages &messages) {
  auto tree = parseYaml(text, path, messages);
  if (!tree)
    return std::nullopt;
  PlanFile plan;
  PlanReader(plan, messages, path).readRoot(*tree);
  if (!messages.empty())
    return std::nullopt;
  return plan;
}

std::optional<PlanFile> espalier::readPlan(StringRef path, Messages &messages) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    messages.add((path + ": " + buffer.getError().message()).str());
    return std::nullopt;
  }
  return parsePlan((*buffer)->getBuffer(), path, messages);
}
