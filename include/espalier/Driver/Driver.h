//===- Driver.h - Job in, plan, proof or binary out -------------*- C++ -*-===//
//
// What the commands of tools/espalier do. Each function is one command: it
// reads its files, says on `out` what it did and on `err` what is wrong, and
// returns an ExitStatus. Nothing is written where a command fails.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_DRIVER_DRIVER_H
#define ESPALIER_DRIVER_DRIVER_H

#include "espalier/Support/ExitStatus.h"

#include "llvm/Support/raw_ostream.h"

#include <map>
#include <string>
#include <vector>

namespace espalier::driver {

/// Where a command writes for people.
struct Streams {
  llvm::raw_ostream &out;
  llvm::raw_ostream &err;
};

struct ImportCommand {
  std::string model;
  std::map<std::string, int64_t> dims;
  std::string output; // of the MLIR text; "" : none, "-": standard output
  bool allowUnused = false;
};
int runImport(const ImportCommand &command, const Streams &streams);

struct PlanCommand {
  std::string job;
  std::string output; // of the plan file; "": none, "-": standard output
};
int runPlan(const PlanCommand &command, const Streams &streams);

struct VerifyCommand {
  std::string job;
  std::string plan; // a plan file to hold to; "": none
  std::string
      program; // a partitioned program to check in place of ours; "": none
};
int runVerify(const VerifyCommand &command, const Streams &streams);

struct CompileCommand {
  std::string job;
  std::string plan; // a plan file to hold to; "": none
  std::string output;
  std::string target = "cpu";
  std::string cpu = "host"; // what to generate code for, as LLVM names it
};
int runCompile(const CompileCommand &command, const Streams &streams);

} // namespace espalier::driver

#endif // ESPALIER_DRIVER_DRIVER_H
