//===- YamlTree.h - YAML files of unknown origin ----------------*- C++ -*-===//
//
// Reads a YAML file into a tree whose nodes know their place, and reads typed
// values from it. All mistakes of a file are collected and told at once:
//
//   job.yaml:7:5: key 'train.lrr' is not known; the nearest is 'lr'
//
//   Messages messages;
//   if (auto root = parseYaml(text, "job.yaml", messages)) {
//     YamlReader reader(messages, "job.yaml");
//     reader.fields(*root, "", {{"model", true, [&](const YamlNode &node) {
//       model = reader.text(node, "model");
//     }}});
//   }
//
// What a hostile file could use is refused: aliases, tags, explicit keys,
// several documents, more than 1 MiB, nesting deeper than 64.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_SUPPORT_YAMLTREE_H
#define ESPALIER_SUPPORT_YAMLTREE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace espalier {

/// What is wrong with an input, a line each, in the order found. Keeps the
/// first hundred.
class Messages {
public:
  void add(std::string message) {
    if (lines.size() < 100)
      lines.push_back(std::move(message));
  }
  bool empty() const { return lines.empty(); }
  const std::vector<std::string> &all() const { return lines; }
  /// All of them, a line each.
  std::string text() const;

private:
  std::vector<std::string> lines;
};

struct YamlNode {
  enum class Kind { Null, Scalar, Sequence, Mapping } kind = Kind::Null;
  unsigned line = 0, column = 0; // from 1
  std::string scalar;
  bool quoted = false;         // a scalar that is text whatever it looks like
  std::vector<YamlNode> items; // of a sequence; the values of a mapping
  std::vector<YamlNode> keys;  // of a mapping, scalars, one for each value

  bool isMapping() const { return kind == Kind::Mapping; }
  bool isSequence() const { return kind == Kind::Sequence; }
  bool isScalar() const { return kind == Kind::Scalar; }
};

/// Parses one document. Returns nothing, with messages, where it cannot.
std::optional<YamlNode> parseYaml(llvm::StringRef text, llvm::StringRef file,
                                  Messages &messages);

/// Reads a file and parses it.
std::optional<YamlNode> readYamlFile(llvm::StringRef path, Messages &messages);

/// Reads typed values; each method adds a message and returns a default where
/// the node does not hold what is asked for. `path` is the key, as in
/// 'train.lr'.
class YamlReader {
public:
  struct Field {
    llvm::StringRef key;
    bool required;
    std::function<void(const YamlNode &, const std::string &path)> read;
  };

  YamlReader(Messages &messages, llvm::StringRef file)
      : messages(messages), file(file) {}

  /// Reads a mapping by a table of its keys. Unknown and doubled keys and
  /// missing required ones are errors.
  void fields(const YamlNode &node, const std::string &path,
              llvm::ArrayRef<Field> table);

  std::string text(const YamlNode &node, const std::string &path);
  /// One of `choices`.
  std::string choice(const YamlNode &node, const std::string &path,
                     llvm::ArrayRef<llvm::StringRef> choices);
  bool boolean(const YamlNode &node, const std::string &path);
  int64_t integer(const YamlNode &node, const std::string &path, int64_t least,
                  int64_t most = INT64_MAX);
  /// A number of the interval [least, most]; `open`: without its ends.
  double number(const YamlNode &node, const std::string &path, double least,
                double most, bool open = false);
  std::vector<std::string> texts(const YamlNode &node, const std::string &path);

  void error(const YamlNode &node, const std::string &path,
             const std::string &what);
  bool expectSequence(const YamlNode &node, const std::string &path);
  bool expectMapping(const YamlNode &node, const std::string &path);

private:
  Messages &messages;
  std::string file;
};

/// The one of `names` that is nearest to `name` by edit distance, or "".
llvm::StringRef nearestName(llvm::StringRef name,
                            llvm::ArrayRef<llvm::StringRef> names);

} // namespace espalier

#endif // ESPALIER_SUPPORT_YAMLTREE_H
