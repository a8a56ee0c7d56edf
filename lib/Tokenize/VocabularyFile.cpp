//===- VocabularyFile.cpp - The JSON form of `tokenizers` -----------------===//

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <nlohmann/json.hpp>

#include "BytePairTokenizer.h"

using namespace llvm;
using namespace espalier;
using nlohmann::json;

static constexpr uint32_t kLargestToken = (1u << 24) - 1;
static constexpr size_t kLargestFile = 256 << 20; // bytes

namespace {

/// Where the text stops to be JSON.
struct ErrorPosition : nlohmann::json_sax<json> {
  size_t position = 0;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string &) override { return true; }
  bool string(std::string &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(std::string &) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t at, const std::string &,
                   const nlohmann::detail::exception &) override {
    position = at;
    return false;
  }
};

/// Reads one file; the first mistake ends it.
class Reader {
public:
  explicit Reader(StringRef file) : file(file.str()) {}

  Error read(const json &root);
  Vocabulary vocabulary;
  std::vector<std::string> remarks;

private:
  Error error(const Twine &what) const {
    return createStringError(file + ": " + what.str());
  }
  /// An error unless the key is absent or has its usual, harmless value.
  Error expectUnused(const json &model, const char *key) const;
  Error readModel(const json &model);
  Error readTokens(const json &tokens);
  Error readMerges(const json &merges);
  Error readMerge(const json &merge, uint32_t rank);
  Error readAdded(const json &added);
  Error readPreTokenizer(const json &node);
  Error readSplit(const json &node);
  Error readByteLevel(const json &node);

  std::string file;
  /// By the name in the file, where bytes are written as printable characters.
  StringMap<uint32_t> tokenOfName;
  bool isByteLevel = false;
};

} // namespace

static bool isNull(const json &object, const char *key) {
  auto found = object.find(key);
  return found == object.end() || found->is_null();
}

static bool isTrue(const json &object, const char *key, bool otherwise) {
  auto found = object.find(key);
  return found == object.end() || !found->is_boolean() ? otherwise
                                                       : found->get<bool>();
}

static std::string textOf(const json &object, const char *key) {
  auto found = object.find(key);
  return found == object.end() || !found->is_string()
             ? ""
             : found->get<std::string>();
}

static std::string shown(StringRef text) {
  std::string escaped;
  raw_string_ostream os(escaped);
  printEscapedString(text.take_front(100), os);
  return escaped;
}

//===----------------------------------------------------------------------===//
// Bytes as characters
//===----------------------------------------------------------------------===//

/// Byte-level vocabularies write a byte that is a printable character of
/// Latin-1 as that, and the others, in order, as the characters from U+0100 on.
static std::array<int, 0x144> makeByteOfCharacter() {
  std::array<int, 0x144> table;
  table.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= '!' && byte <= '~') ||
                     (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    table[printable ? byte : next++] = byte;
  }
  return table;
}

/// The bytes that a token's name stands for; nothing if it is no such name.
static std::optional<std::string> bytesOfName(StringRef name) {
  static const std::array<int, 0x144> byteOf = makeByteOfCharacter();
  std::string bytes;
  for (size_t i = 0; i < name.size(); ++i) {
    uint32_t code = uint8_t(name[i]);
    if (code >= 0x80) {
      if ((code & 0xe0) != 0xc0 || i + 1 == name.size())
        return std::nullopt;
      code = (code & 0x1f) << 6 | (uint8_t(name[++i]) & 0x3f);
    }
    if (code >= byteOf.size() || byteOf[code] < 0)
      return std::nullopt;
    bytes += char(byteOf[code]);
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Error Reader::readTokens(const json &tokens) {
  if (!tokens.is_object() || tokens.empty())
    return error("key 'model.vocab': expects names with their tokens");
  BitVector seen;
  for (const auto &[name, value] : tokens.items()) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kLargestToken)
      return error("key 'model.vocab': token '" + shown(name) +
                   "' expects a number from 0 to " + Twine(kLargestToken) +
                   ", but got " + value.dump());
    uint32_t token = value.get<uint32_t>();
    if (token >= seen.size())
      seen.resize(token + 1);
    if (seen.test(token))
      return error("key 'model.vocab': two names have the number " +
                   Twine(token) + ", one of them '" + shown(name) + "'");
    seen.set(token);
    tokenOfName[name] = token;
    // A name in other characters is a marker that no text contains.
    if (auto bytes = bytesOfName(name); bytes && !bytes->empty())
      vocabulary.tokens[*bytes] = token;
  }
  return Error::success();
}

Error Reader::readMerge(const json &merge, uint32_t rank) {
  std::string first, second;
  if (merge.is_string()) {
    auto [left, right] =
        StringRef(merge.get_ref<const std::string &>()).split(' ');
    first = left.str();
    second = right.str();
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    first = merge[0].get<std::string>();
    second = merge[1].get<std::string>();
  }
  auto wrong = [&](const Twine &what) {
    return error("key 'model.merges', entry " + Twine(rank) + ": " + what);
  };
  if (first.empty() || second.empty())
    return wrong("expects two names of tokens");
  for (const std::string &name : {first, second, first + second})
    if (!tokenOfName.count(name))
      return wrong("'" + shown(name) + "' is not in the vocabulary");
  uint64_t pair =
      uint64_t(tokenOfName[first]) << 32 | uint64_t(tokenOfName[second]);
  // Of a pair given twice the later entry counts, as in the library.
  vocabulary.merges[pair] = {rank, tokenOfName[first + second]};
  return Error::success();
}

Error Reader::readMerges(const json &merges) {
  if (!merges.is_array())
    return error("key 'model.merges': expects a list of pairs");
  uint32_t rank = 0;
  for (const json &merge : merges)
    if (Error wrong = readMerge(merge, rank++))
      return wrong;
  return Error::success();
}

Error Reader::expectUnused(const json &model, const char *key) const {
  auto found = model.find(key);
  if (found == model.end() || found->is_null() || *found == json(false) ||
      *found == json("") || *found == json(0.0))
    return Error::success();
  return error("key 'model." + Twine(key) +
               "': not supported: " + shown(found->dump()));
}

Error Reader::readModel(const json &model) {
  if (!model.is_object())
    return error(
        "expects a key 'model', as the `tokenizers` library writes it");
  // Old files leave the type out where it is plain by the keys.
  std::string type = isNull(model, "type") && !isNull(model, "merges")
                         ? "BPE"
                         : textOf(model, "type");
  if (type != "BPE")
    return error("key 'model.type': not supported: '" + shown(type) +
                 "'; supported is 'BPE'");
  for (const char *key : {"dropout", "continuing_subword_prefix",
                          "end_of_word_suffix", "byte_fallback"})
    if (Error wrong = expectUnused(model, key))
      return wrong;
  vocabulary.wholeWords = isTrue(model, "ignore_merges", false);
  if (isNull(model, "vocab") || isNull(model, "merges"))
    return error("key 'model': expects the keys 'vocab' and 'merges'");
  if (Error wrong = readTokens(model["vocab"]))
    return wrong;
  return readMerges(model["merges"]);
}

//===----------------------------------------------------------------------===//
// What is around the model
//===----------------------------------------------------------------------===//

Error Reader::readByteLevel(const json &node) {
  isByteLevel = true;
  vocabulary.prefixSpace |= isTrue(node, "add_prefix_space", true);
  if (isTrue(node, "use_regex", true))
    vocabulary.patterns.push_back({WordPattern::Kind::Gpt2, 0});
  return Error::success();
}

Error Reader::readSplit(const json &node) {
  std::string regex;
  if (auto pattern = node.find("pattern");
      pattern != node.end() && pattern->is_object())
    regex = textOf(*pattern, "Regex");
  auto pattern = findWordPattern(regex);
  if (!pattern)
    return error("key 'pre_tokenizer': not supported: the expression '" +
                 shown(regex) +
                 "'; supported are those of GPT-2, Llama 3 "
                 "and Qwen 2");
  // All of these match every character, so that what is between matches is
  // empty.
  std::string behavior = textOf(node, "behavior");
  bool invert = isTrue(node, "invert", false);
  bool isolates =
      (behavior == "Isolated" && !invert) || (behavior == "Removed" && invert);
  if (!isolates)
    return error("key 'pre_tokenizer': not supported: behavior '" +
                 shown(behavior) + "' of a split; supported is 'Isolated'");
  vocabulary.patterns.push_back(*pattern);
  return Error::success();
}

Error Reader::readPreTokenizer(const json &node) {
  std::string type = node.is_object() ? textOf(node, "type") : "";
  if (type == "ByteLevel")
    return readByteLevel(node);
  if (type == "Split" && !isByteLevel)
    return readSplit(node);
  return error("key 'pre_tokenizer': not supported: '" + shown(type) +
               "'; supported are ByteLevel, and a sequence of Split and "
               "ByteLevel");
}

Error Reader::readAdded(const json &added) {
  if (!added.is_array())
    return error("key 'added_tokens': expects a list");
  for (const json &entry : added) {
    std::string content = entry.is_object() ? textOf(entry, "content") : "";
    if (content.empty() || !entry.contains("id") ||
        !entry["id"].is_number_unsigned() ||
        entry["id"].get<uint64_t>() > kLargestToken)
      return error("key 'added_tokens': expects 'content' and 'id' of each");
    for (const char *flag : {"single_word", "lstrip", "rstrip"})
      if (isTrue(entry, flag, false))
        return error("key 'added_tokens': not supported: '" + Twine(flag) +
                     "' of '" + shown(content) + "'");
    vocabulary.added.emplace_back(content, entry["id"].get<uint32_t>());
  }
  return Error::success();
}

Error Reader::read(const json &root) {
  if (!root.is_object() || isNull(root, "model"))
    return error(
        "expects a key 'model', as the `tokenizers` library writes it");
  if (Error wrong = readModel(root["model"]))
    return wrong;
  if (!isNull(root, "normalizer"))
    return error("key 'normalizer': not supported: '" +
                 shown(textOf(root["normalizer"], "type")) + "'");
  if (isNull(root, "pre_tokenizer"))
    return error("key 'pre_tokenizer': expects ByteLevel, but got nothing");
  const json &pre = root["pre_tokenizer"];
  if (pre.is_object() && textOf(pre, "type") == "Sequence" &&
      pre.contains("pretokenizers") && pre["pretokenizers"].is_array()) {
    for (const json &node : pre["pretokenizers"])
      if (Error wrong = readPreTokenizer(node))
        return wrong;
  } else if (Error wrong = readPreTokenizer(pre)) {
    return wrong;
  }
  if (!isByteLevel)
    return error("key 'pre_tokenizer': not supported without ByteLevel");
  if (!isNull(root, "added_tokens"))
    if (Error wrong = readAdded(root["added_tokens"]))
      return wrong;
  std::string post = isNull(root, "post_processor")
                         ? ""
                         : textOf(root["post_processor"], "type");
  if (!post.empty() && post != "ByteLevel")
    remarks.push_back(file + ": the marks of post_processor '" + shown(post) +
                      "' are not added to the texts");
  return Error::success();
}

Expected<std::unique_ptr<Tokenizer>> espalier::parseVocabulary(StringRef text,
                                                               StringRef file) {
  json root = json::parse(text.begin(), text.end(), nullptr,
                          /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    ErrorPosition position;
    json::sax_parse(text.begin(), text.end(), &position);
    return createStringError(file.str() + ": not JSON at byte " +
                             std::to_string(position.position));
  }
  Reader reader(file);
  if (Error error = reader.read(root))
    return error;
  return std::make_unique<BytePairTokenizer>(std::move(reader.vocabulary),
                                             std::move(reader.remarks));
}

Expected<std::unique_ptr<Tokenizer>> espalier::readVocabulary(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return createStringError(path.str() + ": " + buffer.getError().message());
  if ((*buffer)->getBufferSize() > kLargestFile)
    return createStringError(path.str() + ": the file is larger than 256 MiB");
  return parseVocabulary((*buffer)->getBuffer(), path);
}
