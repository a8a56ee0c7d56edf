//===- main.cpp - The command-line tool -----------------------------------===//

#include "espalier/Support/YamlTree.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include "CommandLine.h"
#include "Commands.h"

using namespace llvm;
using namespace espalier;

namespace {
struct Command {
  StringRef name;
  StringRef summary;
  int (*run)(ArrayRef<StringRef> words);
};
} // namespace

static constexpr StringRef kVersion = "0.1";

static constexpr Command kCommands[] = {
    {"import", "read an ONNX model, list what is not supported", runImport},
    {"plan", "say how a job is laid out on its devices", runPlan},
    {"verify", "prove that all ranks compute what one device would", runVerify},
    {"compile", "compile a job into a training binary", runCompile},
    {"tokenize", "make a file of tokens from texts", runTokenize},
};

static void printUsage(raw_ostream &os) {
  os << "usage: espalier <command> [options]\n\ncommands:\n";
  for (const Command &command : kCommands)
    os << "  " << left_justify(command.name, 12) << " " << command.summary
       << "\n";
  os << "\n'espalier <command> --help' tells the options of a command,\n"
        "'espalier --version' the version.\n";
}

int main(int argc, char **argv) {
  SmallVector<StringRef> words(argv + (argc ? 1 : 0), argv + argc);
  if (words.empty()) {
    printUsage(errs());
    return WrongUsage;
  }
  StringRef name = words.front();
  if (name == "--help" || name == "-h" || name == "help") {
    printUsage(outs());
    return Done;
  }
  if (name == "--version") {
    outs() << "espalier " << kVersion << "\n";
    return Done;
  }
  for (const Command &command : kCommands)
    if (command.name == name)
      return command.run(ArrayRef(words).drop_front());
  SmallVector<StringRef> known =
      map_to_vector(kCommands, [](const Command &c) { return c.name; });
  errs() << "espalier: there is no command '" << name << "'; the nearest is '"
         << nearestName(name, known) << "'\n";
  printUsage(errs());
  return WrongUsage;
}
