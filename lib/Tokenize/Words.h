//===- Words.h - Cut text into words before merging -------------*- C++ -*-===//
//
// The regular expressions that byte-level vocabularies cut text with, as
// functions: a matcher by hand is bounded in time, and some ten times faster.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_TOKENIZE_WORDS_H
#define ESPALIER_LIB_TOKENIZE_WORDS_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace espalier {

struct WordPattern {
  enum class Kind {
    Whole,  // the text is one word
    Gpt2,   // contractions, letters, numbers, others; a space before belongs to
            // it
    Cl100k, // the same, with up to `digits` digits, and line ends apart
  } kind = Kind::Whole;
  unsigned digits = 0; // Cl100k
};

/// The pattern that a regular expression of a vocabulary's file stands for, if
/// it is one of those known.
std::optional<WordPattern> findWordPattern(llvm::StringRef regex);

/// The size in bytes of the first word of `text`, which is UTF-8 and not empty.
size_t firstWord(llvm::StringRef text, WordPattern pattern);

} // namespace espalier

#endif // ESPALIER_LIB_TOKENIZE_WORDS_H
