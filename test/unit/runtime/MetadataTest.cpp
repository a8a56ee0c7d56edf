//===- MetadataTest.cpp - What a program says about itself ----------------===//

#include "runtime/Metadata.h"

#include "gtest/gtest.h"

#include "FakeProgram.h"

using namespace espalier::runtime;
using namespace espalier::test;

namespace {

/// The error after replacing `from` by `to` in the metadata of the fake
/// program.
std::string errorAfter(const std::string &from, const std::string &to) {
  EspalierProgram program = fakeProgram(2);
  std::string text = program.metadata;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  program.metadata = text.c_str();
  Metadata metadata;
  Status status = parseMetadata(program, metadata);
  return status.ok() ? "" : status.text();
}

TEST(Metadata, ReadsTheProgram) {
  Metadata metadata;
  ASSERT_TRUE(parseMetadata(fakeProgram(2), metadata).ok());
  EXPECT_EQ(metadata.batch, batch);
  EXPECT_EQ(*metadata.steps, 10);
  EXPECT_EQ(metadata.ops[0].kind, "forward");
  EXPECT_EQ(metadata.ops[1].kind, "Gradients");
  EXPECT_EQ(metadata.ops[2].kind, "AllGather");
  EXPECT_EQ(metadata.find(Role::Label)->name, "y");
  EXPECT_EQ(metadata.tensors[0].sharding[0][0].size, 2);
}

TEST(Metadata, RefusesWhatIsWrong) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"\"version\": 1", "\"version\": 2", "expects version 1"},
      {"\"seed\": 3", "\"sed\": 3", "unknown key 'sed'"},
      {"\"seed\": 3", "\"seed\": 3.5", "job.seed: expects an integer"},
      {"\"global_batch\": 7", "\"global_batch\": 17", "global batch of 17"},
      {"\"role\": \"label\"", "\"role\": \"lable\"", "unknown name 'lable'"},
      {"\"shape\": [4, 6]", "\"shape\": [5, 6]", "tensor 'y': dimension 0"},
      {"\"offset\": [0]", "\"offset\": [0, 0]", "for each class"},
      {"\"offset\": [0]", "\"offset\": [4092]", "do not fit the arena"},
      {"\"offset\": [0]", "\"offset\": [2]", "do not fit the arena"},
      {"[[0, 1]]", "[[0, 2]]", "groups[0][1]"},
      {"[[0, 1]]", "[[0, 0]]", "each of them once"},
      {"\"alias\": \"w.tied\"", "\"alias\": \"w\"", "alias occurs twice"},
      {"\"role\": \"loss\"", "\"role\": \"lr\"", "role 'loss'"},
      {"\"name\": \"w\", ", "", "tensors[5].name: is missing"},
      {"{\"version\"", "\"version\"", "not valid JSON"},
      {"\"shape\": [3]", "\"shape\": [4]", "expects [3]"},
  };
  for (const Case &one : cases)
    EXPECT_NE(errorAfter(one.from, one.to).find(one.message), std::string::npos)
        << one.to << ": " << errorAfter(one.from, one.to);
}

TEST(Metadata, RefusesAnotherInterface) {
  EspalierProgram program = fakeProgram(2);
  program.abiVersion = 99;
  Metadata metadata;
  EXPECT_NE(parseMetadata(program, metadata).text().find("version 99"),
            std::string::npos);
}

} // namespace
