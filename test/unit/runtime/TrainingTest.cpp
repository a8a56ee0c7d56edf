//===- TrainingTest.cpp - Whole runs of a small program -------------------===//

#include "gtest/gtest.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "FakeProgram.h"

using namespace espalier::test;

namespace {

class Training : public testing::Test {
protected:
  void SetUp() override {
    fault = {};
    writeFakeData(data, 23);
  }

  /// The losses of a log, of steps 1, 2, ...
  std::vector<double> losses(const std::string &path) {
    std::vector<double> values;
    std::istringstream lines(readText(path));
    for (std::string line; std::getline(lines, line);) {
      auto object = nlohmann::json::parse(line, nullptr, false);
      EXPECT_EQ(object.value("step", 0), static_cast<int>(values.size()) + 1);
      EXPECT_GT(object.value("step_seconds", 0.0), 0.0);
      values.push_back(object.value("loss", NAN));
    }
    return values;
  }

  TemporaryFolder folder;
  std::string data = folder / "data.safetensors";
};

TEST_F(Training, TrainsOnTwoRanks) {
  RunResult run = runTraining(fakeProgram(2), {"--data", data, "--steps", "60",
                                               "--log", folder / "log.jsonl"});
  EXPECT_EQ(run.status, 0) << run.errors;
  std::vector<double> loss = losses(folder / "log.jsonl");
  ASSERT_EQ(loss.size(), 60u);
  EXPECT_LT(loss.back(), loss.front() / 10);
}

} // namespace
