//===- ReadmeTest.cpp - The job files that are shown or shipped are read --===//

#include "espalier/Job/Job.h"
#include "espalier/Job/PlanFile.h"

#include "gtest/gtest.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace espalier;

static std::string readFile(StringRef path) {
  auto buffer = MemoryBuffer::getFile((ESPALIER_SOURCE_DIR "/" + path).str());
  if (buffer)
    return (*buffer)->getBuffer().str();
  ADD_FAILURE() << path.str() << ": " << buffer.getError().message();
  return "";
}

/// The blocks of a page that are fenced as `language`.
static std::vector<std::string> blocksOf(StringRef page, StringRef language) {
  std::vector<std::string> blocks;
  std::string fence = ("```" + language + "\n").str();
  while (true) {
    page = page.split(fence).second;
    if (page.empty())
      return blocks;
    blocks.push_back(page.take_front(page.find("```")).str());
  }
}

TEST(Readme, ShowsJobsThatAreRead) {
  std::vector<std::string> blocks =
      blocksOf(readFile("lib/Job/README.md"), "yaml");
  EXPECT_EQ(blocks.size(), 2u);
  for (const std::string &block : blocks) {
    Messages messages;
    EXPECT_TRUE(parseJob(block, "README.md", messages))
        << messages.text() << "\n"
        << block;
  }
}

TEST(Readme, ShowsAPlanThatIsRead) {
  std::vector<std::string> blocks =
      blocksOf(readFile("lib/Job/README.md"), "yaml plan");
  ASSERT_EQ(blocks.size(), 1u);
  Messages messages;
  auto plan = parsePlan(blocks.front(), "README.md", messages);
  ASSERT_TRUE(plan) << messages.text();
  EXPECT_EQ(plan->tensors.size(), 2u);
}

TEST(Models, HaveJobsThatAreRead) {
  for (const char *model : {"mlp", "cnn", "gpt2", "bert", "llama"}) {
    Messages messages;
    std::string path = std::string(ESPALIER_SOURCE_DIR "/test/models/") + model;
    auto job = readJob(path + "/job.yaml", messages);
    ASSERT_TRUE(job) << messages.text();
    EXPECT_EQ(job->resolve(job->model), path + "/model.onnx");
    EXPECT_EQ(job->train.globalBatch, StringRef(model) == "bert" ? 6 : 8);
  }
}
