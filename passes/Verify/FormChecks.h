//===- FormChecks.h - What contracts say of functions -----------*- C++ -*-===//

#ifndef ESPALIER_PASSES_VERIFY_FORMCHECKS_H
#define ESPALIER_PASSES_VERIFY_FORMCHECKS_H

#include "espalier/Support/FunctionForm.h"

#include "mlir/IR/BuiltinOps.h"

namespace espalier {

/// The function of that name. Null, with an error, where it is not there or has
/// no body of one block.
mlir::func::FuncOp findFunction(mlir::ModuleOp module, llvm::StringRef name);

/// Fails, with an error, unless each slot has a name and one of `roles`, in
/// their order, all types are static ranked tensors, and no two slots of one
/// role share a name. `what` is "argument" or "result".
mlir::LogicalResult checkSlots(mlir::func::FuncOp function,
                               llvm::ArrayRef<Slot> slots,
                               llvm::ArrayRef<llvm::StringRef> roles,
                               llvm::StringRef what);

/// Fails, with an error, unless the slots of `role` have the names and types of
/// those of `otherRole` in `others`, in their order. `what` and `whatOthers`
/// name both to the reader.
mlir::LogicalResult checkSame(mlir::func::FuncOp function,
                              llvm::ArrayRef<Slot> slots, llvm::StringRef role,
                              llvm::ArrayRef<Slot> others,
                              llvm::StringRef otherRole, llvm::StringRef what);

/// Fails, with an error, unless the function has exactly one slot of the role,
/// of the type `expected`, if that is not null.
mlir::LogicalResult checkSingle(mlir::func::FuncOp function,
                                llvm::ArrayRef<Slot> slots,
                                llvm::StringRef role, mlir::Type expected);

/// Fails, with an error on the op, unless all ops are of the nn dialect, and
/// say where they come from.
mlir::LogicalResult checkOps(mlir::func::FuncOp function);

} // namespace espalier

#endif // ESPALIER_PASSES_VERIFY_FORMCHECKS_H
