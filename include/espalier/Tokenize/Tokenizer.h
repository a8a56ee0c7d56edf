//===- Tokenizer.h - Text to tokens -----------------------------*- C++ -*-===//
//
// Makes the file of tokens that `data: {kind: tokens}` of a job reads. Tokens
// are the bytes of the text, or those of a byte-level BPE vocabulary as the
// `tokenizers` library writes it; then they are the ones that library gives for
// `encode(text, add_special_tokens=False)`.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_TOKENIZE_TOKENIZER_H
#define ESPALIER_TOKENIZE_TOKENIZER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace espalier {

/// Not to be used from several threads at once: words are cached.
class Tokenizer {
public:
  /// Takes tokens in the order of the text, some at a time.
  using Sink = llvm::function_ref<void(llvm::ArrayRef<uint32_t>)>;

  virtual ~Tokenizer() = default;

  /// One more than the largest token: the size that the model's table needs.
  virtual uint32_t vocabularySize() const = 0;

  /// Splits a whole text into tokens. An error says what of the text the
  /// vocabulary cannot express; the sink may have got some tokens by then.
  virtual llvm::Error encode(llvm::StringRef text, Sink sink) = 0;

  /// The bytes that tokens stand for, those of unknown ones left out.
  virtual std::string decode(llvm::ArrayRef<uint32_t> tokens) const = 0;

  /// What the vocabulary's file asks for and this does not do; a line each.
  const std::vector<std::string> &remarks() const { return remarkList; }

protected:
  std::vector<std::string> remarkList;
};

/// A token for each byte, 0 to 255.
std::unique_ptr<Tokenizer> makeByteTokenizer();

/// Reads a vocabulary in the JSON form of the `tokenizers` library. `file` is
/// its name in messages.
llvm::Expected<std::unique_ptr<Tokenizer>>
parseVocabulary(llvm::StringRef json, llvm::StringRef file);
llvm::Expected<std::unique_ptr<Tokenizer>> readVocabulary(llvm::StringRef path);

struct Corpus {
  uint64_t tokens = 0;
  uint64_t bytes = 0;    // of the texts
  llvm::StringRef dtype; // uint16 or uint32, as a job's `data.dtype`
};

/// Writes the tokens of the texts, one after the other, as little-endian uint16
/// if the vocabulary's tokens fit and else as uint32. `output` appears only
/// when all of it is written.
llvm::Expected<Corpus> tokenizeFiles(llvm::ArrayRef<std::string> texts,
                                     Tokenizer &tokenizer,
                                     llvm::StringRef output);

} // namespace espalier

#endif // ESPALIER_TOKENIZE_TOKENIZER_H
