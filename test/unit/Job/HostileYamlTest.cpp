//===- HostileYamlTest.cpp - Any bytes are read or refused, soon ----------===//

#include "espalier/Job/Job.h"

#include "gtest/gtest.h"

#include <chrono>
#include <random>

using namespace espalier;

/// Reads a text that may be anything; fails if it takes more than two seconds,
/// or if a refusal has no message.
static void readSoon(const std::string &text, const std::string &what) {
  auto start = std::chrono::steady_clock::now();
  Messages messages;
  bool isRead = parseJob(text, "job.yaml", messages).has_value();
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 2) << what;
  EXPECT_EQ(isRead, messages.empty()) << what;
  for (const std::string &line : messages.all())
    EXPECT_EQ(line.find('\x1b'), std::string::npos) << what;
}

static std::string repeat(const std::string &unit, size_t bytes) {
  std::string text;
  while (text.size() + unit.size() <= bytes)
    text += unit;
  return text;
}

static constexpr size_t kLargest = (1 << 20) - 8; // bytes

TEST(HostileYaml, LargeFilesOfOneThing) {
  for (const char *unit : {"[",     "]",        "{",
                           "}",     "- ",       "? ",
                           ": ",    "a: ",      "-\n",
                           "?\n",   ":\n",      "&a ",
                           "*a ",   "!a ",      "\"",
                           "'",     "|\n",      ">\n",
                           "#",     "%",        "%YAML 1.2\n",
                           "---\n", "...\n",    "\t",
                           " ",     "\n",       "\r",
                           ",",     "[]",       "{}",
                           "[],",   "a: [\n",   "a: {b: \n",
                           "\\",    "\"\\x41",  "a:\n ",
                           "x ",    "\xc3\xa9", "\xef\xbb\xbf",
                           "? - ",  "- ? ",     "a: |\n  b\n",
                           "a",     "1",        "a\n",
                           "a,",    "[a, ",     "{a, ",
                           "[a: ",  "- a: ",    "\x1b[31m",
                           "\x7f"})
    readSoon(repeat(unit, kLargest), unit);
}

TEST(HostileYaml, DeepBlocks) {
  // Each level indents by one more: a triangle of n lines.
  std::string text;
  for (int level = 0; level < 1000; ++level)
    text += std::string(level, ' ') + "a:\n";
  readSoon(text, "indented mappings");
  text.clear();
  for (int level = 0; level < 1000; ++level)
    text += std::string(level, ' ') + "-\n";
  readSoon(text, "indented sequences");
  // Levels of a sequence that do not indent.
  text.clear();
  for (int level = 0; level < 300; ++level)
    text += std::string(level, ' ') + "a:\n" + std::string(level, ' ') + "- \n";
  readSoon(text, "mixed");
}

TEST(HostileYaml, ManyKeys) {
  std::string text = "dims: {";
  for (int i = 0; text.size() < kLargest - 100; ++i)
    text += "d" + std::to_string(i) + ": 1, ";
  readSoon(text + "}", "many dims");
  text.clear();
  for (int i = 0; text.size() < kLargest - 100; ++i)
    text += "k" + std::to_string(i) + ": 1\n";
  readSoon(text, "many unknown keys");
}

TEST(HostileYaml, AliasBomb) {
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'z'; ++c) {
    std::string before(1, char(c - 1));
    text += std::string(1, c) + ": &" + c + " [*" + before;
    for (int i = 0; i < 8; ++i)
      text += ", *" + before;
    text += "]\n";
  }
  readSoon(text, "alias bomb");
}

/// A job with some bytes changed, doubled or left out.
static std::string mutate(std::string text, std::mt19937 &random) {
  static const std::string alphabet =
      "[]{}:,-?&*!|>'\"%@`# \n\t\\0aA1.\x1b\xff";
  for (int edits = 1 + random() % 4; edits > 0 && !text.empty(); --edits) {
    size_t at = random() % text.size();
    switch (random() % 4) {
    case 0:
      text[at] = alphabet[random() % alphabet.size()];
      break;
    case 1:
      text.insert(at, 1, alphabet[random() % alphabet.size()]);
      break;
    case 2:
      text.erase(at, 1 + random() % 8);
      break;
    default:
      text.insert(at, text.substr(random() % text.size(), random() % 40));
    }
  }
  return text;
}

TEST(HostileYaml, ChangedJobs) {
  const std::string job = "model: model.onnx\n"
                          "dims: {batch: auto, sequence: 16}\n"
                          "train:\n"
                          "  loss: {kind: mse, prediction: y, target: 't'}\n"
                          "  optimizer: {kind: sgd, lr: 0.1}\n"
                          "  init: [{match: \"*\", zeros: true}]\n"
                          "  frozen:\n"
                          "  - |\n"
                          "    a\n"
                          "  - >-\n"
                          "    b\n"
                          "  global_batch: 8\n"
                          "cluster: {device: cpu}\n";
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text = mutate(job, random);
    readSoon(text, text);
  }
}
