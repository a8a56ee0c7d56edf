//===- StorageLayout.h - Places of storage in the arena ---------*- C++ -*-===//

#ifndef ESPALIER_LIB_TARGET_CPU_STORAGELAYOUT_H
#define ESPALIER_LIB_TARGET_CPU_STORAGELAYOUT_H

#include "espalier/Memory/MemoryPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace espalier::cpu {

/// A block of memory that a function uses.
struct Storage {
  int64_t bytes = 0;
  int64_t persistent = -1;     // the index of a planned tensor, or -1
  mlir::ElementsAttr constant; // read-only data outside the arena, or null
  /// A persistent place whose content nobody needs after the function, as sums
  /// that an update has used up.
  bool isConsumed = false;
};

using StorageTable = llvm::SmallVector<Storage>;

/// Gives every rt.buffer of a lowered function its offset in the arena. First
/// storage that can be one becomes one: what a function returns is written in
/// its persistent place, if nothing reads that later; an elementwise op
/// overwrites an operand that nobody reads after it; copies that then copy
/// nothing go away. Raises the plan's sizes to what the function needs.
void layOutStorage(mlir::func::FuncOp function, StorageTable storage,
                   memory::MemoryPlan &plan);

} // namespace espalier::cpu

#endif // ESPALIER_LIB_TARGET_CPU_STORAGELAYOUT_H
