//===- Interpreter.h - The reference interpreter ----------------*- C++ -*-===//
//
// Runs functions of whole-tensor ops, one op after another, on one or several
// virtual ranks in one process. It says what a program means: everything that
// compiles, partitions or schedules is compared with it. Sums are taken in fp64
// and rounded once, so that it is at least as exact as any compiled program.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_INTERPRETER_INTERPRETER_H
#define ESPALIER_INTERPRETER_INTERPRETER_H

#include "espalier/Interpreter/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Operation.h"

#include <functional>

namespace espalier {

using Tensors = std::vector<Tensor>;

/// Evaluates one op of the nn dialect. Fails, with an error on the op, where it
/// is none or an index lies outside of its table.
mlir::FailureOr<Tensors> evaluateOp(mlir::Operation *op,
                                    llvm::ArrayRef<const Tensor *> operands,
                                    Precision precision);

/// The values of one rank while a function runs.
class Environment {
public:
  const Tensor &get(mlir::Value value) const;
  void set(mlir::Value value, Tensor tensor);
  void erase(mlir::Value value) { values.erase(value); }

private:
  llvm::DenseMap<mlir::Value, std::unique_ptr<Tensor>> values;
};

/// Runs a function on several virtual ranks in lock-step: each op on all ranks,
/// then the next. Derived classes give the ops that ranks compute together.
///
///   RankedInterpreter interpreter(/*numRanks=*/1, Precision::Double);
///   auto results = interpreter.run(function, {arguments});
class RankedInterpreter {
public:
  RankedInterpreter(unsigned numRanks, Precision precision)
      : numRanks(numRanks), precision(precision) {}
  virtual ~RankedInterpreter();

  /// Called with each value as it is computed, and with the arguments.
  std::function<void(mlir::Value, unsigned rank, const Tensor &)> onValue;

  /// Runs `function` with `arguments[rank]` and returns the results of each
  /// rank. Fails, with an error, where an op does or where arguments do not
  /// fit.
  mlir::FailureOr<std::vector<Tensors>> run(mlir::func::FuncOp function,
                                            std::vector<Tensors> arguments);

protected:
  /// Evaluates an op that is neither in nn nor in func: sets its results in the
  /// environment of each rank. Here it fails with an error.
  virtual mlir::LogicalResult
  evaluateTogether(mlir::Operation *op,
                   llvm::MutableArrayRef<Environment> ranks);

  unsigned numRanks;
  Precision precision;

private:
  mlir::LogicalResult evaluate(mlir::Operation *op,
                               llvm::MutableArrayRef<Environment> ranks);
  mlir::LogicalResult evaluateApart(mlir::Operation *op,
                                    llvm::MutableArrayRef<Environment> ranks);
  mlir::LogicalResult evaluateCall(mlir::func::CallOp call,
                                   llvm::MutableArrayRef<Environment> ranks);
  void report(mlir::Value value, llvm::ArrayRef<Environment> ranks) const;
};

/// Runs a function on one rank.
mlir::FailureOr<Tensors> interpret(mlir::func::FuncOp function,
                                   Tensors arguments,
                                   Precision precision = Precision::AsTyped);

} // namespace espalier

#endif // ESPALIER_INTERPRETER_INTERPRETER_H
