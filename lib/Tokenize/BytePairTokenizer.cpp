//===- BytePairTokenizer.cpp - Byte-level BPE -----------------------------===//

#include "BytePairTokenizer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ConvertUTF.h"

#include <queue>

using namespace llvm;
using namespace espalier;

static constexpr size_t kLongestCachedWord = 64; // bytes
static constexpr size_t kLargestCache = 1 << 20; // words

BytePairTokenizer::BytePairTokenizer(Vocabulary given,
                                     std::vector<std::string> remarks)
    : vocabulary(std::move(given)), startsAdded(256) {
  remarkList = std::move(remarks);
  auto name = [&](StringRef bytes, uint32_t token) {
    if (token >= bytesOf.size())
      bytesOf.resize(size_t(token) + 1);
    bytesOf[token] = bytes.str();
  };
  for (const auto &entry : vocabulary.tokens)
    name(entry.getKey(), entry.second);
  for (const auto &[content, token] : vocabulary.added) {
    name(content, token);
    startsAdded.set(uint8_t(content.front()));
  }
  llvm::sort(vocabulary.added, [](const auto &a, const auto &b) {
    return std::pair(b.first.size(), a.first) <
           std::pair(a.first.size(), b.first);
  });
  for (unsigned byte = 0; byte < 256; ++byte) {
    char character = char(byte);
    auto found = vocabulary.tokens.find(StringRef(&character, 1));
    ofByte[byte] =
        found == vocabulary.tokens.end() ? Vocabulary::kNone : found->second;
  }
}

const std::pair<std::string, uint32_t> *
BytePairTokenizer::addedAt(StringRef text) const {
  if (!startsAdded.test(uint8_t(text.front())))
    return nullptr;
  auto found = find_if(vocabulary.added, [&](const auto &entry) {
    return text.starts_with(entry.first);
  });
  return found == vocabulary.added.end() ? nullptr : &*found;
}

Error BytePairTokenizer::encode(StringRef text, Sink sink) {
  const UTF8 *begin = text.bytes_begin();
  if (!isLegalUTF8String(&begin, text.bytes_end()))
    return createStringError("expects UTF-8 text, but byte %zu is none",
                             size_t(begin - text.bytes_begin()));
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    const auto *added = addedAt(text.substr(i));
    if (!added) {
      ++i;
      continue;
    }
    if (Error error = encodePlain(text.slice(start, i), sink))
      return error;
    sink(added->second);
    start = i += added->first.size();
  }
  return encodePlain(text.substr(start), sink);
}

Error BytePairTokenizer::encodePlain(StringRef text, Sink sink) {
  if (text.empty())
    return Error::success();
  if (vocabulary.prefixSpace && !text.starts_with(" "))
    return encodeWords((" " + text).str(), 0, sink);
  return encodeWords(text, 0, sink);
}

Error BytePairTokenizer::encodeWords(StringRef text, size_t level, Sink sink) {
  if (level == vocabulary.patterns.size())
    return encodeWord(text, sink);
  while (!text.empty()) {
    size_t size = firstWord(text, vocabulary.patterns[level]);
    if (Error error = encodeWords(text.take_front(size), level + 1, sink))
      return error;
    text = text.drop_front(size);
  }
  return Error::success();
}

Error BytePairTokenizer::encodeWord(StringRef word, Sink sink) {
  auto found = cache.find(word);
  if (found != cache.end()) {
    sink(found->second);
    return Error::success();
  }
  Tokens tokens;
  auto whole = vocabulary.wholeWords ? vocabulary.tokens.find(word)
                                     : vocabulary.tokens.end();
  if (whole != vocabulary.tokens.end()) {
    tokens.push_back(whole->second);
  } else {
    for (uint8_t byte : word.bytes()) {
      if (ofByte[byte] == Vocabulary::kNone)
        return createStringError(
            "byte 0x%02x of the text is no token of the vocabulary", byte);
      tokens.push_back(ofByte[byte]);
    }
    merge(tokens);
  }
  sink(tokens);
  if (word.size() <= kLongestCachedWord) {
    if (cache.size() >= kLargestCache)
      cache.clear();
    cache[word] = std::move(tokens);
  }
  return Error::success();
}

/// Merges neighbours by rank, then from the left. A queue of candidates over a
/// linked list keeps a word of n bytes at n log n.
void BytePairTokenizer::merge(Tokens &tokens) const {
  struct Candidate {
    uint32_t rank, position, first, second;
    bool operator<(const Candidate &other) const {
      return std::tie(other.rank, other.position) < std::tie(rank, position);
    }
  };
  uint32_t size = tokens.size();
  std::vector<uint32_t> next(size), previous(size);
  for (uint32_t i = 0; i < size; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1; // none: more than any position
  }
  std::priority_queue<Candidate> queue;
  auto consider = [&](uint32_t i) {
    if (i >= size || next[i] >= size)
      return;
    uint32_t first = tokens[i], second = tokens[next[i]];
    auto found = vocabulary.merges.find(uint64_t(first) << 32 | second);
    if (found != vocabulary.merges.end())
      queue.push({found->second.rank, i, first, second});
  };
  for (uint32_t i = 0; i < size; ++i)
    consider(i);
  while (!queue.empty()) {
    Candidate top = queue.top();
    queue.pop();
    uint32_t i = top.position, j = next[i];
    if (tokens[i] != top.first || j >= size || tokens[j] != top.second)
      continue; // merged otherwise meanwhile
    tokens[i] = vocabulary.merges.find(uint64_t(top.first) << 32 | top.second)
                    ->second.token;
    tokens[j] = Vocabulary::kNone;
    next[i] = next[j];
    if (next[j] < size)
      previous[next[j]] = i;
    consider(previous[i]);
    consider(i);
  }
  llvm::erase(tokens, Vocabulary::kNone);
}

std::string BytePairTokenizer::decode(ArrayRef<uint32_t> tokens) const {
  std::string text;
  for (uint32_t token : tokens)
    if (token < bytesOf.size())
      text += bytesOf[token];
  return text;
}
