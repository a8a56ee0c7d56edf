//===- CommandLine.h - Options of a command ---------------------*- C++ -*-===//
//
//   std::vector<std::string> texts;
//   std::optional<std::string> output;
//   CommandLine line("tokenize", "text... -o F", "Makes tokens of texts");
//   line.arguments(texts, 1, SIZE_MAX, "text");
//   line.required("-o", output, "F", "where the tokens go");
//   if (std::optional<int> status = line.parse(words))
//     return *status; // after --help, or a wrong usage
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_TOOLS_ESPALIER_COMMANDLINE_H
#define ESPALIER_TOOLS_ESPALIER_COMMANDLINE_H

#include "espalier/Support/ExitStatus.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace espalier {

/// An option is given as `--name value` or `--name=value`, before or after the
/// arguments; `--` ends the options. What is given twice is an error, but for
/// repeated options.
class CommandLine {
public:
  /// `form` is what follows the command's name in the line of usage.
  CommandLine(llvm::StringRef command, llvm::StringRef form,
              llvm::StringRef summary);

  void flag(llvm::StringRef name, bool &value, llvm::StringRef help);
  void option(llvm::StringRef name, std::optional<std::string> &value,
              llvm::StringRef placeholder, llvm::StringRef help);
  void required(llvm::StringRef name, std::optional<std::string> &value,
                llvm::StringRef placeholder, llvm::StringRef help);
  /// Takes each `--name value`, and the words after it as long as they have the
  /// form KEY=VALUE.
  void repeated(llvm::StringRef name, std::vector<std::string> &values,
                llvm::StringRef placeholder, llvm::StringRef help);
  /// The words that belong to no option: at least and at most so many.
  void arguments(std::vector<std::string> &values, size_t least, size_t most,
                 llvm::StringRef placeholder);

  /// Nothing if the command goes on. Else what it ends with: Done after --help,
  /// which is printed to stdout, or WrongUsage with a message and the line of
  /// usage on stderr.
  std::optional<int> parse(llvm::ArrayRef<llvm::StringRef> words);

private:
  struct Option {
    llvm::StringRef name, placeholder, help;
    bool *flag = nullptr;
    std::optional<std::string> *value = nullptr;
    std::vector<std::string> *values = nullptr;
    bool isRequired = false;
  };

  int wrong(const std::string &what) const;
  void printHelp() const;
  std::optional<int> readOption(llvm::ArrayRef<llvm::StringRef> &words);
  std::optional<int> checkCounts() const;

  std::string command, form, summary;
  std::vector<Option> options;
  std::vector<std::string> *rest = nullptr;
  size_t leastRest = 0, mostRest = 0;
  llvm::StringRef restPlaceholder;
};

} // namespace espalier

#endif // ESPALIER_TOOLS_ESPALIER_COMMANDLINE_H
