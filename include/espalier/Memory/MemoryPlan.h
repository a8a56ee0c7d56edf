//===- MemoryPlan.h - What lies where in a rank's arena ---------*- C++ -*-===//
//
// An arena has two parts. The persistent one holds what outlives a function of
// the program: parameters, state, gradients, inputs. It is shared by name and
// role: an argument of one function and a result of another that agree in both
// are one place. The transient one, after it, holds everything else, and each
// function uses it anew.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_MEMORY_MEMORYPLAN_H
#define ESPALIER_MEMORY_MEMORYPLAN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <string>
#include <vector>

namespace espalier::memory {

/// A tensor of the persistent part.
struct PlannedTensor {
  std::string name;
  std::string role;
  mlir::RankedTensorType type; // of the rank's block
  int64_t offset = 0;          // bytes from the arena's begin
  int64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<PlannedTensor> tensors;
  int64_t persistentBytes = 0;
  int64_t arenaBytes = 0;
  /// The least that the arena could have: the persistent part and the most
  /// transient bytes that live at one time.
  int64_t boundBytes = 0;

  /// The index of a tensor, or -1.
  int64_t find(llvm::StringRef name, llvm::StringRef role) const;
};

/// Lays out the persistent part: all arguments and results of `functions`, by
/// their attributes `espalier.name` and `espalier.role`. Tensors of one role
/// lie together, gradients above all, so that one call can reduce them. An
/// error on the function if an attribute is missing or two types disagree.
mlir::FailureOr<MemoryPlan>
planPersistent(llvm::ArrayRef<mlir::func::FuncOp> functions);

/// The bytes of an element in the arena; booleans take one.
int64_t bytesOfElement(mlir::Type type);

inline int64_t bytesOfTensor(mlir::RankedTensorType type) {
  return type.getNumElements() * bytesOfElement(type.getElementType());
}

} // namespace espalier::memory

#endif // ESPALIER_MEMORY_MEMORYPLAN_H
