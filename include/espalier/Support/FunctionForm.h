//===- FunctionForm.h - Arguments and results by role and name --*- C++ -*-===//
//
// Every argument and result of @forward, @loss, @grad and @update says what it
// is: `espalier.name`, the ONNX name, and `espalier.role`, one of the roles
// below.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_SUPPORT_FUNCTIONFORM_H
#define ESPALIER_SUPPORT_FUNCTIONFORM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace espalier {

inline constexpr llvm::StringLiteral nameAttribute = "espalier.name";
inline constexpr llvm::StringLiteral roleAttribute = "espalier.role";

namespace role {
inline constexpr llvm::StringLiteral parameter = "parameter"; // trained
inline constexpr llvm::StringLiteral frozen =
    "frozen"; // constant, as an argument
inline constexpr llvm::StringLiteral buffer = "buffer"; // running statistics
inline constexpr llvm::StringLiteral input = "input";
inline constexpr llvm::StringLiteral label = "label";
inline constexpr llvm::StringLiteral valid = "valid"; // tensor<Bxi1>
inline constexpr llvm::StringLiteral rng = "rng";     // seed, step, microbatch
inline constexpr llvm::StringLiteral output = "output";
inline constexpr llvm::StringLiteral state =
    "state";                                        // "exp_avg/NAME" and so on
inline constexpr llvm::StringLiteral grad = "grad"; // named as its parameter
inline constexpr llvm::StringLiteral step = "step"; // from 0
inline constexpr llvm::StringLiteral lossSum = "loss_sum";
inline constexpr llvm::StringLiteral weightSum = "weight_sum";
inline constexpr llvm::StringLiteral loss = "loss";
inline constexpr llvm::StringLiteral gradNorm = "grad_norm";
inline constexpr llvm::StringLiteral lr = "lr";
} // namespace role

/// An argument or result of a function: what it holds and stands for.
struct Slot {
  mlir::Type type;
  std::string name;
  std::string role;
};

/// The arguments or results of a function. A missing name or role is empty.
llvm::SmallVector<Slot> argumentSlots(mlir::func::FuncOp function);
llvm::SmallVector<Slot> resultSlots(mlir::func::FuncOp function);

/// A function with an empty entry block, at the builder's insertion point.
mlir::func::FuncOp createFunction(mlir::OpBuilder &builder, mlir::Location loc,
                                  llvm::StringRef name,
                                  llvm::ArrayRef<Slot> arguments,
                                  llvm::ArrayRef<Slot> results);

} // namespace espalier

#endif // ESPALIER_SUPPORT_FUNCTIONFORM_H
