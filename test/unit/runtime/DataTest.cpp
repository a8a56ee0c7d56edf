//===- DataTest.cpp - Windows of tokens, samples, their order -------------===//

#include "runtime/Data.h"

#include "gtest/gtest.h"

#include <cstring>

#include "FakeProgram.h"

using namespace espalier::runtime;
using namespace espalier::test;

namespace {

TensorInfo tensorOf(const std::string &name, Role role, EspalierDtype dtype,
                    std::vector<int64_t> shape) {
  TensorInfo tensor;
  tensor.name = name;
  tensor.role = role;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.sharding.resize(tensor.shape.size());
  tensor.granules.assign(tensor.shape.size(), 1);
  return tensor;
}

/// A language model: windows of 3 tokens, microbatches of 2, batches of 3.
Metadata tokensMetadata() {
  Metadata metadata;
  metadata.globalBatch = 3;
  metadata.batch = 2;
  metadata.microBatches = 2;
  metadata.data.kind = DataInfo::Kind::Tokens;
  metadata.data.input = "input_ids";
  metadata.data.labels = "labels";
  metadata.data.sequence = 3;
  metadata.fill = {{"position_ids", FillInfo::With::Positions},
                   {"mask", FillInfo::With::Ones}};
  for (auto [name, role] : {std::pair{"input_ids", Role::Input},
                            {"position_ids", Role::Input},
                            {"mask", Role::Input},
                            {"labels", Role::Label}})
    metadata.tensors.push_back(tensorOf(name, role, EspalierI64, {2, 3}));
  metadata.tensors.push_back(tensorOf("v", Role::Valid, EspalierI1, {2}));
  metadata.tensors.push_back(tensorOf("r", Role::Rng, EspalierI64, {3}));
  metadata.tensors.push_back(tensorOf("s", Role::Step, EspalierI64, {}));
  metadata.tensors[0].range = {0, 100};
  metadata.tensors[3].range = {0, 100};
  metadata.seed = 77;
  return metadata;
}

class DataTest : public testing::Test {
protected:
  void writeTokens(const std::vector<uint16_t> &tokens) {
    writeText(path, std::string(reinterpret_cast<const char *>(tokens.data()),
                                tokens.size() * 2));
  }
  std::string errorOf(const Metadata &metadata) {
    Data data;
    Status status = data.open(metadata, path, remarks);
    return status.ok() ? "" : status.text();
  }
  bool remarked(const std::string &text) const {
    for (const std::string &remark : remarks)
      if (remark.find(text) != std::string::npos)
        return true;
    return false;
  }

  TemporaryFolder folder;
  std::string path = folder / "data";
  std::vector<std::string> remarks;
};

/// The arena of one rank, a page for each tensor.
struct Arena {
  explicit Arena(const Metadata &metadata)
      : metadata(metadata), bytes(metadata.tensors.size() * 512, 0xee) {}
  uint8_t *place(const TensorInfo &tensor) {
    return bytes.data() +
           static_cast<size_t>(&tensor - metadata.tensors.data()) * 512;
  }
  std::vector<int64_t> integers(size_t tensor, size_t count) {
    std::vector<int64_t> values(count);
    std::memcpy(values.data(), bytes.data() + tensor * 512, count * 8);
    return values;
  }
  const Metadata &metadata;
  std::vector<uint8_t> bytes;
};

using Integers = std::vector<int64_t>;

TEST_F(DataTest, WindowsOverlapByTheLabel) {
  // 12 tokens: windows start at 0, 3, 6 (a fourth would need token 12).
  writeTokens({10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21});
  Metadata metadata = tokensMetadata();
  Data data;
  ASSERT_TRUE(data.open(metadata, path, remarks).ok());
  EXPECT_EQ(data.samples(), 3u);
  EXPECT_TRUE(remarked("last 2 tokens"));
  EXPECT_TRUE(remarked("'position_ids' is filled with positions"));
  Arena arena(metadata);
  Feeder feeder(data, metadata, 0,
                [&](const TensorInfo &tensor) { return arena.place(tensor); });
  feeder.load(0, 0);
  EXPECT_EQ(arena.integers(0, 6), (Integers{10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(arena.integers(3, 6), (Integers{11, 12, 13, 14, 15, 16}));
  EXPECT_EQ(arena.integers(1, 6), (Integers{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(arena.integers(2, 6), (Integers{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(arena.integers(5, 3), (Integers{77, 0, 0}));
  // The second microbatch has one sample, which stands in for the padding too;
  // step 1 wraps around.
  feeder.load(0, 1);
  EXPECT_EQ(arena.integers(0, 6), (Integers{16, 17, 18, 16, 17, 18}));
  EXPECT_EQ(arena.bytes[4 * 512], 1);
  EXPECT_EQ(arena.bytes[4 * 512 + 1], 0);
  feeder.load(1, 0);
  EXPECT_EQ(arena.integers(0, 3), (Integers{10, 11, 12}));
  EXPECT_EQ(arena.integers(6, 1), (Integers{1}));
}

TEST_F(DataTest, RanksGetTheirBlocks) {
  writeTokens({10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  Metadata metadata = tokensMetadata();
  // Samples over dp = 2, the sequence of 3 over cp = 2: 2 + 1.
  for (TensorInfo &tensor : metadata.tensors)
    if (tensor.shape.size() == 2)
      tensor.sharding = {{{"dp", 2, 2}}, {{"cp", 2, 1}}};
    else if (tensor.role == Role::Valid)
      tensor.sharding = {{{"dp", 2, 2}}};
  Data data;
  ASSERT_TRUE(data.open(metadata, path, remarks).ok());
  const Integers inputs[] = {{10, 11}, {12}, {13, 14}, {15}};
  const Integers labels[] = {{11, 12}, {13}, {14, 15}, {16}};
  const Integers positions[] = {{0, 1}, {2}, {0, 1}, {2}};
  for (int32_t rank = 0; rank < 4; ++rank) {
    Arena arena(metadata);
    Feeder feeder(data, metadata, rank, [&](const TensorInfo &tensor) {
      return arena.place(tensor);
    });
    feeder.load(0, 0);
    size_t count = inputs[rank].size();
    EXPECT_EQ(arena.integers(0, count), inputs[rank]);
    EXPECT_EQ(arena.integers(3, count), labels[rank]);
    EXPECT_EQ(arena.integers(1, count), positions[rank]);
    feeder.load(0, 1);
    EXPECT_EQ(arena.bytes[4 * 512], rank < 2);
  }
}

TEST_F(DataTest, RefusesBadTokens) {
  Metadata metadata = tokensMetadata();
  writeTokens({1, 2, 3});
  EXPECT_NE(errorOf(metadata).find("too few"), std::string::npos);
  writeText(path, "abc");
  EXPECT_NE(errorOf(metadata).find("no whole number"), std::string::npos);
  writeText(path, "");
  EXPECT_NE(errorOf(metadata).find("too few"), std::string::npos);
  writeTokens({1, 2, 3, 4, 5, 100, 7, 8});
  EXPECT_NE(errorOf(metadata).find(
                "token 5 is 100, but 'input_ids' takes ids from 0 to 99"),
            std::string::npos);
  // Only the last label is token 6; the ragged tail is not looked at.
  writeTokens({1, 2, 3, 4, 5, 6, 100, 200});
  EXPECT_NE(errorOf(metadata).find("token 6 is 100, but 'labels'"),
            std::string::npos);
  writeTokens({1, 2, 3, 4, 100, 100});
  EXPECT_EQ(errorOf(metadata), "");
  metadata.fill.clear();
  EXPECT_NE(errorOf(metadata).find("'position_ids' is an input"),
            std::string::npos);
  metadata = tokensMetadata();
  metadata.tensors[0].shape = {2, 4};
  EXPECT_NE(errorOf(metadata).find("[2, 4]"), std::string::npos);
}

TEST_F(DataTest, ReadsWideTokens) {
  std::vector<uint32_t> tokens = {70000, 70001, 70002, 70003};
  writeText(path, std::string(reinterpret_cast<const char *>(tokens.data()),
                              tokens.size() * 4));
  Metadata metadata = tokensMetadata();
  metadata.data.tokenBytes = 4;
  metadata.tensors[0].range = metadata.tensors[3].range = {0, 80000};
  Data data;
  ASSERT_TRUE(data.open(metadata, path, remarks).ok());
  Arena arena(metadata);
  Feeder feeder(data, metadata, 0,
                [&](const TensorInfo &tensor) { return arena.place(tensor); });
  feeder.load(0, 0);
  EXPECT_EQ(arena.integers(3, 3), (Integers{70001, 70002, 70003}));
}

/// x: f32 [2, 2], labels: i64 [2] from 0 to 9 or -100.
Metadata samplesMetadata() {
  Metadata metadata;
  metadata.globalBatch = metadata.batch = 2;
  metadata.data.kind = DataInfo::Kind::Samples;
  metadata.tensors.push_back(tensorOf("x", Role::Input, EspalierF32, {2, 2}));
  metadata.tensors.push_back(tensorOf("labels", Role::Label, EspalierI64, {2}));
  metadata.tensors[1].range = {0, 10};
  metadata.tensors[1].ignore = -100;
  return metadata;
}

std::string integerBytes(const Integers &values) {
  return std::string(reinterpret_cast<const char *>(values.data()),
                     values.size() * 8);
}

TEST_F(DataTest, ChecksSamples) {
  Metadata metadata = samplesMetadata();
  std::string x(24, '\0');
  writeSafetensors(path, {{"x", "F32", {3, 2}, x},
                          {"labels", "I64", {3}, integerBytes({1, -100, 9})},
                          {"more", "U8", {1}, "a"}});
  EXPECT_EQ(errorOf(metadata), "");
  EXPECT_TRUE(remarked("'more' is no input"));
  writeSafetensors(path, {{"x", "F32", {3, 2}, x},
                          {"labels", "I64", {3}, integerBytes({1, 2, 10})}});
  EXPECT_NE(errorOf(metadata).find(
                "tensor 'labels': sample 2 holds 10, but valid are 0 to 9, "
                "and -100 for none"),
            std::string::npos);
  writeSafetensors(path, {{"x", "F32", {3, 2}, x}});
  EXPECT_NE(errorOf(metadata).find("has no tensor 'labels'"),
            std::string::npos);
  writeSafetensors(path, {{"x", "F32", {3, 2}, x},
                          {"labels", "I64", {2}, integerBytes({1, 2})}});
  EXPECT_NE(errorOf(metadata).find("has 2 samples"), std::string::npos);
  writeSafetensors(path, {{"x", "F32", {2, 3}, x},
                          {"labels", "I64", {2}, integerBytes({1, 2})}});
  EXPECT_NE(errorOf(metadata).find("[2, 3], but the model takes [samples, 2]"),
            std::string::npos);
  writeSafetensors(path, {{"x", "I32", {3, 2}, x},
                          {"labels", "I64", {3}, integerBytes({1, 2, 3})}});
  EXPECT_NE(errorOf(metadata).find("is of I32"), std::string::npos);
}

TEST_F(DataTest, ShufflesEachEpochAnew) {
  Metadata metadata = samplesMetadata();
  metadata.data.shuffle = true;
  writeSafetensors(path,
                   {{"x", "F32", {50, 2}, std::string(400, '\0')},
                    {"labels", "I64", {50}, integerBytes(Integers(50, 1))}});
  Data data;
  ASSERT_TRUE(data.open(metadata, path, remarks).ok());
  std::vector<int> seen(50);
  int moved = 0, sameAsBefore = 0;
  for (uint64_t i = 0; i < 50; ++i) {
    ++seen[data.sampleAt(i)];
    moved += data.sampleAt(i) != i;
    sameAsBefore += data.sampleAt(i) == data.sampleAt(50 + i);
  }
  EXPECT_EQ(seen, std::vector<int>(50, 1));
  EXPECT_GT(moved, 40);
  EXPECT_LT(sameAsBefore, 10);
}

} // namespace
