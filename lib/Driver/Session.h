//===- Session.h - From a job to a program, step by step --------*- C++ -*-===//

#ifndef ESPALIER_LIB_DRIVER_SESSION_H
#define ESPALIER_LIB_DRIVER_SESSION_H

#include "espalier/Driver/Driver.h"
#include "espalier/Import/Onnx.h"
#include "espalier/Job/PlanFile.h"
#include "espalier/Verify/Equivalence.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

#include <chrono>

#include "Layout.h"

namespace espalier::driver {

/// The forms of a training program at one set of sizes.
struct Program {
  mlir::OwningOpRef<mlir::ModuleOp> whole;       // differentiated
  mlir::OwningOpRef<mlir::ModuleOp> planned;     // typed with shardings
  mlir::OwningOpRef<mlir::ModuleOp> partitioned; // one rank's
};

/// What a verification found.
struct Proof {
  EquivalenceResult result;
  int64_t devices = 0; // of the shrunk mesh
  bool shrunk = true;  // false: at the job's own sizes
  double seconds = 0;
};

/// One run of a command on a job. Each step needs the one before it; a step
/// that fails has written its messages and left the status.
class Session {
public:
  explicit Session(const Streams &streams);

  bool load(const std::string &jobPath);
  bool import();
  bool build(); // the program at the job's sizes
  /// The plan of what was built.
  PlanFile plan() const;
  /// Fails where a plan file is not what the job and this compiler make.
  bool holdTo(const std::string &planPath);
  bool verify(); // at shrunk sizes; NotEquivalent where it is not

  /// Compares a partitioned program from a file with the job's.
  bool verifyProgram(const std::string &path);

  /// Writes what a target could not compile.
  void failCompilation();

  /// Writes what is wrong and sets the status. Returns false.
  bool fail(ExitStatus failure, const std::string &message);

  mlir::MLIRContext context; // outlives the modules below
  Job job;
  ResolvedLayout layout;
  ImportedModel model;
  Program program;
  Proof proof;
  ExitStatus status = Done;
  const Streams &streams;

private:
  bool failWithDiagnostics(ExitStatus failure, const std::string &what);
  bool buildShrunk(Program &shrunk, ResolvedLayout &small, bool shrink);
  mlir::LogicalResult buildProgram(mlir::ModuleOp forward,
                                   const ResolvedLayout &sizes, Program &result,
                                   bool number);
  ImportOptions importOptions() const;

  Messages diagnostics; // errors of passes since the last look
  std::optional<mlir::ScopedDiagnosticHandler> handler;
};

/// Says what the importer remarked, and what is not trained and why.
void printRemarks(const ImportedModel &model, const Streams &streams);

/// Seconds since the clock was made.
class Clock {
public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  }

private:
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
};

} // namespace espalier::driver

#endif // ESPALIER_LIB_DRIVER_SESSION_H
