//===- EmitProgram.cpp - A lowered module to a module of LLVM IR ----------===//

#include "espalier/runtime/abi.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Constants.h"
#include "mlir/IR/TypeUtilities.h"

#include "CodeGen.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

namespace {

class ProgramEmitter {
public:
  ProgramEmitter(ModuleOp lowered, const ProgramLayout &layout,
                 llvm::LLVMContext &context);
  std::unique_ptr<llvm::Module> run(StringRef metadata);

private:
  LogicalResult emitFunction(func::FuncOp function);
  LogicalResult emit(Operation *op);
  LogicalResult emitKernelCall(rt::LoopsOp op);
  void emitLaunch(rt::LaunchOp op);
  void emitByRank(rt::LaunchOp op);
  void emitGemm(rt::GemmOp op);
  void emitAllReduce(rt::AllReduceOp op);
  template <typename OpT>
  void emitBlocks(OpT op, StringRef callee, llvm::Value *reduction);
  void emitProgramStruct(StringRef metadata);

  llvm::Value *pointer(Value buffer);
  llvm::Value *offsetOf(Value buffer);
  llvm::Value *rankTable(ArrayRef<int32_t> values);
  llvm::Value *rankTable(ArrayRef<int64_t> values);
  llvm::Constant *constantData(ElementsAttr value);
  llvm::GlobalVariable *global(llvm::Constant *value, const Twine &name);
  llvm::Value *dtype(Type type);
  llvm::Value *i32(int64_t value) { return builder.getInt32(value); }
  llvm::Value *i64(int64_t value) { return builder.getInt64(value); }
  void call(StringRef callee, ArrayRef<llvm::Value *> arguments);
  /// The parameters of a kernel: one for each place, so that two operands that
  /// are one buffer are one parameter, and no two parameters overlap.
  SmallVector<unsigned> parametersOf(OperandRange operands,
                                     SmallVectorImpl<llvm::Value *> &places);
  llvm::Function *
  kernel(StringRef key, StringRef name, unsigned pointers,
         llvm::function_ref<LogicalResult(llvm::Function *)> body);

  ModuleOp lowered;
  const ProgramLayout &layout;
  llvm::LLVMContext &context;
  std::unique_ptr<llvm::Module> module;
  llvm::IRBuilder<> builder;
  llvm::Function *function = nullptr; // being emitted
  llvm::Value *arena = nullptr, *rank = nullptr;
  llvm::StringMap<llvm::Function *> kernels;
  llvm::DenseMap<Attribute, llvm::Constant *> constants;
};

} // namespace

ProgramEmitter::ProgramEmitter(ModuleOp lowered, const ProgramLayout &layout,
                               llvm::LLVMContext &context)
    : lowered(lowered), layout(layout), context(context),
      module(std::make_unique<llvm::Module>("espalier", context)),
      builder(context) {}

llvm::GlobalVariable *ProgramEmitter::global(llvm::Constant *value,
                                             const Twine &name) {
  auto *variable =
      new llvm::GlobalVariable(*module, value->getType(), /*isConstant=*/true,
                               llvm::GlobalValue::PrivateLinkage, value, name);
  variable->setAlignment(llvm::Align(64));
  return variable;
}

llvm::Constant *ProgramEmitter::constantData(ElementsAttr value) {
  llvm::Constant *&known = constants[value];
  if (known)
    return known;
  ShapedType type = value.getShapedType();
  llvm::Type *stored = memoryType(type.getElementType(), context);
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (dense && !dense.isSplat() && !type.getElementType().isInteger(1)) {
    // Bytes as they are.
    ArrayRef<char> bytes = dense.getRawData();
    return known = global(llvm::ConstantDataArray::getRaw(
                              StringRef(bytes.data(), bytes.size()),
                              bytes.size(), builder.getInt8Ty()),
                          "constant");
  }
  llvm::SmallVector<llvm::Constant *> elements;
  for (Attribute element : value.getValues<Attribute>())
    elements.push_back(scalarConstant(element, stored));
  auto *array = llvm::ConstantArray::get(
      llvm::ArrayType::get(stored, elements.size()), elements);
  return known = global(array, "constant");
}

/// The entry of a table for this rank; the value itself if all are equal.
llvm::Value *ProgramEmitter::rankTable(ArrayRef<int64_t> values) {
  if (llvm::all_equal(values))
    return i64(values.front());
  auto *table =
      global(llvm::ConstantDataArray::get(context, values), "by_rank");
  return builder.CreateLoad(
      builder.getInt64Ty(),
      builder.CreateInBoundsGEP(builder.getInt64Ty(), table, rank));
}

llvm::Value *ProgramEmitter::rankTable(ArrayRef<int32_t> values) {
  SmallVector<int64_t> wide(values.begin(), values.end());
  return builder.CreateTrunc(rankTable(ArrayRef<int64_t>(wide)),
                             builder.getInt32Ty());
}

llvm::Value *ProgramEmitter::offsetOf(Value buffer) {
  auto op = buffer.getDefiningOp<rt::BufferOp>();
  llvm::Value *offset = i64(op.getOffset());
  if (auto byRank = op.getByRank())
    offset = builder.CreateAdd(offset, rankTable(*byRank));
  return offset;
}

llvm::Value *ProgramEmitter::pointer(Value buffer) {
  if (auto constant = buffer.getDefiningOp<rt::ConstantOp>())
    return constantData(constant.getValue());
  return builder.CreateInBoundsGEP(builder.getInt8Ty(), arena,
                                   offsetOf(buffer));
}

void ProgramEmitter::call(StringRef callee, ArrayRef<llvm::Value *> arguments) {
  SmallVector<llvm::Type *> types;
  for (llvm::Value *argument : arguments)
    types.push_back(argument->getType());
  builder.CreateCall(
      module->getOrInsertFunction(
          callee, llvm::FunctionType::get(builder.getVoidTy(), types, false)),
      arguments);
}

llvm::Value *ProgramEmitter::dtype(Type type) {
  if (type.isF32())
    return i32(EspalierF32);
  if (type.isF64())
    return i32(EspalierF64);
  if (type.isBF16())
    return i32(EspalierBf16);
  return i32(type.isInteger(64)   ? EspalierI64
             : type.isInteger(32) ? EspalierI32
                                  : EspalierI1);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

SmallVector<unsigned>
ProgramEmitter::parametersOf(OperandRange operands,
                             SmallVectorImpl<llvm::Value *> &places) {
  SmallVector<unsigned> parameters;
  SmallVector<std::pair<Attribute, Attribute>> known;
  for (Value operand : operands) {
    std::pair<Attribute, Attribute> place;
    if (auto constant = operand.getDefiningOp<rt::ConstantOp>())
      place = {constant.getValueAttr(), constant.getValueAttr()};
    else if (auto op = operand.getDefiningOp<rt::BufferOp>())
      place = {op.getOffsetAttr(), op.getByRankAttr()};
    auto at = llvm::find(known, place);
    parameters.push_back(at - known.begin());
    if (at != known.end())
      continue;
    known.push_back(place);
    places.push_back(pointer(operand));
  }
  return parameters;
}

/// The function of a kernel, made by `body` unless there is an equal one.
llvm::Function *ProgramEmitter::kernel(
    StringRef key, StringRef name, unsigned pointers,
    llvm::function_ref<LogicalResult(llvm::Function *)> body) {
  llvm::Function *&known = kernels[key];
  if (known)
    return known;
  SmallVector<llvm::Type *> types(pointers + 1, builder.getPtrTy());
  known = llvm::Function::Create(
      llvm::FunctionType::get(builder.getVoidTy(), types, false),
      llvm::GlobalValue::InternalLinkage, name, *module);
  known->addFnAttr(llvm::Attribute::NoInline);
  for (unsigned i = 1; i <= pointers; ++i)
    known->addParamAttr(i, llvm::Attribute::NoAlias);
  if (failed(body(known)))
    return nullptr;
  return known;
}

/// What distinguishes the code of loops: all but the operands themselves.
static std::string keyOf(rt::LoopsOp op, ArrayRef<unsigned> parameters) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << op->getAttrDictionary();
  for (Value operand : op->getOperands())
    stream << getElementTypeOrSelf(operand) << ',';
  llvm::interleaveComma(parameters, stream);
  llvm::DenseMap<Value, unsigned> numbers;
  for (Value argument : op.getBody().getArguments())
    numbers.try_emplace(argument, numbers.size());
  for (Operation &inner : op.getBody().front()) {
    stream << '\n' << inner.getName() << inner.getAttrDictionary();
    for (Value operand : inner.getOperands())
      stream << ' ' << numbers.lookup(operand);
    for (Value result : inner.getResults()) {
      stream << result.getType();
      numbers.try_emplace(result, numbers.size());
    }
  }
  return key;
}

LogicalResult ProgramEmitter::emitKernelCall(rt::LoopsOp op) {
  SmallVector<llvm::Value *> arguments = {function->getArg(0)};
  SmallVector<unsigned> parameters = parametersOf(op->getOperands(), arguments);
  for (unsigned &parameter : parameters)
    ++parameter; // after the context
  llvm::Function *callee = kernel(
      keyOf(op, parameters), "loops", arguments.size() - 1,
      [&](llvm::Function *made) { return emitLoops(op, made, parameters); });
  if (!callee)
    return failure();
  builder.CreateCall(callee, arguments);
  return success();
}

void ProgramEmitter::emitByRank(rt::LaunchOp op) {
  SmallVector<int64_t> values;
  for (auto value : op.getConstants().getAsRange<IntegerAttr>())
    values.push_back(value.getInt());
  builder.CreateStore(rankTable(ArrayRef<int64_t>(values)),
                      pointer(op.getBuffers()[0]));
}

void ProgramEmitter::emitLaunch(rt::LaunchOp op) {
  if (op.getKernel() == "by_rank")
    return emitByRank(op);
  SmallVector<llvm::Value *> arguments = {function->getArg(0)};
  SmallVector<unsigned> parameters = parametersOf(op.getBuffers(), arguments);
  std::string key;
  llvm::raw_string_ostream(key) << op->getAttrDictionary();
  for (unsigned parameter : parameters)
    key += ' ' + std::to_string(parameter);
  llvm::Function *callee = kernel(
      key, op.getKernel(), arguments.size() - 1, [&](llvm::Function *made) {
        llvm::IRBuilder<> inside(
            llvm::BasicBlock::Create(context, "entry", made));
        SmallVector<llvm::Value *> passed = {made->getArg(0)};
        auto next = parameters.begin();
        auto present = op.getPresent();
        size_t slots = present ? present->size() : parameters.size();
        for (size_t i = 0; i < slots; ++i) {
          if (present && !(*present)[i])
            passed.push_back(llvm::ConstantPointerNull::get(inside.getPtrTy()));
          else
            passed.push_back(made->getArg(1 + *next++));
        }
        for (Attribute constant : op.getConstants())
          passed.push_back(
              scalarConstant(constant, isa<FloatAttr>(constant)
                                           ? llvm::Type::getDoubleTy(context)
                                           : llvm::Type::getInt64Ty(context)));
        SmallVector<llvm::Type *> types;
        for (llvm::Value *value : passed)
          types.push_back(value->getType());
        inside.CreateCall(
            module->getOrInsertFunction(
                ("espalierKernel_" + op.getKernel()).str(),
                llvm::FunctionType::get(inside.getVoidTy(), types, false)),
            passed);
        inside.CreateRetVoid();
        return success();
      });
  builder.CreateCall(callee, arguments);
}

//===----------------------------------------------------------------------===//
// Calls of the runtime
//===----------------------------------------------------------------------===//

void ProgramEmitter::emitGemm(rt::GemmOp op) {
  auto real = [&](llvm::APFloat value) {
    return llvm::ConstantFP::get(builder.getFloatTy(), value);
  };
  ArrayRef<int64_t> leading = op.getLeading(), strides = op.getStrides();
  ArrayRef<bool> transpose = op.getTranspose();
  call("espalierRtGemm",
       {function->getArg(0), i32(transpose[0]), i32(transpose[1]),
        i64(op.getM()), i64(op.getN()), i64(op.getK()), real(op.getAlpha()),
        pointer(op.getA()), i64(leading[0]), pointer(op.getB()),
        i64(leading[1]), real(op.getBeta()), pointer(op.getC()),
        i64(leading[2]), i64(op.getBatch()), i64(strides[0]), i64(strides[1]),
        i64(strides[2])});
}

void ProgramEmitter::emitAllReduce(rt::AllReduceOp op) {
  SmallVector<int64_t> offsets, counts;
  for (Value buffer : op.getBuffers()) {
    offsets.push_back(buffer.getDefiningOp<rt::BufferOp>().getOffset());
    counts.push_back(cast<MemRefType>(buffer.getType()).getNumElements());
  }
  Type type = getElementTypeOrSelf(op.getBuffers()[0]);
  call("espalierRtAllReduce",
       {function->getArg(0), i32(op.getOp()), rankTable(op.getGroups()),
        i32(int32_t(op.getKind())), dtype(type), i32(offsets.size()),
        global(llvm::ConstantDataArray::get(context, ArrayRef(offsets)),
               "offsets"),
        global(llvm::ConstantDataArray::get(context, ArrayRef(counts)),
               "counts")});
}

template <typename OpT>
void ProgramEmitter::emitBlocks(OpT op, StringRef callee,
                                llvm::Value *reduction) {
  SmallVector<llvm::Value *> arguments = {function->getArg(0), i32(op.getOp()),
                                          rankTable(op.getGroups())};
  if (reduction)
    arguments.push_back(reduction);
  arguments.append({dtype(getElementTypeOrSelf(op.getInput())),
                    i64(op.getOuter()), i64(op.getCount()),
                    offsetOf(op.getInput()), offsetOf(op.getOutput())});
  call(callee, arguments);
}

LogicalResult ProgramEmitter::emit(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<rt::BufferOp, rt::ConstantOp>([](auto) { return success(); })
      .Case([&](rt::LoopsOp op) { return emitKernelCall(op); })
      .Case([&](rt::LaunchOp op) { return emitLaunch(op), success(); })
      .Case([&](rt::GemmOp op) { return emitGemm(op), success(); })
      .Case([&](rt::MarkOp op) {
        call("espalierRtMark", {function->getArg(0), i32(op.getOp())});
        return success();
      })
      .Case([&](rt::AllReduceOp op) { return emitAllReduce(op), success(); })
      .Case([&](rt::AllGatherOp op) {
        return emitBlocks(op, "espalierRtAllGather", nullptr), success();
      })
      .Case([&](rt::AllToAllOp op) {
        return emitBlocks(op, "espalierRtAllToAll", nullptr), success();
      })
      .Case([&](rt::ReduceScatterOp op) {
        emitBlocks(op, "espalierRtReduceScatter", i32(int32_t(op.getKind())));
        return success();
      })
      .Case([&](func::ReturnOp) {
        builder.CreateRetVoid();
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError("expects an allocated program");
      });
}

LogicalResult ProgramEmitter::emitFunction(func::FuncOp source) {
  function = llvm::Function::Create(
      llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, false),
      llvm::GlobalValue::InternalLinkage, "espalier_" + source.getSymName(),
      *module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  // EspalierContext: the arena, then the rank.
  arena = builder.CreateLoad(builder.getPtrTy(), function->getArg(0));
  rank =
      builder.CreateLoad(builder.getInt32Ty(),
                         builder.CreateInBoundsGEP(
                             builder.getPtrTy(), function->getArg(0), i64(1)));
  for (Operation &op : source.getBody().front())
    if (failed(emit(&op)))
      return failure();
  return success();
}

/// The structs of abi.h.
void ProgramEmitter::emitProgramStruct(StringRef metadata) {
  auto *null = llvm::ConstantPointerNull::get(builder.getPtrTy());
  auto functionOf = [&](StringRef name) -> llvm::Constant * {
    if (auto *found = module->getFunction(("espalier_" + name).str()))
      return found;
    return null;
  };
  auto *entry = llvm::ConstantStruct::getAnon(
      {functionOf("first"), functionOf("next"), functionOf("update"),
       builder.getInt64(layout.memory.arenaBytes)});
  size_t ranks = 1;
  if (auto attribute = lowered->getAttrOfType<IntegerAttr>("rt.ranks"))
    ranks = attribute.getInt();
  SmallVector<uint32_t> classOfRank(ranks, 0);
  auto *text =
      global(llvm::ConstantDataArray::getString(context, metadata), "metadata");
  auto *program = llvm::ConstantStruct::getAnon(
      {builder.getInt32(ESPALIER_ABI_VERSION), builder.getInt32(ranks),
       global(entry, "classes"), builder.getInt32(1),
       global(llvm::ConstantDataArray::get(context, ArrayRef(classOfRank)),
              "class_of_rank"),
       text});
  new llvm::GlobalVariable(*module, program->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, program,
                           "espalierProgram");
}

std::unique_ptr<llvm::Module> ProgramEmitter::run(StringRef metadata) {
  for (auto source : lowered.getOps<func::FuncOp>())
    if (failed(emitFunction(source)))
      return nullptr;
  emitProgramStruct(metadata);
  return std::move(module);
}

std::unique_ptr<llvm::Module> cpu::emitProgram(ModuleOp lowered,
                                               const ProgramLayout &layout,
                                               StringRef metadata,
                                               llvm::LLVMContext &context) {
  return ProgramEmitter(lowered, layout, context).run(metadata);
}
