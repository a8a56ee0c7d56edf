//===- ExternalDataTest.cpp - Weights outside of the file -*- C++ -*-===//
//
// Each advisory on external data against other readers of ONNX files is a case.
//
//===----------------------------------------------------------------------===//

#include "gtest/gtest.h"

#include <filesystem>

#include "TestModel.h"

using namespace espalier;
using namespace espalier::onnx;
using Keys = std::vector<std::pair<std::string, std::string>>;

namespace {

/// y = x + w, with w of four floats in an external file.
TestModel externalModel(const Keys &keys) {
  TestModel model;
  model.input("x", {4});
  model.output("y");
  model.node("Add", {"x", "w"}, {"y"});
  auto &tensor = model.floats("w", {4}, {});
  tensor.clear_raw_data();
  tensor.set_data_location(1);
  for (const auto &[key, value] : keys) {
    auto &entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return model;
}

std::string importIn(const TemporaryFolder &folder, const Keys &keys,
                     const ImportOptions &options = {}) {
  folder.write("models/model.onnx", externalModel(keys).bytes());
  mlir::MLIRContext context;
  auto model = importOnnx(context, folder.path("models/model.onnx"), options);
  if (!model)
    return llvm::toString(model.takeError());
  return model->weightsAbsent ? "absent" : "";
}

} // namespace

TEST(ExternalData, IsReadWhereTheFileSays) {
  TemporaryFolder folder;
  folder.write("models/data/w.bin", std::string(24, '\0'));
  EXPECT_EQ(
      importIn(folder,
               {{"location", "data/w.bin"}, {"offset", "8"}, {"length", "16"}}),
      "");
  EXPECT_EQ(importIn(folder, {{"location", "none.bin"}}), "absent");
}

TEST(ExternalData, StaysBelowTheModelsDirectory) {
  TemporaryFolder folder;
  folder.write("secret.bin", std::string(16, '\0'));
  folder.write("models/a/w.bin", std::string(16, '\0'));
  for (const char *location :
       {"../secret.bin", "a/../../secret.bin", "/etc/passwd", "a//w.bin",
        "./a/w.bin", "a\\w.bin", "c:w.bin", "", "a/.."}) {
    SCOPED_TRACE(location);
    EXPECT_NE(importIn(folder, {{"location", location}})
                  .find("external data whose location"),
              std::string::npos);
  }
  std::string withNul("a/w.bin\0x", 9);
  EXPECT_NE(importIn(folder, {{"location", withNul}}), "");
}

TEST(ExternalData, FollowsNoLinks) {
  TemporaryFolder folder;
  folder.write("secret.bin", std::string(16, '\0'));
  folder.write("outside/w.bin", std::string(16, '\0'));
  folder.write("models/own.bin", std::string(16, '\0'));
  namespace fs = std::filesystem;
  fs::create_symlink(folder.path("secret.bin"), folder.path("models/s.bin"));
  fs::create_directory_symlink(folder.path("outside"), folder.path("models/d"));
  fs::create_hard_link(folder.path("models/own.bin"),
                       folder.path("models/hard.bin"));
  EXPECT_NE(importIn(folder, {{"location", "s.bin"}}).find("symbolic link"),
            std::string::npos);
  EXPECT_NE(importIn(folder, {{"location", "d/w.bin"}}).find("symbolic link"),
            std::string::npos);
  EXPECT_NE(importIn(folder, {{"location", "hard.bin"}}).find("hard link"),
            std::string::npos);
  ImportOptions cache;
  cache.allowHardLinks = true;
  EXPECT_EQ(importIn(folder, {{"location", "hard.bin"}}, cache), "");
}

TEST(ExternalData, IsARegularFile) {
  TemporaryFolder folder;
  folder.write("models/d/w.bin", "");
  EXPECT_NE(importIn(folder, {{"location", "d"}}).find("regular file"),
            std::string::npos);
}

TEST(ExternalData, HasExactSizes) {
  TemporaryFolder folder;
  folder.write("models/w.bin", std::string(24, '\0'));
  const Keys wrong[] = {
      {{"location", "w.bin"}},                                     // 24 for 16
      {{"location", "w.bin"}, {"length", "8"}},                    // too few
      {{"location", "w.bin"}, {"length", "24"}},                   // too many
      {{"location", "w.bin"}, {"offset", "12"}, {"length", "16"}}, // beyond
      {{"location", "w.bin"}, {"offset", "-8"}, {"length", "16"}},
      {{"location", "w.bin"}, {"length", "-16"}},
      {{"location", "w.bin"},
       {"offset", "18446744073709551608"},
       {"length", "16"}},
      {{"location", "w.bin"}, {"length", "16x"}},
      {{"location", "w.bin"}, {"dims", "4"}, {"length", "16"}},
  };
  for (const Keys &keys : wrong) {
    SCOPED_TRACE(keys.back().first + "=" + keys.back().second);
    EXPECT_NE(importIn(folder, keys), "");
  }
}

TEST(ExternalData, IsWhatItsChecksumSays) {
  TemporaryFolder folder;
  folder.write("models/w.bin", std::string(16, '\0'));
  // printf '\0%.0s' {1..16} | sha1sum
  EXPECT_EQ(importIn(folder, {{"location", "w.bin"},
                              {"checksum",
                               "e129f27c5103bc5cc44bcdf0a15e160d445066ff"}}),
            "");
  EXPECT_NE(importIn(folder, {{"location", "w.bin"},
                              {"checksum",
                               "0129f27c5103bc5cc44bcdf0a15e160d445066ff"}}),
            "");
}

TEST(ExternalData, HasOneCarrier) {
  TestModel model = externalModel({{"location", "w.bin"}});
  model.graph.mutable_initializer(0)->add_float_data(1);
  EXPECT_NE(refusal(model).find("in two places"), std::string::npos);
}

TEST(ExternalData, OfSparseInitializersIsNotRead) {
  TestModel model;
  model.input("x", {4});
  model.output("y");
  model.node("Relu", {"x"}, {"y"});
  auto &values = *model.graph.add_sparse_initializer()->mutable_values();
  values.set_data_location(1);
  auto &entry = *values.add_external_data();
  entry.set_key("location");
  entry.set_value("/etc/passwd");
  EXPECT_NE(refusal(model).find("sparse"), std::string::npos);
}
