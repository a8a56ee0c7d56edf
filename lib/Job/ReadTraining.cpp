//===- ReadTraining.cpp - The section `train` of a job --------------------===//

#include <cmath>

#include "JobReader.h"

using namespace llvm;
using namespace espalier;

/// The value of `kind` in a mapping, or "".
static std::string kindOf(const YamlNode &node) {
  for (size_t i = 0; i < node.keys.size(); ++i)
    if (node.keys[i].scalar == "kind" && node.items[i].isScalar())
      return node.items[i].scalar;
  return "";
}

void JobReader::readTrain(const YamlNode &node, const std::string &path) {
  TrainJob &train = job.train;
  auto call = [this](auto method) {
    return [this, method](const YamlNode &n, const std::string &p) {
      (this->*method)(n, p);
    };
  };
  yaml.fields(node, path,
              {{"loss", true, call(&JobReader::readLoss)},
               {"optimizer", true, call(&JobReader::readOptimizer)},
               {"schedule", false, call(&JobReader::readSchedule)},
               {"grad_clip", false,
                [&](const YamlNode &n, const std::string &p) {
                  train.gradientClip =
                      yaml.number(n, p, 0, HUGE_VAL, /*open=*/true);
                }},
               {"global_batch", true,
                [&](const YamlNode &n, const std::string &p) {
                  train.globalBatch = yaml.integer(n, p, 1, int64_t(1) << 40);
                }},
               textField("precision", false, train.precision),
               textsField("frozen", train.frozen),
               textsField("trained", train.trained),
               boolField("accept_export_rewrites", train.acceptExportRewrites),
               {"tied", false, call(&JobReader::readTied)},
               {"batch_norm", false,
                [&](const YamlNode &n, const std::string &p) {
                  train.batchNormTrains =
                      yaml.choice(n, p, {"train", "frozen"}) == "train";
                }},
               {"init", false, call(&JobReader::readInit)},
               {"seed", false, [&](const YamlNode &n, const std::string &p) {
                  train.seed = yaml.integer(n, p, 0);
                }}});
}

void JobReader::readLoss(const YamlNode &node, const std::string &path) {
  LossJob &loss = job.train.loss;
  std::string kind;
  Field kindField = {
      "kind", true, [&](const YamlNode &n, const std::string &p) {
        kind = yaml.choice(n, p, {"cross_entropy", "mse", "output"});
      }};
  std::string given = kindOf(node);
  if (given == "mse") {
    loss.kind = LossJob::Kind::MeanSquaredError;
    yaml.fields(node, path,
                {kindField, textField("prediction", true, loss.prediction),
                 textField("target", true, loss.target)});
    return;
  }
  if (given == "output") {
    loss.kind = LossJob::Kind::Output;
    yaml.fields(node, path,
                {kindField, textField("name", true, loss.prediction),
                 textField("weight", false, loss.weight)});
    return;
  }
  loss.kind = LossJob::Kind::CrossEntropy;
  yaml.fields(
      node, path,
      {kindField,
       textField("logits", true, loss.prediction),
       textField("labels", true, loss.target),
       {"ignore_index", false, [&](const YamlNode &n, const std::string &p) {
          loss.ignoreIndex = yaml.integer(n, p, INT64_MIN);
        }}});
}

void JobReader::readOptimizer(const YamlNode &node, const std::string &path) {
  OptimizerJob &optimizer = job.train.optimizer;
  Field kindField = {"kind", true,
                     [&](const YamlNode &n, const std::string &p) {
                       yaml.choice(n, p, {"adamw", "sgd"});
                     }};
  Field rate = numberField("lr", true, optimizer.learningRate, 0, HUGE_VAL);
  Field decay =
      numberField("weight_decay", false, optimizer.weightDecay, 0, HUGE_VAL);
  if (kindOf(node) == "sgd") {
    optimizer.kind = OptimizerJob::Kind::Sgd;
    yaml.fields(
        node, path,
        {kindField, rate, decay,
         numberField("momentum", false, optimizer.momentum, 0, HUGE_VAL),
         numberField("dampening", false, optimizer.dampening, 0, HUGE_VAL),
         boolField("nesterov", optimizer.nesterov)});
    if (optimizer.nesterov && (optimizer.momentum == 0 || optimizer.dampening))
      yaml.error(node, path + ".nesterov",
                 "expects momentum above 0 and no dampening");
    return;
  }
  optimizer.kind = OptimizerJob::Kind::AdamW;
  optimizer.weightDecay = 0.01;
  yaml.fields(node, path,
              {kindField,
               rate,
               decay,
               {"betas", false,
                [&](const YamlNode &n, const std::string &p) {
                  if (!n.isSequence() || n.items.size() != 2)
                    return yaml.error(n, p, "expects a list of two numbers");
                  optimizer.beta1 =
                      yaml.number(n.items[0], p, 0, std::nextafter(1, 0));
                  optimizer.beta2 =
                      yaml.number(n.items[1], p, 0, std::nextafter(1, 0));
                }},
               numberField("eps", false, optimizer.epsilon, 0, HUGE_VAL)});
}

void JobReader::readSchedule(const YamlNode &node, const std::string &path) {
  ScheduleJob &schedule = job.train.schedule;
  std::string kind = "constant";
  yaml.fields(node, path,
              {{"kind", true,
                [&](const YamlNode &n, const std::string &p) {
                  kind = yaml.choice(n, p, {"constant", "linear", "cosine"});
                }},
               {"warmup_steps", false,
                [&](const YamlNode &n, const std::string &p) {
                  schedule.warmupSteps = yaml.integer(n, p, 0);
                }},
               {"total_steps", false,
                [&](const YamlNode &n, const std::string &p) {
                  schedule.totalSteps = yaml.integer(n, p, 1);
                }},
               numberField("min_lr", false, schedule.minimumLearningRate, 0,
                           HUGE_VAL)});
  schedule.kind = kind == "constant" ? ScheduleJob::Kind::Constant
                  : kind == "linear" ? ScheduleJob::Kind::Linear
                                     : ScheduleJob::Kind::Cosine;
  if (schedule.kind != ScheduleJob::Kind::Constant && !schedule.totalSteps)
    yaml.error(node, path + ".total_steps",
               "is missing: a " + kind + " schedule needs it");
  if (schedule.totalSteps && schedule.warmupSteps >= *schedule.totalSteps)
    yaml.error(node, path + ".warmup_steps",
               "expects fewer than total_steps, " +
                   std::to_string(*schedule.totalSteps) + ", but got " +
                   std::to_string(schedule.warmupSteps));
}

void JobReader::readTied(const YamlNode &node, const std::string &path) {
  if (!yaml.expectSequence(node, path))
    return;
  for (const YamlNode &pair : node.items) {
    if (!pair.isSequence() || pair.items.size() != 2) {
      yaml.error(pair, path, "expects pairs of names, as [[a, b]]");
      continue;
    }
    job.train.tied.emplace_back(yaml.text(pair.items[0], path),
                                yaml.text(pair.items[1], path));
  }
}

void JobReader::readInit(const YamlNode &node, const std::string &path) {
  if (!yaml.expectSequence(node, path))
    return;
  for (const YamlNode &item : node.items) {
    InitJob init{"", InitJob::Kind::Zeros, 0};
    int kinds = 0;
    auto flag = [&](StringRef key, InitJob::Kind kind) -> Field {
      return {key, false, [&, kind](const YamlNode &n, const std::string &p) {
                if (!yaml.boolean(n, p))
                  yaml.error(n, p, "expects true");
                init.kind = kind;
                ++kinds;
              }};
    };
    yaml.fields(
        item, path,
        {textField("match", true, init.match),
         flag("zeros", InitJob::Kind::Zeros),
         flag("ones", InitJob::Kind::Ones),
         {"normal", false, [&](const YamlNode &n, const std::string &p) {
            init.kind = InitJob::Kind::Normal;
            init.deviation = yaml.number(n, p, 0, HUGE_VAL);
            ++kinds;
          }}});
    if (item.isMapping() && kinds != 1)
      yaml.error(item, path, "expects one of zeros, ones, normal");
    job.train.init.push_back(init);
  }
}
