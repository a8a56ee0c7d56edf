//===- JobTest.cpp - Right jobs are read, wrong ones are told why ---------===//

#include "espalier/Job/Job.h"

#include "espalier/Job/PlanFile.h"

#include "gtest/gtest.h"
#include "llvm/Support/raw_ostream.h"

using namespace espalier;

static const char *const kJob = R"(model: model.onnx
dims: {batch: 4, sequence: 16}
train:
  loss: {kind: cross_entropy, logits: logits, labels: labels, ignore_index: -100}
  optimizer: {kind: adamw, lr: 6.0e-4, betas: [0.9, 0.95], eps: 1.0e-8, weight_decay: 0.1}
  schedule: {kind: cosine, warmup_steps: 100, total_steps: 1000, min_lr: 6.0e-5}
  grad_clip: 1.0
  global_batch: 512
  precision: fp32
  frozen: ["*inv_freq*"]
  accept_export_rewrites: false
  tied: [[a, b]]
  batch_norm: train
  init: [{match: "*.bias", zeros: true}, {match: "*", normal: 0.02}]
  seed: 7
data: {kind: tokens, file: corpus.bin, dtype: uint16, input: input_ids, labels: labels}
cluster: {device: h100-sxm, nodes: 4, devices_per_node: 8, inter_node_gbit_per_s: 3200}
layout: {dp: 4, tp: [2, 4], zero: {stage: 3, group: 8}, sequence_parallel: true}
shardings: {"*.wte.weight": [[tp], []]}
memory: {reserve: 5%, limit: 60GB}
)";

static std::string with(const std::string &from, const std::string &to) {
  std::string text = kJob;
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// The messages for a job, each on a line.
static std::string messagesFor(const std::string &text) {
  Messages messages;
  EXPECT_FALSE(parseJob(text, "job.yaml", messages)) << text;
  return messages.text();
}

TEST(Job, ReadsEveryKey) {
  Messages messages;
  auto job = parseJob(kJob, "folder/job.yaml", messages);
  ASSERT_TRUE(job) << messages.text();
  EXPECT_EQ(job->resolve("model.onnx"), "folder/model.onnx");
  EXPECT_EQ(job->dims.at("batch"), 4);
  EXPECT_FALSE(job->batchIsAuto);
  EXPECT_EQ(job->train.loss.ignoreIndex, -100);
  EXPECT_EQ(job->train.optimizer.beta2, 0.95);
  EXPECT_EQ(job->train.schedule.kind, ScheduleJob::Kind::Cosine);
  EXPECT_EQ(job->train.gradientClip, 1.0);
  EXPECT_EQ(job->train.globalBatch, 512);
  EXPECT_EQ(job->train.tied.front().second, "b");
  EXPECT_EQ(job->train.init.back().deviation, 0.02);
  EXPECT_EQ(job->data->kind, DataJob::Kind::Tokens);
  EXPECT_EQ(job->cluster.nodes * job->cluster.devicesPerNode, 32);
  EXPECT_EQ(job->layout.degrees.at("dp"), 4);
  EXPECT_EQ(*job->layout.tensor, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(job->layout.zeroGroup, 8);
  EXPECT_EQ(job->shardings.front().second.size(), 2u);
  EXPECT_EQ(job->memory.limit, 60e9);
  EXPECT_EQ(job->memory.reserve, 0.05);
}

TEST(Job, DefaultsAreThoseOfTheReadme) {
  Messages messages;
  auto job = parseJob("model: m.onnx\n"
                      "train:\n"
                      "  loss: {kind: mse, prediction: y, target: t}\n"
                      "  optimizer: {kind: adamw, lr: 0.1}\n"
                      "  global_batch: 8\n"
                      "cluster: {device: cpu}\n",
                      "job.yaml", messages);
  ASSERT_TRUE(job) << messages.text();
  EXPECT_TRUE(job->batchIsAuto);
  EXPECT_TRUE(job->layout.isAuto);
  EXPECT_EQ(job->train.optimizer.weightDecay, 0.01); // as PyTorch's AdamW
  EXPECT_EQ(job->train.schedule.kind, ScheduleJob::Kind::Constant);
  EXPECT_FALSE(job->data);
}

namespace {
struct WrongJob {
  const char *from, *to, *message;
};
} // namespace

TEST(Job, NamesLineKeyAndWhatIsExpected) {
  static const WrongJob cases[] = {
      {"seed: 7", "sed: 7",
       "job.yaml:15:3: key 'train.sed': is not known; the nearest is 'seed'"},
      {"model: model.onnx\n", "", "job.yaml:1:1: key 'model': is missing"},
      {"seed: 7", "seed: 7\n  seed: 8", "key 'train.seed': is given twice"},
      {"global_batch: 512", "global_batch: 0",
       "key 'train.global_batch': expects a whole number from 1 to"},
      {"global_batch: 512", "global_batch: 5.5",
       "expects a whole number, but got '5.5'"},
      {"global_batch: 512", "global_batch: \"512\"",
       "expects a whole number, but got '512'"},
      {"lr: 6.0e-4", "lr: fast", "key 'train.optimizer.lr': expects a number"},
      {"lr: 6.0e-4", "lr: -1", "expects a number from 0"},
      {"lr: 6.0e-4", "lr: nan", "expects a number, but got 'nan'"},
      {"betas: [0.9, 0.95]", "betas: [0.9]", "expects a list of two numbers"},
      {"betas: [0.9, 0.95]", "betas: [0.9, 1.0]",
       "key 'train.optimizer.betas'"},
      {"kind: adamw", "kind: adam",
       "expects one of adamw, sgd, but got 'adam'"},
      {"kind: cosine", "kind: cubic",
       "expects one of constant, linear, cosine"},
      {"total_steps: 1000, ", "",
       "key 'train.schedule.total_steps': is missing"},
      {"warmup_steps: 100", "warmup_steps: 1000",
       "expects fewer than total_steps"},
      {"grad_clip: 1.0", "grad_clip: 0", "expects a number above 0"},
      {"batch_norm: train", "batch_norm: yes", "expects one of train, frozen"},
      {"normal: 0.02", "normal: 0.02, ones: true", "expects one of zeros"},
      {"tied: [[a, b]]", "tied: [a, b]", "expects pairs of names"},
      {"sequence: 16", "sequence: -1", "key 'dims.sequence'"},
      {", sequence: 16", "", "key 'dims.sequence': is missing"},
      {"dtype: uint16", "dtype: int8", "expects one of uint16, uint32"},
      {"nodes: 4", "nodes: 0", "key 'cluster.nodes'"},
      {"dp: 4", "dpp: 4", "the nearest is 'dp'"},
      {"stage: 3", "stage: 4", "expects a whole number from 0 to 3"},
      {"sequence_parallel: true", "sequence_parallel: maybe",
       "expects true or false, but got 'maybe'"},
      {"reserve: 5%", "reserve: 5", "expects a percentage"},
      {"limit: 60GB", "limit: 60", "expects a size in KB, MB, GB or TB"},
      {"[[tp], []]", "tp", "expects a list, but got 'tp'"},
      {"data: {", "data: &anchor {", "has an anchor"},
      {"seed: 7", "seed: *seven", "is an alias"},
      {"seed: 7", "seed: !!int 7", "has a tag"},
      {"train:", "train: [", "job.yaml:"},
      {"precision: fp32", "precision:", "expects text, but got nothing"},
  };
  for (const WrongJob &wrong : cases) {
    std::string messages = messagesFor(with(wrong.from, wrong.to));
    EXPECT_NE(messages.find(wrong.message), std::string::npos)
        << wrong.to << " gave:\n"
        << messages;
  }
}

TEST(Job, TellsAllMistakesAtOnce) {
  std::string text = with("seed: 7", "sed: 7");
  text.replace(text.find("nodes: 4"), 8, "nodes: x");
  std::string messages = messagesFor(text);
  EXPECT_NE(messages.find("train.sed"), std::string::npos) << messages;
  EXPECT_NE(messages.find("cluster.nodes"), std::string::npos) << messages;
}

TEST(Job, RefusesHostileFiles) {
  EXPECT_NE(messagesFor(std::string(2 << 20, 'a')).find("larger than 1 MiB"),
            std::string::npos);
  EXPECT_NE(messagesFor(std::string("a\0b", 3)).find("NUL"), std::string::npos);
  EXPECT_NE(messagesFor("a: \xff\xfe").find("UTF-8"), std::string::npos);
  EXPECT_NE(messagesFor("").find("job.yaml"), std::string::npos);
  for (const char *unit : {"[", "{a: ", "- ", "? "}) {
    std::string deep;
    for (int i = 0; i < 100000; ++i)
      deep += unit;
    EXPECT_NE(messagesFor(deep).find("nested too deep"), std::string::npos)
        << unit;
  }
  EXPECT_NE(messagesFor("a: b\n---\nc: d\n").find("job.yaml"),
            std::string::npos);
  EXPECT_NE(messagesFor("- a\n- b\n").find("expects keys with values"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

static PlanFile smallPlan() {
  PlanFile plan;
  plan.modelFingerprint = "0123abcd";
  plan.mesh = {{"dp", 4, "network"}, {"tp", 2, "node"}};
  plan.layout = {{"dp", 4}, {"tp", 2}};
  plan.globalBatch = 512;
  plan.microBatch = 8;
  plan.microBatches = 16;
  plan.matrixProducts = "oneDNN";
  for (int layer = 0; layer < 30; ++layer)
    plan.addTensor("h." + std::to_string(layer) + ".attn.\"w\\\"", {48, 144},
                   {{}, {"tp"}});
  plan.addTensor("step", {}, {});
  return plan;
}

TEST(PlanFile, IsReadAsItWasWritten) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writePlan(smallPlan(), os);
  Messages messages;
  auto plan = parsePlan(text, "plan.yaml", messages);
  ASSERT_TRUE(plan) << messages.text() << "\n" << text;
  EXPECT_EQ(*plan, smallPlan());
}

TEST(PlanFile, DoesNotGrowWithDepth) {
  PlanFile plan = smallPlan();
  ASSERT_EQ(plan.tensors.size(), 2u);
  EXPECT_EQ(plan.tensors[0].name, "h.*.attn.\"w\\\"");
}

TEST(PlanFile, TellsWhatIsWrong) {
  std::string text;
  llvm::raw_string_ostream os(text);
  writePlan(smallPlan(), os);
  const std::pair<const char *, const char *> edits[] = {
      {"version: 1", "version: 2"},   {"size: 4", "size: 0"},
      {"micro: 8", "micro: x"},       {"axis: dp", "axes: dp"},
      {"oneDNN", "abacus"},           {"tensors:", "tensor:"},
      {"shape: [48", "shape: [[48]"}, {"layout: {", "layout: {dp: 1, "},
  };
  for (auto [from, to] : edits) {
    std::string edited = text;
    edited.replace(edited.find(from), std::string(from).size(), to);
    Messages messages;
    EXPECT_FALSE(parsePlan(edited, "plan.yaml", messages)) << to;
    EXPECT_NE(messages.text().find("plan.yaml:"), std::string::npos) << to;
  }
}
