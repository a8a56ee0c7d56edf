//===- Words.cpp - Cut text into words before merging ---------------------===//

#include "Words.h"

#include "llvm/Support/ErrorHandling.h"

#include <vector>

using namespace llvm;
using namespace espalier;

namespace {

enum class Class : uint8_t { Other, Letter, Number, Space };

struct Range {
  Class kind;
  uint32_t first, last;
};

/// A character of the text, as the patterns see it.
struct Character {
  uint32_t code = 0;
  size_t size = 0; // bytes; 0 at the text's end
  Class kind = Class::Other;
};

} // namespace

static constexpr Range kRanges[] = {
#define RANGE(kind, first, last) {Class::kind, first, last},
#include "UnicodeRanges.inc"
#undef RANGE
    {Class::Space, 0x9, 0xd},       {Class::Space, 0x20, 0x20},
    {Class::Space, 0x85, 0x85},     {Class::Space, 0xa0, 0xa0},
    {Class::Space, 0x1680, 0x1680}, {Class::Space, 0x2000, 0x200a},
    {Class::Space, 0x2028, 0x2029}, {Class::Space, 0x202f, 0x202f},
    {Class::Space, 0x205f, 0x205f}, {Class::Space, 0x3000, 0x3000},
};

static Class classOf(uint32_t code) {
  static const std::vector<Class> table = [] {
    std::vector<Class> classes(0x110000, Class::Other);
    for (const Range &range : kRanges)
      for (uint32_t c = range.first; c <= range.last; ++c)
        classes[c] = range.kind;
    return classes;
  }();
  return table[code];
}

static Character characterAt(StringRef text, size_t position) {
  if (position >= text.size())
    return {};
  uint8_t lead = text[position];
  if (lead < 0x80)
    return {lead, 1, classOf(lead)};
  size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  uint32_t code = lead & (0x7f >> size);
  for (size_t i = 1; i < size; ++i)
    code = code << 6 | (text[position + i] & 0x3f);
  return {code, size, classOf(code)};
}

/// Where a run of at most `limit` characters of a class ends.
static size_t endOfRun(StringRef text, size_t position, Class kind,
                       size_t limit = SIZE_MAX) {
  for (; limit; --limit) {
    Character c = characterAt(text, position);
    if (!c.size || c.kind != kind)
      break;
    position += c.size;
  }
  return position;
}

/// The size of 's, 't, 're, 've, 'm, 'll or 'd at the start, or 0.
static size_t contraction(StringRef text, bool anyCase) {
  if (!text.starts_with("'"))
    return 0;
  static constexpr StringRef kEndings[] = {"s", "t",  "re", "ve",
                                           "m", "ll", "d"};
  StringRef rest = text.drop_front();
  for (StringRef ending : kEndings)
    if (anyCase ? rest.starts_with_insensitive(ending)
                : rest.starts_with(ending))
      return 1 + ending.size();
  return 0;
}

/// White space before a word is left to it, all but its last character: the
/// expression \s+(?!\S)|\s+.
static size_t spaces(StringRef text) {
  size_t end = 0, beforeLast = 0;
  while (true) {
    Character c = characterAt(text, end);
    if (!c.size)
      return end;
    if (c.kind != Class::Space)
      return beforeLast ? beforeLast : end;
    beforeLast = end;
    end += c.size;
  }
}

static size_t gpt2Word(StringRef text) {
  if (size_t size = contraction(text, /*anyCase=*/false))
    return size;
  size_t start = text.front() == ' ' ? 1 : 0;
  Character c = characterAt(text, start);
  if (c.size && c.kind != Class::Space)
    return endOfRun(text, start, c.kind);
  return spaces(text);
}

static bool isLineEnd(Character c) {
  return c.size && (c.code == '\r' || c.code == '\n');
}

/// \s*[\r\n]+ : up to the last line end of the white space, or 0.
static size_t lineEnds(StringRef text) {
  size_t last = 0, end = 0;
  for (Character c = characterAt(text, 0); c.size && c.kind == Class::Space;
       c = characterAt(text, end)) {
    end += c.size;
    if (isLineEnd(c))
      last = end;
  }
  return last;
}

static size_t cl100kWord(StringRef text, unsigned digits) {
  if (size_t size = contraction(text, /*anyCase=*/true))
    return size;
  Character first = characterAt(text, 0);
  if (first.kind == Class::Letter)
    return endOfRun(text, 0, Class::Letter);
  if (first.kind == Class::Number)
    return endOfRun(text, 0, Class::Number, digits);
  Character second = characterAt(text, first.size);
  if (!isLineEnd(first) && second.size && second.kind == Class::Letter)
    return endOfRun(text, first.size, Class::Letter);
  size_t start = first.code == ' ' ? 1 : 0;
  Character c = characterAt(text, start);
  if (c.size && c.kind == Class::Other) {
    size_t end = endOfRun(text, start, Class::Other);
    while (isLineEnd(characterAt(text, end)))
      ++end;
    return end;
  }
  if (size_t size = lineEnds(text))
    return size;
  return spaces(text);
}

std::optional<WordPattern> espalier::findWordPattern(StringRef regex) {
  static constexpr StringRef kGpt2Tail =
      "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
  StringRef head = regex;
  if (head.consume_back(kGpt2Tail) &&
      (head == "'s|'t|'re|'ve|'m|'ll|'d" || head == "'(?:[sdmt]|ll|ve|re)"))
    return WordPattern{WordPattern::Kind::Gpt2, 0};
  head = regex;
  if (!head.consume_front("(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
                          "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}") ||
      !head.consume_back("| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
                         "\\s+(?!\\S)|\\s+"))
    return std::nullopt;
  if (head.empty())
    return WordPattern{WordPattern::Kind::Cl100k, 1};
  if (head == "{1,3}")
    return WordPattern{WordPattern::Kind::Cl100k, 3};
  return std::nullopt;
}

size_t espalier::firstWord(StringRef text, WordPattern pattern) {
  switch (pattern.kind) {
  case WordPattern::Kind::Whole:
    return text.size();
  case WordPattern::Kind::Gpt2:
    return gpt2Word(text);
  case WordPattern::Kind::Cl100k:
    return cl100kWord(text, pattern.digits);
  }
  llvm_unreachable("all patterns are handled");
}
