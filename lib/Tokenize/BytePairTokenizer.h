//===- BytePairTokenizer.h - Byte-level BPE ---------------------*- C++ -*-===//

#ifndef ESPALIER_LIB_TOKENIZE_BYTEPAIRTOKENIZER_H
#define ESPALIER_LIB_TOKENIZE_BYTEPAIRTOKENIZER_H

#include "espalier/Tokenize/Tokenizer.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <array>

#include "Words.h"

namespace espalier {

/// What a vocabulary's file says. Tokens are given by the bytes they stand for.
struct Vocabulary {
  static constexpr uint32_t kNone = UINT32_MAX; // is no token
  struct Merge {
    uint32_t rank; // the lowest goes first
    uint32_t token;
  };

  llvm::StringMap<uint32_t> tokens;
  llvm::DenseMap<uint64_t, Merge> merges; // by first << 32 | second
  /// Found in the text before words are cut.
  std::vector<std::pair<std::string, uint32_t>> added;
  std::vector<WordPattern> patterns; // each cuts what the one before left
  bool prefixSpace = false; // the text starts with a space, or is given one
  bool wholeWords = false;  // a word that is a token is not merged
};

class BytePairTokenizer : public Tokenizer {
public:
  explicit BytePairTokenizer(Vocabulary vocabulary,
                             std::vector<std::string> remarks);

  uint32_t vocabularySize() const override { return bytesOf.size(); }
  llvm::Error encode(llvm::StringRef text, Sink sink) override;
  std::string decode(llvm::ArrayRef<uint32_t> tokens) const override;

private:
  using Tokens = std::vector<uint32_t>;

  /// The added token that `text` starts with, the longest; or null.
  const std::pair<std::string, uint32_t> *addedAt(llvm::StringRef text) const;
  /// Text without added tokens.
  llvm::Error encodePlain(llvm::StringRef text, Sink sink);
  /// Cuts by the patterns from `level` on.
  llvm::Error encodeWords(llvm::StringRef text, size_t level, Sink sink);
  llvm::Error encodeWord(llvm::StringRef word, Sink sink);
  void merge(Tokens &tokens) const;

  Vocabulary vocabulary;
  std::array<uint32_t, 256> ofByte;
  llvm::BitVector startsAdded; // bytes that an added token starts with
  std::vector<std::string> bytesOf;
  llvm::StringMap<Tokens> cache; // of words
};

} // namespace espalier

#endif // ESPALIER_LIB_TOKENIZE_BYTEPAIRTOKENIZER_H
