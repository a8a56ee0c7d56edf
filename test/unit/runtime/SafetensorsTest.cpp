//===- SafetensorsTest.cpp - Files that mean no good ----------------------===//

#include "runtime/Safetensors.h"

#include "gtest/gtest.h"

#include "FakeProgram.h"

using namespace espalier::runtime;
using namespace espalier::test;

namespace {

std::string errorOf(const std::string &header, uint64_t dataBytes) {
  std::map<std::string, SafetensorsEntry> entries;
  Status status =
      parseSafetensorsHeader(header.data(), header.size(), dataBytes, entries);
  return status.ok() ? "" : status.text();
}

TEST(Safetensors, ReadsWhatIsValid) {
  EXPECT_EQ(errorOf("{}", 0), "");
  EXPECT_EQ(
      errorOf(R"({"__metadata__":{"format":"pt"},)"
              R"("b":{"dtype":"I64","shape":[],"data_offsets":[8,16]},)"
              R"("a":{"shape":[2,1],"dtype":"F32","data_offsets":[0,8]},)"
              R"("c":{"dtype":"F32","shape":[0,9],"data_offsets":[8,8]}}   )",
              16),
      "");
}

TEST(Safetensors, RefusesWhatIsNot) {
  struct Case {
    const char *header;
    uint64_t bytes;
    const char *message;
  };
  const Case cases[] = {
      {"", 0, "no valid JSON"},
      {"[]", 0, "a list where none"},
      {"{", 0, "no valid JSON"},
      {"{}}", 0, "no valid JSON"},
      {"{\"a\":1}", 0, "a number where none"},
      {"{\"a\":{}}", 0, "lacks its dtype"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", 8,
       "takes 4"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4,
       "beyond the end"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8,
       "beyond the end"},
      {R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8,
       "unknown dtype"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8,
       "negative"},
      {R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8,
       "fraction"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
       0, "larger than the file"},
      {R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,0]}})",
       0, "fraction"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6, "overlap"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5, "gap"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5, "end at"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, "twice"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1, "second time"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1,
       "a number where none"},
      {R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1,
       "a list where none"},
      {R"({"a":{"dtype":null,"shape":[1],"data_offsets":[0,1]}})", 1, "null"},
      {R"({"__metadata__":{"a":1}})", 0, "a number where none"},
      {R"({"__metadata__":{},"__metadata__":{}})", 0, "twice"},
  };
  for (const Case &one : cases)
    EXPECT_NE(errorOf(one.header, one.bytes).find(one.message),
              std::string::npos)
        << one.header << ": " << errorOf(one.header, one.bytes);
}

TEST(Safetensors, DeepNestingIsRefusedAtOnce) {
  EXPECT_NE(errorOf(std::string(10'000'000, '['), 0), "");
  EXPECT_NE(errorOf("{\"a\":" + std::string(10'000'000, '{'), 0), "");
}

TEST(Safetensors, RefusesShortAndForeignFiles) {
  TemporaryFolder folder;
  std::string path = folder / "file.safetensors";
  writeSafetensors(path, {{"a", "U8", {4}, "abcd"}});
  std::string whole = readText(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    writeText(path, whole.substr(0, size));
    SafetensorsFile file;
    EXPECT_FALSE(file.open(path).ok()) << size;
  }
  writeText(path, std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  SafetensorsFile file;
  EXPECT_FALSE(file.open(path).ok());
  EXPECT_FALSE(file.open(folder.path).ok());
  EXPECT_FALSE(file.open(folder / "absent").ok());
}

TEST(Safetensors, EveryFlippedHeaderBitIsReadOrRefused) {
  std::string header =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  for (size_t bit = 0; bit < header.size() * 8; ++bit) {
    std::string broken = header;
    broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << bit % 8));
    std::map<std::string, SafetensorsEntry> entries;
    Status status =
        parseSafetensorsHeader(broken.data(), broken.size(), 4, entries);
    if (status.ok()) // only the name can differ
      EXPECT_EQ(entries.begin()->second.end, 4u);
  }
}

} // namespace
