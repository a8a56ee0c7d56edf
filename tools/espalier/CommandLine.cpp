//===- CommandLine.cpp - Options of a command -----------------------------===//

#include "CommandLine.h"

#include "espalier/Support/YamlTree.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace espalier;

CommandLine::CommandLine(StringRef command, StringRef form, StringRef summary)
    : command(command), form(form), summary(summary) {}

void CommandLine::flag(StringRef name, bool &value, StringRef help) {
  Option option{name, "", help};
  option.flag = &value;
  options.push_back(option);
}

void CommandLine::option(StringRef name, std::optional<std::string> &value,
                         StringRef placeholder, StringRef help) {
  Option option{name, placeholder, help};
  option.value = &value;
  options.push_back(option);
}

void CommandLine::required(StringRef name, std::optional<std::string> &value,
                           StringRef placeholder, StringRef help) {
  option(name, value, placeholder, help);
  options.back().isRequired = true;
}

void CommandLine::repeated(StringRef name, std::vector<std::string> &values,
                           StringRef placeholder, StringRef help) {
  Option option{name, placeholder, help};
  option.values = &values;
  options.push_back(option);
}

void CommandLine::arguments(std::vector<std::string> &values, size_t least,
                            size_t most, StringRef placeholder) {
  rest = &values;
  leastRest = least;
  mostRest = most;
  restPlaceholder = placeholder;
}

int CommandLine::wrong(const std::string &what) const {
  errs() << "espalier " << command << ": " << what << "\n"
         << "usage: espalier " << command << " " << form << "\n"
         << "'espalier " << command << " --help' lists the options\n";
  return WrongUsage;
}

void CommandLine::printHelp() const {
  outs() << "usage: espalier " << command << " " << form << "\n\n"
         << summary << ".\n\noptions:\n";
  for (const Option &option : options)
    outs() << "  "
           << left_justify(option.name.str() + " " + option.placeholder.str(),
                           22)
           << " " << option.help << (option.isRequired ? " (required)" : "")
           << "\n";
  outs() << "  " << left_justify("--help", 22) << " this text\n";
}

/// Reads the option that `words` starts with and takes its words away.
std::optional<int> CommandLine::readOption(ArrayRef<StringRef> &words) {
  auto [name, inlined] = words.front().split('=');
  bool hasInlined = words.front().contains('=');
  words = words.drop_front();
  auto found =
      find_if(options, [&](const Option &o) { return o.name == name; });
  if (found == options.end()) {
    SmallVector<StringRef> known =
        map_to_vector(options, [](const Option &o) { return o.name; });
    known.push_back("--help");
    return wrong("there is no option '" + name.str() + "'; the nearest is '" +
                 nearestName(name, known).str() + "'");
  }
  if (found->flag) {
    if (hasInlined)
      return wrong("option '" + name.str() + "' takes no value");
    *found->flag = true;
    return std::nullopt;
  }
  if (!hasInlined && words.empty())
    return wrong("option '" + name.str() + "' expects a value");
  StringRef value = inlined;
  if (!hasInlined) {
    value = words.front();
    words = words.drop_front();
  }
  if (found->value) {
    if (found->value->has_value())
      return wrong("option '" + name.str() + "' is given twice");
    *found->value = value.str();
    return std::nullopt;
  }
  found->values->push_back(value.str());
  while (!words.empty() && !words.front().starts_with("-") &&
         words.front().contains('=')) {
    found->values->push_back(words.front().str());
    words = words.drop_front();
  }
  return std::nullopt;
}

std::optional<int> CommandLine::checkCounts() const {
  size_t count = rest ? rest->size() : 0;
  if (count < leastRest)
    return wrong("expects " + restPlaceholder.str());
  if (count > mostRest)
    return wrong("does not expect '" + (*rest)[mostRest] + "'");
  for (const Option &option : options)
    if (option.isRequired && !option.value->has_value())
      return wrong("expects option '" + option.name.str() + "'");
  return std::nullopt;
}

std::optional<int> CommandLine::parse(ArrayRef<StringRef> words) {
  bool onlyArguments = false;
  while (!words.empty()) {
    StringRef word = words.front();
    if (onlyArguments || !word.starts_with("-") || word == "-") {
      if (!rest)
        return wrong("does not expect '" + word.str() + "'");
      rest->push_back(word.str());
      words = words.drop_front();
    } else if (word == "--") {
      onlyArguments = true;
      words = words.drop_front();
    } else if (word == "--help" || word == "-h") {
      printHelp();
      return Done;
    } else if (std::optional<int> status = readOption(words)) {
      return status;
    }
  }
  return checkCounts();
}
