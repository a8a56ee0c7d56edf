//===- TrainingTest.cpp - Whole runs of a small program -------------------===//

#include "gtest/gtest.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "FakeProgram.h"

using namespace espalier::test;

namespace {

class Training : public testing::Test {
protected:
  void SetUp() override {
    fault = {};
    writeFakeData(data, 23);
  }

  /// Arguments of a run with a log and checkpoints.
  std::vector<std::string> arguments(const std::string &steps) const {
    return {"--data",
            data,
            "--steps",
            steps,
            "--checkpoint-dir",
            saved,
            "--log",
            log,
            "--checkpoint-every",
            "2"};
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

  /// All bytes of a checkpoint.
  std::string checkpoint(const std::string &directory, int64_t step) {
    std::string folderName = directory + "/step-" + std::to_string(step);
    return readText(folderName + "/model-00001-of-00001.safetensors") +
           readText(folderName + "/optimizer-00001-of-00001.safetensors") +
           readText(folderName + "/state.json") +
           readText(directory + "/model.safetensors.index.json");
  }

  TemporaryFolder folder;
  std::string data = folder / "data.safetensors", saved = folder / "ckpt",
              log = folder / "log.jsonl";
};

bool has(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Training, LearnsTheSameOnAnyNumberOfRanks) {
  std::vector<double> single;
  for (int32_t ranks : {1, 2, 3, 4, 8}) {
    RunResult run = runTraining(
        fakeProgram(ranks), {"--data", data, "--steps", "60", "--log", log});
    ASSERT_EQ(run.status, 0) << run.errors;
    std::vector<double> loss = losses(log);
    ASSERT_EQ(loss.size(), 60u);
    EXPECT_LT(loss.back(), loss.front() / 10);
    if (ranks == 1)
      single = loss;
    for (size_t i = 0; i < loss.size(); ++i)
      EXPECT_NEAR(loss[i], single[i], 1e-4 * (1 + single[i]));
  }
}

TEST_F(Training, ResumesBitForBit) {
  RunResult whole = runTraining(fakeProgram(2), arguments("11"));
  ASSERT_EQ(whole.status, 0) << whole.errors;
  std::string expected = checkpoint(saved, 11);
  std::vector<double> expectedLoss = losses(log);
  std::filesystem::remove_all(saved);
  ASSERT_EQ(runTraining(fakeProgram(2), arguments("5")).status, 0);
  std::vector<std::string> resumed = arguments("11");
  resumed.push_back("--resume");
  RunResult run = runTraining(fakeProgram(2), resumed);
  ASSERT_EQ(run.status, 0) << run.errors;
  EXPECT_TRUE(has(run.output, "resuming after step 5"));
  EXPECT_EQ(checkpoint(saved, 11), expected);
  EXPECT_EQ(losses(log), expectedLoss);
  run = runTraining(fakeProgram(2), resumed);
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(has(run.output, "all 11 steps are done already"));
}

TEST_F(Training, ResumesOnOtherRanks) {
  ASSERT_EQ(runTraining(fakeProgram(2), arguments("20")).status, 0);
  std::vector<double> expected = losses(log);
  std::filesystem::remove_all(saved);
  ASSERT_EQ(runTraining(fakeProgram(2), arguments("6")).status, 0);
  for (auto [ranks, steps] : {std::pair{3, "12"}, {1, "20"}}) {
    std::vector<std::string> resumed = arguments(steps);
    resumed.push_back("--resume");
    RunResult run = runTraining(fakeProgram(ranks), resumed);
    ASSERT_EQ(run.status, 0) << run.errors;
  }
  std::vector<double> loss = losses(log);
  ASSERT_EQ(loss.size(), 20u);
  for (size_t i = 0; i < loss.size(); ++i)
    EXPECT_NEAR(loss[i], expected[i], 1e-4 * (1 + expected[i]));
}

TEST_F(Training, ResumesAfterAKillAtAnyTime) {
  ASSERT_EQ(runTraining(fakeProgram(2), arguments("40")).status, 0);
  std::string expected = checkpoint(saved, 40);
  std::vector<double> expectedLoss = losses(log);
  std::filesystem::remove_all(saved);
  std::vector<std::string> resumed = arguments("40");
  resumed.push_back("--resume");
  int killed = 0;
  for (unsigned delay = 3; killed < 12; delay = delay * 5 % 61) {
    int pid = startTraining(fakeProgram(2), resumed, folder / "run");
    usleep(delay * 1000);
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0) << readText(folder / "run.err");
      break;
    }
    ++killed;
    usleep(2000); // the ranks follow their launcher
  }
  RunResult run = runTraining(fakeProgram(2), resumed);
  ASSERT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(checkpoint(saved, 40), expected);
  EXPECT_EQ(losses(log), expectedLoss);
}

TEST_F(Training, NamesALostRank) {
  fault = {Fault::Die, 1, 3};
  RunResult run = runTraining(fakeProgram(3), {"--data", data});
  EXPECT_EQ(run.status, 5);
  EXPECT_TRUE(has(run.errors, "rank 1 of 3 was lost in step 4 at op "
                              "'forward_1': it was killed by signal 9"))
      << run.errors;
}

TEST_F(Training, NamesAStoppedRank) {
  setenv("ESPALIER_HEARTBEAT_LIMIT", "1", 1);
  fault = {Fault::Stop, 0, 2};
  RunResult run = runTraining(fakeProgram(2), {"--data", data});
  unsetenv("ESPALIER_HEARTBEAT_LIMIT");
  EXPECT_EQ(run.status, 5);
  EXPECT_TRUE(has(run.errors, "rank 0 of 2 was lost in step 3 at op "
                              "'forward_1': its heartbeat stopped"))
      << run.errors;
}

TEST_F(Training, ASlowRankIsNotLost) {
  setenv("ESPALIER_HEARTBEAT_LIMIT", "1", 1);
  fault = {Fault::Slow, 1, 2};
  RunResult run = runTraining(fakeProgram(2), {"--data", data});
  unsetenv("ESPALIER_HEARTBEAT_LIMIT");
  EXPECT_EQ(run.status, 0) << run.errors;
}

TEST_F(Training, NamesDifferentCollectives) {
  fault = {Fault::OtherCollective, 1, 2};
  RunResult run = runTraining(fakeProgram(2), {"--data", data});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.errors, "different collectives meet")) << run.errors;
  EXPECT_TRUE(has(run.errors, "at op 'odd'")) << run.errors;
}

TEST_F(Training, TellsThatRanksWaitForEachOther) {
  // Rank 1 waits at the end of the step, the others in a collective.
  fault = {Fault::Skip, 1, 2};
  RunResult run = runTraining(fakeProgram(3), {"--data", data});
  EXPECT_EQ(run.status, 5);
  EXPECT_TRUE(has(run.errors, "the ranks wait for each other: rank 0 in step 3 "
                              "at op '/reduce/Gradients_2'; rank 1 in step 3 "
                              "at op 'forward_1'"))
      << run.errors;
}

TEST_F(Training, StopsAtALossThatIsNotFinite) {
  fault = {Fault::NotFinite, 0, 4};
  RunResult run = runTraining(fakeProgram(2), arguments("10"));
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.errors, "the loss of step 5 is nan")) << run.errors;
  EXPECT_TRUE(std::filesystem::exists(saved + "/step-4"));
  EXPECT_FALSE(std::filesystem::exists(saved + "/step-5"));
}

TEST_F(Training, SavesWhenTerminated) {
  for (int signal : {SIGTERM, SIGINT}) {
    std::filesystem::remove_all(saved);
    std::filesystem::remove(log);
    fault = {Fault::Sleep, 0, 0};
    int pid = startTraining(fakeProgram(2), arguments("1000"), folder / "run");
    while (!has(readText(log), "\"step\": 3,"))
      usleep(1000);
    kill(pid, signal);
    int status = 0;
    waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    size_t done = losses(log).size();
    EXPECT_LT(done, 20u);
    EXPECT_TRUE(std::filesystem::exists(saved + "/step-" +
                                        std::to_string(done) + "/state.json"));
  }
}

TEST_F(Training, TellsWrongUsage) {
  const std::vector<std::vector<std::string>> cases = {
      {"--stepz", "3"},
      {"--steps"},
      {"--steps", "three"},
      {"--steps", "-1"},
      {"--resume"},
      {"--checkpoint-every", "2"},
      {"--steps", "1", "--steps", "2"},
      {"data"}};
  for (const std::vector<std::string> &one : cases)
    EXPECT_EQ(runTraining(fakeProgram(1), one).status, 2) << one[0];
  RunResult help = runTraining(fakeProgram(1), {"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(has(help.output, "--checkpoint-every"));
}

TEST_F(Training, TellsWrongInputs) {
  RunResult run = runTraining(fakeProgram(2), {});
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.errors, "/nowhere/data.safetensors")) << run.errors;
  ASSERT_EQ(runTraining(fakeProgram(2), arguments("2")).status, 0);
  run = runTraining(fakeProgram(2), arguments("4"));
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.errors, "has a checkpoint already")) << run.errors;
  std::vector<std::string> resumed = arguments("4");
  resumed.push_back("--resume");
  run = runTraining(fakeProgram(2, "model-b"), resumed);
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(has(run.errors, "another model")) << run.errors;
  std::filesystem::remove_all(saved);
  writeText(saved, "a file");
  run = runTraining(fakeProgram(2), arguments("4"));
  EXPECT_EQ(run.status, 1);
}

TEST_F(Training, ResumeWithoutACheckpointBegins) {
  std::vector<std::string> resumed = arguments("2");
  resumed.push_back("--resume");
  RunResult run = runTraining(fakeProgram(2), resumed);
  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_TRUE(has(run.output, "starts from the beginning"));
}

TEST_F(Training, WritesAProfile) {
  RunResult run = runTraining(
      fakeProgram(2), {"--data", data, "--profile", folder / "profile.json"});
  ASSERT_EQ(run.status, 0) << run.errors;
  auto profile =
      nlohmann::json::parse(readText(folder / "profile.json"), nullptr, false);
  EXPECT_EQ(profile["steps"], 10);
  EXPECT_EQ(profile["ops"][1]["class"], "Gradients");
  EXPECT_GT(profile["ops"][1]["seconds"][1].get<double>(), 0.0);
  EXPECT_GT(profile["classes"]["AllGather"][0].get<double>(), 0.0);
  EXPECT_GT(profile["collectives"]["all_reduce"][0].get<double>(), 0.0);
}

/// Starts one process for each rank, as torchrun does.
std::vector<int> startRanks(const std::vector<std::string> &arguments,
                            const std::string &output) {
  std::vector<int> pids;
  for (int rank = 0; rank < 2; ++rank) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_PORT", std::to_string(getpid()).c_str(), 1);
    pids.push_back(startTraining(fakeProgram(2), arguments,
                                 output + std::to_string(rank)));
  }
  for (const char *name : {"RANK", "WORLD_SIZE", "MASTER_PORT"})
    unsetenv(name);
  return pids;
}

TEST_F(Training, IsOneRankUnderTorchrun) {
  ASSERT_EQ(runTraining(fakeProgram(2), arguments("6")).status, 0);
  std::string expected = checkpoint(saved, 6);
  std::filesystem::remove_all(saved);
  for (int pid : startRanks(arguments("6"), folder / "rank")) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << readText(folder / "rank0.err")
                         << readText(folder / "rank1.err");
  }
  EXPECT_EQ(checkpoint(saved, 6), expected);
}

TEST_F(Training, NamesALostRankUnderTorchrun) {
  fault = {Fault::Die, 0, 3};
  std::vector<int> pids = startRanks({"--data", data}, folder / "rank");
  int status = 0;
  waitpid(pids[0], &status, 0);
  waitpid(pids[1], &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_TRUE(has(readText(folder / "rank1.err"),
                  "rank 0 in step 4 at op 'forward_1' was lost"))
      << readText(folder / "rank1.err");
}

} // namespace
