//===- Compile.cpp - A scheduled module to an object file -----------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <chrono>

#include "CodeGen.h"
#include "Lowering.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A step's functions, in order, as far as the module has them.
static FailureOr<SmallVector<func::FuncOp>> stepFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (StringRef name : {"first", "next", "update"}) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    if (!function && name == "next")
      continue; // steps of one microbatch
    if (!function || !function.getBody().hasOneBlock())
      return module.emitError("has no function @") << name;
    functions.push_back(function);
  }
  return functions;
}

FailureOr<OwningOpRef<ModuleOp>> cpu::lowerToRt(ModuleOp scheduled,
                                                ProgramLayout &layout) {
  MLIRContext *context = scheduled.getContext();
  context->loadDialect<rt::RtDialect, arith::ArithDialect, math::MathDialect>();
  OwningOpRef<ModuleOp> source = cast<ModuleOp>(scheduled->clone());
  auto functions = stepFunctions(*source);
  if (failed(functions))
    return failure();
  auto plan = memory::planPersistent(*functions);
  if (failed(plan))
    return failure();
  layout.memory = *plan;
  ProgramState program(*source, layout);
  OwningOpRef<ModuleOp> lowered = ModuleOp::create(scheduled.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(lowered->getBody());
  (*lowered)->setAttr("rt.ranks",
                      builder.getI64IntegerAttr(program.rankCount()));
  for (func::FuncOp function : *functions) {
    fuseElementwise(function);
    auto target =
        func::FuncOp::create(builder, function.getLoc(), function.getSymName(),
                             builder.getFunctionType({}, {}));
    Lowering lowering(program, function, target);
    if (failed(lowering.run()))
      return failure();
    layOutStorage(target, lowering.getStorage(), layout.memory);
  }
  return lowered;
}

FailureOr<CompiledObject> cpu::compileToObject(ModuleOp scheduled,
                                               const CompileOptions &options) {
  CompiledObject object;
  double start = now();
  auto lowered = lowerToRt(scheduled, object.layout);
  if (failed(lowered))
    return failure();
  if (options.keepRt)
    llvm::raw_string_ostream(object.rt) << **lowered;
  object.lowerSeconds = now() - start;
  start = now();
  llvm::LLVMContext context;
  std::string metadata =
      options.metadata ? options.metadata(object.layout) : "{}";
  auto module = emitProgram(**lowered, object.layout, metadata, context);
  if (!module)
    return failure();
  if (llvm::Error error = linkKernels(*module))
    return scheduled.emitError(llvm::toString(std::move(error)));
  object.emitSeconds = now() - start;
  if (llvm::Error error = generateObject(*module, options, object))
    return scheduled.emitError(llvm::toString(std::move(error)));
  return object;
}
