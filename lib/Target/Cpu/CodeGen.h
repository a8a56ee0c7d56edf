//===- CodeGen.h - rt ops to LLVM IR ----------------------------*- C++ -*-===//

#ifndef ESPALIER_LIB_TARGET_CPU_CODEGEN_H
#define ESPALIER_LIB_TARGET_CPU_CODEGEN_H

#include "dialects/Rt/Rt.h"
#include "espalier/Target/Cpu.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace espalier::cpu {

/// The type of a scalar in registers, and in memory, where booleans are bytes.
llvm::Type *scalarType(mlir::Type type, llvm::LLVMContext &context);
llvm::Type *memoryType(mlir::Type type, llvm::LLVMContext &context);

/// A scalar constant.
llvm::Constant *scalarConstant(mlir::Attribute value, llvm::Type *type);

/// Emits the scalar ops of a body (arith, math) into the builder's block, given
/// what its arguments are; `indexOf` gives the index along a dimension. Returns
/// what the terminator yields. An op that cannot be emitted has a diagnostic,
/// and the result is empty. Functions of fp32 are calls of inline functions of
/// the kernel library.
std::optional<llvm::SmallVector<llvm::Value *>>
emitBody(mlir::Block &body, llvm::ArrayRef<llvm::Value *> arguments,
         llvm::function_ref<llvm::Value *(int64_t)> indexOf,
         llvm::IRBuilderBase &builder);

/// Emits the loop nest of `op` into `function`, whose argument parameters[i] is
/// the place of the op's operand i.
mlir::LogicalResult emitLoops(rt::LoopsOp op, llvm::Function *function,
                              llvm::ArrayRef<unsigned> parameters);

/// A module with `espalierProgram` and the functions of a lowered module; the
/// kernels of the library are declared only.
std::unique_ptr<llvm::Module> emitProgram(mlir::ModuleOp lowered,
                                          const ProgramLayout &layout,
                                          llvm::StringRef metadata,
                                          llvm::LLVMContext &context);

/// Links what the module needs of the kernel library, to be inlined.
llvm::Error linkKernels(llvm::Module &module);

/// Optimizes for a CPU and generates machine code. `object` is filled in.
llvm::Error generateObject(llvm::Module &module, const CompileOptions &options,
                           CompiledObject &object);

} // namespace espalier::cpu

#endif // ESPALIER_LIB_TARGET_CPU_CODEGEN_H
