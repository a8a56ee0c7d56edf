//===- LogTest.cpp - JSON lines and event files ---------------------------===//

#include "runtime/Log.h"

#include "runtime/Crc32c.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include "FakeProgram.h"

using namespace espalier::runtime;
using namespace espalier::test;

namespace {

StepRecord recordOf(int64_t step) {
  StepRecord record;
  record.step = step;
  record.loss = 0.1;
  record.seconds = 0.25;
  record.lr = 1e-4;
  record.gradNorm = record.weight = record.tokensPerSecond = NAN;
  record.samplesPerSecond = 8;
  return record;
}

std::string lineOf(int64_t step) {
  return "{\"step\": " + std::to_string(step) +
         ", \"loss\": 0.1, \"step_seconds\": 0.25, \"lr\": 1e-04, "
         "\"samples_per_second\": 8}\n";
}

TEST(JsonLog, WritesExactNumbersAndNull) {
  TemporaryFolder folder;
  JsonLog log;
  ASSERT_TRUE(log.open(folder / "log", 0).ok());
  ASSERT_TRUE(log.append(recordOf(1)).ok());
  StepRecord record = recordOf(2);
  record.loss = NAN;
  ASSERT_TRUE(log.append(record).ok());
  EXPECT_EQ(readText(folder / "log"),
            lineOf(1) + "{\"step\": 2, \"loss\": null, \"step_seconds\": 0.25, "
                        "\"lr\": 1e-04, \"samples_per_second\": 8}\n");
}

TEST(JsonLog, ContinuesAfterTheResumedStep) {
  TemporaryFolder folder;
  std::string path = folder / "log";
  writeText(path, lineOf(1) + lineOf(2) + lineOf(3) + "{\"step\": 4, \"lo");
  JsonLog log;
  ASSERT_TRUE(log.open(path, 2).ok());
  ASSERT_TRUE(log.append(recordOf(3)).ok());
  EXPECT_EQ(readText(path), lineOf(1) + lineOf(2) + lineOf(3));
  // A cut last line goes too.
  writeText(path, lineOf(1) + "{\"step\": 2, \"lo");
  JsonLog again;
  ASSERT_TRUE(again.open(path, 2).ok());
  EXPECT_EQ(readText(path), lineOf(1));
  // What is no log is not touched.
  writeText(path, "dear diary\n");
  JsonLog other;
  EXPECT_FALSE(other.open(path, 2).ok());
  EXPECT_EQ(readText(path), "dear diary\n");
}

TEST(TensorBoard, WritesRecordsWithChecksums) {
  TemporaryFolder folder;
  TensorBoardLog log;
  ASSERT_TRUE(log.open(folder.path, 0).ok());
  ASSERT_TRUE(log.append(recordOf(300)).ok());
  std::string path;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path))
    path = entry.path();
  EXPECT_NE(path.find("tfevents"), std::string::npos);
  std::string bytes = readText(path);
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length;
    uint32_t lengthCheck, check;
    std::memcpy(&length, &bytes[at], 8);
    std::memcpy(&lengthCheck, &bytes[at + 8], 4);
    ASSERT_EQ(lengthCheck, maskedCrc32c(&length, 8));
    events.push_back(bytes.substr(at + 12, length));
    std::memcpy(&check, &bytes[at + 12 + length], 4);
    ASSERT_EQ(check, maskedCrc32c(events.back().data(), length));
    at += 16 + length;
  }
  ASSERT_EQ(events.size(), 2u);
  // Field 1 (f64), then field 3: the version.
  EXPECT_EQ(events[0][0], '\x09');
  EXPECT_EQ(events[0].substr(9), "\x1a\x0d"
                                 "brain.Event:2");
  // Field 2, varint 300; field 5, the summary: three values, since grad_norm is
  // not known.
  EXPECT_EQ(events[1].substr(9, 3), "\x10\xac\x02");
  EXPECT_EQ(events[1][12], '\x2a');
  float loss = 0.1f;
  std::string value = std::string("\x0a\x0b\x0a\x04loss\x15", 9) +
                      std::string(reinterpret_cast<char *>(&loss), 4);
  EXPECT_EQ(events[1].substr(14, value.size()), value);
  EXPECT_NE(events[1].find("step_seconds"), std::string::npos);
  EXPECT_EQ(events[1].find("grad_norm"), std::string::npos);
}

} // namespace
