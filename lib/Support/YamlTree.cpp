//===- YamlTree.cpp - YAML files of unknown origin ------------------------===//

#include "espalier/Support/YamlTree.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <set>

using namespace llvm;
using namespace espalier;

static constexpr size_t kLargestFile = 1 << 20; // bytes
static constexpr int kDeepestNesting = 64;

std::string Messages::text() const { return join(lines, "\n"); }

/// Text from a file, fit for a message: no control characters, not too long.
static std::string shown(StringRef text) {
  std::string escaped;
  raw_string_ostream os(escaped);
  printEscapedString(text.take_front(100), os);
  return text.size() > 100 ? escaped + "..." : escaped;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// Whether brackets, or marks of nested sequences on one line, nest deeper than
/// a parser that calls itself should be given.
static bool nestsTooDeep(StringRef text) {
  int depth = 0, marks = 0;
  for (auto [i, c] : enumerate(text)) {
    if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      depth = std::max(0, depth - 1);
    else if (c == '\n')
      marks = 0;
    else if ((c == '-' || c == '?' || c == ':') && i + 1 < text.size() &&
             (text[i + 1] == ' ' || text[i + 1] == '\t'))
      ++marks;
    if (depth > kDeepestNesting || marks > kDeepestNesting * 8)
      return true;
  }
  // Blocks nest by indentation: deeper lines than this nest too deep.
  size_t indent = 0;
  for (StringRef rest = text; !rest.empty();) {
    auto [line, next] = rest.split('\n');
    indent = std::max(indent, line.size() - line.ltrim(' ').size());
    rest = next;
  }
  return indent > kDeepestNesting * 8;
}

namespace {

/// Turns LLVM's nodes, which can be read once and in order, into a tree.
class TreeBuilder {
public:
  TreeBuilder(SourceMgr &sources, StringRef text, StringRef file,
              Messages &messages)
      : sources(sources), text(text), file(file), messages(messages) {}

  std::optional<YamlNode> build(yaml::Node *node, int depth = 0) {
    YamlNode result;
    if (!node)
      return result;
    // After a mistake, nodes come from nowhere.
    const char *start = node->getSourceRange().Start.getPointer();
    if (start >= text.begin() && start <= text.end())
      std::tie(result.line, result.column) =
          sources.getLineAndColumn(node->getSourceRange().Start);
    if (depth > kDeepestNesting)
      return refuse(result, "is nested too deep");
    if (!node->getRawTag().empty())
      return refuse(result, "has a tag, which is not supported");
    if (!node->getAnchor().empty())
      return refuse(result, "has an anchor, which is not supported");
    if (auto *scalar = dyn_cast<yaml::ScalarNode>(node)) {
      SmallString<64> storage;
      result.kind = YamlNode::Kind::Scalar;
      result.quoted = scalar->getRawValue().starts_with("\"") ||
                      scalar->getRawValue().starts_with("'");
      result.scalar = scalar->getValue(storage).str();
      return result;
    }
    if (auto *block = dyn_cast<yaml::BlockScalarNode>(node)) {
      result.kind = YamlNode::Kind::Scalar;
      result.quoted = true;
      result.scalar = block->getValue().str();
      return result;
    }
    if (auto *sequence = dyn_cast<yaml::SequenceNode>(node))
      return buildSequence(*sequence, std::move(result), depth);
    if (auto *mapping = dyn_cast<yaml::MappingNode>(node))
      return buildMapping(*mapping, std::move(result), depth);
    if (isa<yaml::NullNode>(node))
      return result;
    return refuse(result, "is an alias, which is not supported");
  }

private:
  std::optional<YamlNode> refuse(const YamlNode &node, const char *what) {
    messages.add(file + ":" + std::to_string(node.line) + ":" +
                 std::to_string(node.column) + ": the value " + what);
    return std::nullopt;
  }

  std::optional<YamlNode> buildSequence(yaml::SequenceNode &sequence,
                                        YamlNode result, int depth) {
    result.kind = YamlNode::Kind::Sequence;
    for (yaml::Node &item : sequence) {
      auto child = build(&item, depth + 1);
      if (!child)
        return std::nullopt;
      result.items.push_back(std::move(*child));
    }
    return result;
  }

  std::optional<YamlNode> buildMapping(yaml::MappingNode &mapping,
                                       YamlNode result, int depth) {
    result.kind = YamlNode::Kind::Mapping;
    for (yaml::KeyValueNode &entry : mapping) {
      auto key = build(entry.getKey(), depth + 1);
      if (!key)
        return std::nullopt;
      auto value = build(entry.getValue(), depth + 1);
      if (!value)
        return std::nullopt;
      if (!key->isScalar())
        return refuse(*key, "is no name of a key");
      if (value->line == 0) {
        value->line = key->line;
        value->column = key->column;
      }
      result.keys.push_back(std::move(*key));
      result.items.push_back(std::move(*value));
    }
    return result;
  }

  SourceMgr &sources;
  StringRef text;
  std::string file;
  Messages &messages;
};

} // namespace

/// Whether more lines than two start with the mark of a document's start or
/// end, which LLVM's parser would take by calling itself.
static bool holdsManyDocuments(StringRef text) {
  int marks = 0;
  while (!text.empty() && marks <= 2) {
    marks += text.starts_with("---") || text.starts_with("...");
    text = text.split('\n').second;
  }
  return marks > 2;
}

static bool isUtf8(StringRef text) {
  const UTF8 *begin = text.bytes_begin();
  return isLegalUTF8String(&begin, text.bytes_end());
}

static bool isReadable(StringRef text, StringRef file, Messages &messages) {
  const char *what = nullptr;
  if (text.size() > kLargestFile)
    what = "is larger than 1 MiB";
  else if (text.contains('\0'))
    what = "holds a NUL character";
  else if (!isUtf8(text))
    what = "is no UTF-8 text";
  else if (nestsTooDeep(text))
    what = "is nested too deep";
  else if (holdsManyDocuments(text))
    what = "holds more than one document";
  if (what)
    messages.add((file + ": the file " + what).str());
  return !what;
}

std::optional<YamlNode> espalier::parseYaml(StringRef text, StringRef file,
                                            Messages &messages) {
  if (!isReadable(text, file, messages))
    return std::nullopt;
  SourceMgr sources;
  std::pair<StringRef, Messages *> context(file, &messages);
  sources.setDiagHandler(
      [](const SMDiagnostic &diagnostic, void *opaque) {
        auto [name, sink] =
            *static_cast<std::pair<StringRef, Messages *> *>(opaque);
        sink->add((name + ":" + Twine(diagnostic.getLineNo()) + ":" +
                   Twine(diagnostic.getColumnNo() + 1) +
                   ": not YAML: " + shown(diagnostic.getMessage()))
                      .str());
      },
      &context);
  yaml::Stream stream(text, sources, /*ShowColors=*/false);
  yaml::document_iterator document = stream.begin();
  if (document == stream.end() || stream.failed()) {
    if (messages.empty())
      messages.add((file + ": the file is empty").str());
    return std::nullopt;
  }
  auto tree =
      TreeBuilder(sources, text, file, messages).build(document->getRoot());
  if (!tree || stream.failed())
    return std::nullopt;
  if (++document != stream.end()) {
    messages.add((file + ": the file holds more than one document").str());
    return std::nullopt;
  }
  return stream.failed() ? std::nullopt : tree;
}

std::optional<YamlNode> espalier::readYamlFile(StringRef path,
                                               Messages &messages) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer) {
    messages.add((path + ": " + buffer.getError().message()).str());
    return std::nullopt;
  }
  return parseYaml((*buffer)->getBuffer(), path, messages);
}

//===----------------------------------------------------------------------===//
// Typed values
//===----------------------------------------------------------------------===//

StringRef espalier::nearestName(StringRef name, ArrayRef<StringRef> names) {
  StringRef nearest;
  unsigned best = UINT_MAX;
  for (StringRef candidate : names) {
    unsigned distance = name.take_front(100).edit_distance(candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

void YamlReader::error(const YamlNode &node, const std::string &path,
                       const std::string &what) {
  std::string place = file + ":" + std::to_string(node.line) + ":" +
                      std::to_string(node.column) + ": ";
  messages.add(place + (path.empty() ? "" : "key '" + path + "': ") + what);
}

/// What a node is, for a message.
static std::string describe(const YamlNode &node) {
  switch (node.kind) {
  case YamlNode::Kind::Null:
    return "nothing";
  case YamlNode::Kind::Scalar:
    return "'" + shown(node.scalar) + "'";
  case YamlNode::Kind::Sequence:
    return "a list";
  case YamlNode::Kind::Mapping:
    return "a mapping";
  }
  llvm_unreachable("all kinds are handled");
}

bool YamlReader::expectSequence(const YamlNode &node, const std::string &path) {
  if (node.isSequence())
    return true;
  error(node, path, "expects a list, but got " + describe(node));
  return false;
}

bool YamlReader::expectMapping(const YamlNode &node, const std::string &path) {
  if (node.isMapping())
    return true;
  error(node, path, "expects keys with values, but got " + describe(node));
  return false;
}

void YamlReader::fields(const YamlNode &node, const std::string &path,
                        ArrayRef<Field> table) {
  if (!expectMapping(node, path))
    return;
  auto full = [&](StringRef key) {
    return path.empty() ? key.str() : path + "." + key.str();
  };
  SmallVector<StringRef> known =
      map_to_vector(table, [](const Field &field) { return field.key; });
  std::set<std::string> seen;
  for (auto [key, value] : zip(node.keys, node.items)) {
    if (!seen.insert(key.scalar).second) {
      error(key, full(shown(key.scalar)), "is given twice");
      continue;
    }
    const Field *field =
        find_if(table, [&](const Field &f) { return f.key == key.scalar; });
    if (field == table.end()) {
      error(key, full(shown(key.scalar)),
            "is not known; the nearest is '" +
                nearestName(key.scalar, known).str() + "'");
      continue;
    }
    field->read(value, full(key.scalar));
  }
  for (const Field &field : table)
    if (field.required && !seen.count(field.key.str()))
      error(node, full(field.key), "is missing");
}

std::string YamlReader::text(const YamlNode &node, const std::string &path) {
  if (node.isScalar() && !node.scalar.empty())
    return node.scalar;
  error(node, path, "expects text, but got " + describe(node));
  return "";
}

std::string YamlReader::choice(const YamlNode &node, const std::string &path,
                               ArrayRef<StringRef> choices) {
  if (node.isScalar() && is_contained(choices, node.scalar))
    return node.scalar;
  error(node, path,
        "expects one of " + join(choices, ", ") + ", but got " +
            describe(node));
  return choices.front().str();
}

bool YamlReader::boolean(const YamlNode &node, const std::string &path) {
  if (node.isScalar() && !node.quoted) {
    if (node.scalar == "true")
      return true;
    if (node.scalar == "false")
      return false;
  }
  error(node, path, "expects true or false, but got " + describe(node));
  return false;
}

int64_t YamlReader::integer(const YamlNode &node, const std::string &path,
                            int64_t least, int64_t most) {
  int64_t value;
  if (node.isScalar() && !node.quoted &&
      !StringRef(node.scalar).getAsInteger(10, value)) {
    if (value >= least && value <= most)
      return value;
    error(node, path,
          "expects a whole number from " + std::to_string(least) +
              (most == INT64_MAX ? " on" : " to " + std::to_string(most)) +
              ", but got " + std::to_string(value));
    return least;
  }
  error(node, path, "expects a whole number, but got " + describe(node));
  return least;
}

double YamlReader::number(const YamlNode &node, const std::string &path,
                          double least, double most, bool open) {
  double value;
  bool parsed = node.isScalar() && !node.quoted &&
                !StringRef(node.scalar).getAsDouble(value) &&
                std::isfinite(value);
  if (!parsed) {
    error(node, path, "expects a number, but got " + describe(node));
    return least;
  }
  bool inside =
      open ? value > least && value < most : value >= least && value <= most;
  if (inside)
    return value;
  std::string range;
  raw_string_ostream os(range);
  os << "expects a number " << (open ? "above " : "from ") << least;
  if (std::isfinite(most))
    os << (open ? " and below " : " to ") << most;
  os << ", but got " << describe(node);
  error(node, path, range);
  return least;
}

std::vector<std::string> YamlReader::texts(const YamlNode &node,
                                           const std::string &path) {
  std::vector<std::string> list;
  if (!expectSequence(node, path))
    return list;
  for (const YamlNode &item : node.items)
    list.push_back(text(item, path));
  return list;
}
