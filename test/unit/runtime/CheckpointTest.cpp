//===- CheckpointTest.cpp - Checkpoints across layouts, and damaged ones --===//

#include "runtime/Checkpoint.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/mount.h>

#include "FakeProgram.h"
#include "RankHarness.h"

using namespace espalier::runtime;
using namespace espalier::test;

namespace {

constexpr uint64_t arenaBytes = uint64_t{64} << 20;

/// A matrix of more than one chunk with a transposed alias, an uneven tensor
/// and a scalar, cut for `ranks` ranks: the first by columns, by rows from 3.
Metadata layoutFor(int32_t ranks) {
  Metadata metadata = worldOf(ranks);
  metadata.tool = "espalier test";
  metadata.modelFingerprint = "m";
  auto add = [&](const std::string &name, Role role, EspalierDtype dtype,
                 std::vector<int64_t> shape, int64_t offset, size_t cut) {
    TensorInfo tensor;
    tensor.name = name;
    tensor.role = role;
    tensor.dtype = dtype;
    tensor.offsets = {offset};
    tensor.checkpoint = true;
    tensor.sharding.resize(shape.size());
    tensor.granules.assign(shape.size(), 1);
    if (cut < shape.size())
      tensor.sharding[cut] = {{"a", ranks, 1}};
    tensor.shape = std::move(shape);
    metadata.tensors.push_back(std::move(tensor));
  };
  constexpr int64_t mib = 1 << 20;
  add("matrix", Role::Parameter, EspalierF32, {2100, 2050}, 0,
      ranks < 3 ? 1 : 0);
  metadata.tensors.back().alias = "head";
  metadata.tensors.back().aliasTransposed = true;
  add("exp_avg/uneven", Role::State, EspalierF64, {7, 3}, 40 * mib, 0);
  add("uneven", Role::Parameter, EspalierBf16, {7, 3}, 41 * mib, 9);
  add("mean", Role::Buffer, EspalierI64, {}, 42 * mib, 0);
  return metadata;
}

/// Byte b of logical element e of tensor t.
uint8_t byteOf(size_t tensor, int64_t element, uint64_t byte) {
  return static_cast<uint8_t>(element * 7 + static_cast<int64_t>(byte) * 3 +
                              static_cast<int64_t>(tensor) + (element >> 8));
}

/// Fills (or, with `check`, compares) this rank's part of all tensors. Padding
/// is given other bytes.
bool visit(Rank &rank, bool check) {
  bool same = true;
  for (size_t t = 0; t < rank.metadata.tensors.size(); ++t) {
    const TensorInfo &tensor = rank.metadata.tensors[t];
    uint8_t *data = rank.place(tensor, rank.context.rank);
    uint64_t bytes = dtypeBytes(tensor.dtype);
    Shard shard = shardOf(tensor, rank.context.rank);
    if (!check)
      std::memset(data, 0xee,
                  static_cast<uint64_t>(shard.localElements) * bytes);
    forEachRun(tensor.shape, shard, 0, tensor.elements(),
               [&](int64_t logical, int64_t local, int64_t count) {
                 for (int64_t i = 0; i < count; ++i)
                   for (uint64_t b = 0; b < bytes; ++b) {
                     uint8_t &byte =
                         data[static_cast<uint64_t>(local + i) * bytes + b];
                     if (check)
                       same &= byte == byteOf(t, logical + i, b);
                     else
                       byte = byteOf(t, logical + i, b);
                   }
               });
  }
  return same;
}

int save(const std::string &directory, int32_t ranks, int64_t step) {
  Metadata metadata = layoutFor(ranks);
  CheckpointLayout layout(metadata);
  return onRanks(metadata, ranks, arenaBytes, layout.chunks.size(),
                 [&](Rank &rank) {
                   visit(rank, false);
                   return saveCheckpoint(rank, layout, directory, step).ok();
                 });
}

std::string openError(const std::string &directory) {
  Metadata metadata = layoutFor(1);
  CheckpointLayout layout(metadata);
  SavedCheckpoint saved;
  Status status = saved.open(directory, metadata, layout);
  return status.ok() ? "" : status.text();
}

/// Ranks that got all their values.
int load(const std::string &directory, int32_t ranks) {
  Metadata metadata = layoutFor(ranks);
  CheckpointLayout layout(metadata);
  SavedCheckpoint saved;
  if (!saved.open(directory, metadata, layout).ok())
    return -1;
  return onRanks(metadata, ranks, arenaBytes, 0, [&](Rank &rank) {
    bool loaded = saved.load(rank, layout).ok();
    rank.communicator.barrier();
    return loaded && visit(rank, true);
  });
}

TEST(Checkpoint, AnyLayoutReadsAnyOther) {
  TemporaryFolder folder;
  std::string first;
  for (int32_t ranks : {1, 2, 3}) {
    std::string directory = folder / std::to_string(ranks);
    std::filesystem::create_directory(directory);
    ASSERT_EQ(save(directory, ranks, 4), ranks);
    // The files are the same, whoever wrote them.
    std::string bytes =
        readText(directory + "/step-4/model-00001-of-00001.safetensors") +
        readText(directory + "/step-4/optimizer-00001-of-00001.safetensors") +
        readText(directory + "/step-4/state.json");
    if (ranks == 1)
      first = bytes;
    EXPECT_TRUE(bytes == first) << ranks;
    for (int32_t readers : {1, 2, 3, 4})
      EXPECT_EQ(load(directory, readers), readers);
  }
}

TEST(Checkpoint, WritesBothNamesOfATiedPair) {
  TemporaryFolder folder;
  ASSERT_EQ(save(folder.path, 2, 1), 2);
  SafetensorsFile file;
  ASSERT_TRUE(
      file.open(folder / "step-1/model-00001-of-00001.safetensors").ok());
  const SafetensorsEntry &matrix = file.tensors().at("matrix");
  const SafetensorsEntry &head = file.tensors().at("head");
  EXPECT_EQ(head.shape, (std::vector<int64_t>{2050, 2100}));
  bool same = true;
  for (uint64_t row = 0; row < 2100; ++row)
    for (uint64_t column = 0; column < 2050; ++column)
      same &= std::memcmp(file.data(matrix) + (row * 2050 + column) * 4,
                          file.data(head) + (column * 2100 + row) * 4, 4) == 0;
  EXPECT_TRUE(same);
}

TEST(Checkpoint, KeepsTheLastTwo) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "step-9"); // cut off in writing
  writeText(folder / "step-9/state.json", "{");
  writeText(folder / "notes.txt", "mine");
  for (int64_t step : {2, 4, 6})
    ASSERT_EQ(save(folder.path, 1, step), 1);
  EXPECT_FALSE(exists(folder / "step-2"));
  EXPECT_FALSE(exists(folder / "step-9"));
  EXPECT_TRUE(exists(folder / "step-4/state.json"));
  EXPECT_TRUE(exists(folder / "step-6/state.json"));
  EXPECT_TRUE(exists(folder / "notes.txt"));
  EXPECT_EQ(openError(folder.path), "");
}

TEST(Checkpoint, RefusesDamage) {
  TemporaryFolder folder;
  ASSERT_EQ(save(folder.path, 1, 3), 1);
  std::string model = folder / "step-3/model-00001-of-00001.safetensors";
  std::string state = folder / "step-3/state.json";
  std::string index = folder / "model.safetensors.index.json";
  auto broken = [&](const std::string &path, auto change) {
    std::string before = readText(path), text = before;
    change(text);
    writeText(path, text);
    std::string error = openError(folder.path);
    writeText(path, before);
    return error;
  };
  auto replace = [](const char *from, const char *to) {
    return [=](std::string &text) {
      ASSERT_NE(text.find(from), std::string::npos) << from;
      text.replace(text.find(from), std::strlen(from), to);
    };
  };
  auto has = [](const std::string &text, const char *part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(broken(model, [](std::string &text) { text.pop_back(); }),
                  "model-00001"));
  EXPECT_TRUE(
      has(broken(model, replace("matrix", "matrox")), "no tensor 'matrix'"));
  EXPECT_TRUE(has(broken(model, replace("BF16", "F16\"")), "model-00001"));
  EXPECT_TRUE(has(broken(model, replace("[7,3]", "[3,7]")), "shape") ||
              has(broken(model, replace("[7,3]", "[3,7]")), "[3, 7]"));
  EXPECT_TRUE(has(broken(state, replace("\"m\"", "\"n\"")), "another model"));
  EXPECT_TRUE(has(broken(state, replace("\"seed\": 0", "\"seed\": 1")),
                  "with the seed 1"));
  EXPECT_TRUE(has(
      broken(state, replace("\"data_position\": 3", "\"data_position\": 4")),
      "another global batch"));
  EXPECT_TRUE(has(broken(state, replace("\"step\": 3", "\"step\": 4")),
                  "is of step 4"));
  EXPECT_TRUE(has(broken(index, replace("step-3", "../../etc")),
                  "no file of a checkpoint"));
  EXPECT_TRUE(has(broken(index, [](std::string &text) { text.resize(20); }),
                  "not valid JSON"));
  for (const std::string &path : {model, state}) {
    std::filesystem::rename(path, path + ".away");
    EXPECT_TRUE(has(openError(folder.path), "cannot open"));
    std::filesystem::rename(path + ".away", path);
  }
  EXPECT_EQ(openError(folder.path), "");
}

TEST(Checkpoint, FindsAFlippedBit) {
  TemporaryFolder folder;
  ASSERT_EQ(save(folder.path, 1, 3), 1);
  std::string path = folder / "step-3/model-00001-of-00001.safetensors";
  auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  for (int64_t at : {size - 1, size / 2, size / 4}) {
    auto flip = [&] {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(at);
      char byte = static_cast<char>(file.get() ^ 4);
      file.seekp(at);
      file.put(byte);
    };
    flip();
    // Opening looks at the headers only; the bytes are checked as they are
    // read.
    Metadata metadata = layoutFor(2);
    CheckpointLayout layout(metadata);
    SavedCheckpoint saved;
    ASSERT_TRUE(saved.open(folder.path, metadata, layout).ok());
    EXPECT_EQ(onRanks(metadata, 2, arenaBytes, 0,
                      [&](Rank &rank) {
                        Status status = saved.load(rank, layout);
                        return status.ok() ||
                               status.text().find("is damaged") ==
                                   std::string::npos;
                      }),
              1);
    flip();
  }
  EXPECT_EQ(load(folder.path, 2), 2);
}

TEST(Checkpoint, AFullDiskLeavesTheOneBefore) {
  TemporaryFolder folder;
  if (mount("none", folder.path.c_str(), "tmpfs", 0, "size=60m") != 0)
    GTEST_SKIP() << "needs the right to mount a file system";
  EXPECT_EQ(save(folder.path, 2, 3), 2); // 35 MB
  EXPECT_EQ(save(folder.path, 2, 4), 0);
  EXPECT_FALSE(exists(folder / "step-4"));
  EXPECT_EQ(load(folder.path, 2), 2);
  Metadata metadata = layoutFor(2);
  EXPECT_NE(claimCheckpointDirectory(folder.path, CheckpointLayout(metadata))
                .text()
                .find("has room for only"),
            std::string::npos);
  EXPECT_EQ(umount2(folder.path.c_str(), MNT_DETACH), 0);
}

TEST(Checkpoint, AFailedSaveLeavesTheOneBefore) {
  TemporaryFolder folder;
  ASSERT_EQ(save(folder.path, 2, 3), 2);
  writeText(folder / "step-4", "in the way");
  EXPECT_EQ(save(folder.path, 2, 4), 0);
  EXPECT_EQ(load(folder.path, 2), 2);
}

} // namespace
