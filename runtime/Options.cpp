//===- Options.cpp - The command line of a training binary ----------------===//

#include "runtime/Options.h"

#include <cerrno>
#include <cstdlib>
#include <set>

namespace espalier::runtime {

const char *const helpText =
    R"(Trains the model that this binary was compiled from.

  --data F              read this file instead of the one that the job names
  --steps N             stop after N steps in all, those before a resume included
  --log F               write a JSON object a step
  --tensorboard DIR     write event files for TensorBoard
  --profile F           write the seconds of each op, as JSON
  --checkpoint-dir DIR  save at the end, and when ended by SIGINT or SIGTERM
  --checkpoint-every N  save every N steps too
  --resume              continue from the newest checkpoint in that folder
  --model DIR           where the model's files are, if they have moved

Exit status: 0 all steps done, 1 an input is at fault, 2 wrong usage,
5 a rank was lost, 130 and 143 ended by SIGINT and SIGTERM after a save.
)";

namespace {

Status parseCount(const std::string &option, const std::string &text,
                  int64_t least, std::optional<int64_t> &count) {
  char *end = nullptr;
  errno = 0;
  long long value = std::strtoll(text.c_str(), &end, 10);
  bool digits = !text.empty() && text[0] >= '0' && text[0] <= '9';
  if (!digits || *end != '\0' || errno != 0 || value < least)
    return Status::error(option + " expects a number of at least " +
                         std::to_string(least) + ", but got '" + text + "'");
  count = value;
  return Status::success();
}

std::string *textOption(const std::string &name, Options &options) {
  if (name == "--data")
    return &options.data;
  if (name == "--log")
    return &options.log;
  if (name == "--tensorboard")
    return &options.tensorBoard;
  if (name == "--profile")
    return &options.profile;
  if (name == "--checkpoint-dir")
    return &options.checkpointDir;
  if (name == "--model")
    return &options.model;
  return nullptr;
}

Status takeValue(const std::string &name, const std::string &value,
                 Options &options) {
  if (name == "--steps")
    return parseCount(name, value, 0, options.steps);
  if (name == "--checkpoint-every")
    return parseCount(name, value, 1, options.checkpointEvery);
  if (value.empty())
    return Status::error(name + " expects a path");
  *textOption(name, options) = value;
  return Status::success();
}

} // namespace

Status parseOptions(int count, char *const *arguments, Options &options) {
  std::set<std::string> given;
  for (int i = 1; i < count; ++i) {
    std::string name = arguments[i], value;
    size_t equals = name.find('=');
    bool attached = name.rfind("--", 0) == 0 && equals != std::string::npos;
    if (attached) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    bool isFlag = name == "--resume" || name == "--help" || name == "-h";
    bool known = isFlag || name == "--steps" || name == "--checkpoint-every" ||
                 textOption(name, options);
    if (!known)
      return Status::error("unknown argument '" + name + "'");
    if (!given.insert(name).second)
      return Status::error(name + " is given twice");
    if (isFlag) {
      if (attached)
        return Status::error(name + " takes no value");
      (name == "--resume" ? options.resume : options.help) = true;
      continue;
    }
    if (!attached) {
      if (++i == count)
        return Status::error(name + " expects a value");
      value = arguments[i];
    }
    ESPALIER_TRY(takeValue(name, value, options));
  }
  if (options.checkpointDir.empty() && options.resume && !options.help)
    return Status::error("--resume needs --checkpoint-dir");
  if (options.checkpointDir.empty() && options.checkpointEvery)
    return Status::error("--checkpoint-every needs --checkpoint-dir");
  return Status::success();
}

} // namespace espalier::runtime
