//===- TokenizerTest.cpp - Text to tokens and back ------------------------===//

#include "espalier/Tokenize/Tokenizer.h"

#include "gtest/gtest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/Error.h"

#include <chrono>
#include <random>

#include "lib/Tokenize/Words.h"

using namespace llvm;
using namespace espalier;

namespace {

using Tokens = std::vector<uint32_t>;

struct Result {
  Tokens tokens;
  std::string error;
};

Result encode(Tokenizer &tokenizer, StringRef text) {
  Result result;
  Error error = tokenizer.encode(text, [&](ArrayRef<uint32_t> some) {
    append_range(result.tokens, some);
  });
  result.error = toString(std::move(error));
  return result;
}

/// A byte-level vocabulary of the letters a to d, space and line end; then what
/// the merges make; then whatever `rest` adds at the file's top level.
std::string vocabulary(StringRef preTokenizer, StringRef model = "",
                       StringRef rest = "") {
  return ("{" + rest + "\"pre_tokenizer\": " + preTokenizer + ", \"model\": {" +
          model +
          "\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, "
          "\"d\": 3, \"Ġ\": 4, \"Ċ\": 5, \"ab\": 6, \"bc\": 7, \"cd\": 8, "
          "\"abcd\": 9, \"Ġab\": 10, \"aa\": 11, \"aaaa\": 12}, \"merges\": "
          "[\"b c\", \"a b\", \"c d\", \"ab cd\", \"Ġ ab\", \"a a\", "
          "\"aa aa\"]}}")
      .str();
}

constexpr StringRef kPlain =
    R"({"type": "ByteLevel", "add_prefix_space": false})";

std::unique_ptr<Tokenizer> read(const std::string &json) {
  auto tokenizer = parseVocabulary(json, "v.json");
  if (!tokenizer) {
    ADD_FAILURE() << toString(tokenizer.takeError());
    return makeByteTokenizer();
  }
  return std::move(*tokenizer);
}

std::string mistake(const std::string &json) {
  auto tokenizer = parseVocabulary(json, "v.json");
  return tokenizer ? "" : toString(tokenizer.takeError());
}

std::vector<std::string> words(StringRef text, WordPattern pattern) {
  std::vector<std::string> result;
  while (!text.empty()) {
    size_t size = firstWord(text, pattern);
    result.push_back(text.take_front(size).str());
    text = text.drop_front(size);
  }
  return result;
}

} // namespace

TEST(ByteTokenizer, RoundTrips) {
  std::string text;
  for (int i = 0; i < 10000; ++i)
    text += char(i * 7);
  auto tokenizer = makeByteTokenizer();
  EXPECT_EQ(tokenizer->vocabularySize(), 256u);
  Result result = encode(*tokenizer, text);
  ASSERT_EQ(result.tokens.size(), text.size());
  EXPECT_EQ(result.tokens[37], 37u * 7 % 256);
  EXPECT_EQ(tokenizer->decode(result.tokens), text);
}

TEST(BytePairTokenizer, MergesByRankThenFromTheLeft) {
  auto tokenizer = read(vocabulary(kPlain));
  EXPECT_EQ(tokenizer->vocabularySize(), 13u);
  // "b c" has the lowest rank, so that abcd is never made from ab and cd.
  EXPECT_EQ(encode(*tokenizer, "abcd").tokens, Tokens({0, 7, 3}));
  EXPECT_EQ(encode(*tokenizer, "ab cd ab").tokens, Tokens({6, 4, 8, 10}));
  EXPECT_EQ(encode(*tokenizer, "aaaaaaa").tokens, Tokens({12, 11, 0}));
  EXPECT_EQ(encode(*tokenizer, "a\n\nb").tokens, Tokens({0, 5, 5, 1}));
  EXPECT_EQ(encode(*tokenizer, "").tokens, Tokens());
}

TEST(BytePairTokenizer, TakesWholeWordsWhereAsked) {
  auto tokenizer = read(vocabulary(kPlain, "\"ignore_merges\": true, "));
  EXPECT_EQ(encode(*tokenizer, "abcd").tokens, Tokens({9}));
}

TEST(BytePairTokenizer, AddsASpaceInFrontWhereAsked) {
  auto tokenizer = read(vocabulary(R"({"type": "ByteLevel"})"));
  EXPECT_EQ(encode(*tokenizer, "ab").tokens, Tokens({10}));
  EXPECT_EQ(encode(*tokenizer, " ab").tokens, Tokens({10}));
}

TEST(BytePairTokenizer, FindsAddedTokensFirst) {
  auto tokenizer = read(vocabulary(
      kPlain, "",
      R"("added_tokens": [{"id": 20, "content": "<x>"}, {"id": 21, "content": "<x>a"}],)"));
  EXPECT_EQ(tokenizer->vocabularySize(), 22u);
  Result result = encode(*tokenizer, "ab<x>ab<x>b");
  EXPECT_EQ(result.tokens, Tokens({6, 21, 1, 20, 1}));
  EXPECT_EQ(tokenizer->decode(result.tokens), "ab<x>ab<x>b");
}

TEST(BytePairTokenizer, SaysWhatItCannotExpress) {
  auto tokenizer = read(vocabulary(kPlain));
  EXPECT_EQ(encode(*tokenizer, "abx").error,
            "byte 0x78 of the text is no token of the vocabulary");
  EXPECT_EQ(encode(*tokenizer, "ab\xff").error,
            "expects UTF-8 text, but byte 2 is none");
}

TEST(BytePairTokenizer, TakesLongWordsInBoundedTime) {
  auto tokenizer = read(vocabulary(kPlain));
  std::string text(1 << 20, 'a');
  auto start = std::chrono::steady_clock::now();
  Result result = encode(*tokenizer, text);
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  EXPECT_EQ(result.tokens, Tokens((1 << 20) / 4, 12));
  EXPECT_LT(seconds.count(), 20); // a quadratic merge would take an hour
}

TEST(BytePairTokenizer, RoundTripsRandomTexts) {
  auto tokenizer = read(vocabulary(kPlain));
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (int j = random() % 50; j > 0; --j)
      text += "aabbccdd  \n"[random() % 11];
    EXPECT_EQ(tokenizer->decode(encode(*tokenizer, text).tokens), text);
  }
}

// The words below are those of the `tokenizers` library.
TEST(Words, CutsAsGpt2) {
  WordPattern gpt2{WordPattern::Kind::Gpt2, 0};
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("I'll don't 'tis", gpt2),
            Words({"I", "'ll", " don", "'t", " '", "tis"}));
  EXPECT_EQ(words("x = 1234;\n\n  y", gpt2),
            Words({"x", " =", " 1234", ";", "\n\n ", " y"}));
  EXPECT_EQ(words("a \n", gpt2), Words({"a", " \n"}));
  EXPECT_EQ(words("a\nb", gpt2), Words({"a", "\n", "b"}));
  EXPECT_EQ(words("na\u00efve x\u00b2 \u4f60\u597d", gpt2),
            Words({"na\u00efve", " x", "\u00b2", " \u4f60\u597d"}));
}

TEST(Words, CutsAsLlama3AndQwen2) {
  WordPattern llama{WordPattern::Kind::Cl100k, 3};
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("I'LL (go) 12345", llama),
            Words({"I", "'LL", " (", "go", ")", " ", "123", "45"}));
  EXPECT_EQ(words("f(x);\n\n  y \n z", llama),
            Words({"f", "(x", ");\n\n", " ", " y", " \n", " z"}));
  EXPECT_EQ(words("12", {WordPattern::Kind::Cl100k, 1}), Words({"1", "2"}));
}

TEST(Vocabulary, NamesWhatIsWrong) {
  auto replace = [](std::string text, StringRef what, StringRef by) {
    size_t at = text.find(what.str());
    EXPECT_NE(at, std::string::npos) << what.str();
    return text.replace(at, what.size(), by.str());
  };
  std::string good = vocabulary(kPlain);
  EXPECT_EQ(mistake("{\"model\": [1,"), "v.json: not JSON at byte 14");
  EXPECT_EQ(mistake("{}"), "v.json: expects a key 'model', as the "
                           "`tokenizers` library writes it");
  EXPECT_EQ(mistake(replace(good, "\"BPE\"", "\"Unigram\"")),
            "v.json: key 'model.type': not supported: 'Unigram'; supported is "
            "'BPE'");
  EXPECT_EQ(mistake(replace(good, "\"b\": 1", "\"b\": 0")),
            "v.json: key 'model.vocab': two names have the number 0, one of "
            "them 'b'");
  EXPECT_EQ(mistake(replace(good, "\"b\": 1", "\"b\": -1")),
            "v.json: key 'model.vocab': token 'b' expects a number from 0 to "
            "16777215, but got -1");
  EXPECT_EQ(mistake(replace(good, "ab cd", "ab ce")),
            "v.json: key 'model.merges', entry 3: 'ce' is not in the "
            "vocabulary");
  EXPECT_EQ(mistake(replace(good, "ab cd", "abcd")),
            "v.json: key 'model.merges', entry 3: expects two names of tokens");
  EXPECT_EQ(mistake(replace(good, "ByteLevel", "Metaspace")),
            "v.json: key 'pre_tokenizer': not supported: 'Metaspace'; "
            "supported are ByteLevel, and a sequence of Split and ByteLevel");
  EXPECT_EQ(mistake(vocabulary(kPlain, "\"dropout\": 0.1, ")),
            "v.json: key 'model.dropout': not supported: 0.1");
  EXPECT_EQ(
      mistake(vocabulary(kPlain, "", "\"normalizer\": {\"type\": \"NFC\"},")),
      "v.json: key 'normalizer': not supported: 'NFC'");
  EXPECT_EQ(mistake(vocabulary(R"({"type": "Sequence", "pretokenizers": [
              {"type": "Split", "pattern": {"Regex": "\\d"}, "behavior": "Isolated"}]})")),
            "v.json: key 'pre_tokenizer': not supported: the expression "
            "'\\\\d'; supported are those of GPT-2, Llama 3 and Qwen 2");
}

TEST(Vocabulary, SurvivesNesting) {
  EXPECT_NE(mistake(std::string(1 << 20, '[')), "");
  EXPECT_NE(mistake(std::string(1 << 20, '[') + std::string(1 << 20, ']')), "");
}
