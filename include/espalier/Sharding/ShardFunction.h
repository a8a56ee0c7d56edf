//===- ShardFunction.h - Types a function with shardings --------*- C++ -*-===//
//
// From a function of whole tensors to the `planned` form: every tensor type
// carries its sharding, each op's operands and results are sharded as its rule
// has it, and shardings change only at dist.reshard.
//
// The cuts come from propagation. Partial values, which reduced factors leave
// behind, stay partial through ops that are linear in them as long as that does
// not make more bytes to reduce later; else they are resharded before the op.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_SHARDING_SHARDFUNCTION_H
#define ESPALIER_SHARDING_SHARDFUNCTION_H

#include "espalier/Sharding/Propagation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace espalier {

/// The names of the attributes that say what a function's arguments and results
/// are.
inline constexpr llvm::StringLiteral kNameAttr = "espalier.name";
inline constexpr llvm::StringLiteral kRoleAttr = "espalier.role";

struct ShardingSeed {
  Sharding sharding;
  std::string reason;
  bool closed; // no op may cut it further
};

/// What is fixed before propagation.
struct ShardingRequest {
  /// The sharding of an argument, or nothing where propagation finds it. An
  /// argument that is partial must be closed.
  std::function<std::optional<ShardingSeed>(mlir::func::FuncOp, unsigned)>
      argument;
  /// The sharding that a result must have, given that which it has; `arguments`
  /// are those of the function's arguments.
  std::function<Sharding(mlir::func::FuncOp, unsigned, const Sharding &,
                         llvm::ArrayRef<Sharding>)>
      result;
};

/// The shardings of a function's results, and what was found on the way.
struct ShardedFunction {
  llvm::SmallVector<Sharding> arguments;
  llvm::SmallVector<Sharding> results;
  llvm::SmallVector<std::string> conflicts; // in words
};

/// Types `function` with shardings. Fails, with an error on the op, where an op
/// has no rule.
mlir::FailureOr<ShardedFunction> shardFunction(mlir::func::FuncOp function,
                                               const Mesh &mesh,
                                               const ShardingRequest &request);

/// The string attribute of an argument or result, or "".
llvm::StringRef argumentString(mlir::func::FuncOp function, unsigned number,
                               llvm::StringRef attribute);
llvm::StringRef resultString(mlir::func::FuncOp function, unsigned number,
                             llvm::StringRef attribute);

} // namespace espalier

#endif // ESPALIER_SHARDING_SHARDFUNCTION_H
