//===- EmitLoops.cpp - A generated loop nest to LLVM IR -------------------===//
//
// Dimensions are ordered so that the innermost is contiguous in what is stored,
// and merged where all operands allow it: most nests become one loop, which
// LLVM vectorizes. An output that is combined along the innermost dimension has
// its accumulator in a register, split into lanes by the vectorizer; sums of
// more than a few thousand numbers are taken in chunks, whose sums are added in
// fp64. Along outer dimensions the output itself is the accumulator.
//
//===----------------------------------------------------------------------===//

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Metadata.h"
#include "mlir/IR/TypeUtilities.h"

#include "CodeGen.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

namespace {

constexpr int64_t chunk = 4096; // elements, of one fp32 accumulator

struct Dim {
  int64_t size;
  SmallVector<int64_t> strides; // of the op's operands
  int64_t source;               // in the op's shape; the first, if merged
  bool isIndexed;               // the body uses its index
};

class LoopEmitter {
public:
  LoopEmitter(rt::LoopsOp op, llvm::Function *function,
              ArrayRef<unsigned> parameters);
  LogicalResult run();

private:
  using Body = llvm::function_ref<void(llvm::Value *)>;

  void planDims();
  /// Whether each element of an output is written once.
  bool isStored(unsigned output) {
    return op.getKindOf(output) == "store" ||
           llvm::all_of(dims, [&](const Dim &dim) {
             return dim.strides[operandOf(output)] != 0;
           });
  }
  /// The operand of an output.
  unsigned operandOf(unsigned output) { return op.getInputs().size() + output; }
  bool isKeptInRegister(unsigned output);
  bool needsInitialValue(unsigned output);
  llvm::Type *typeOf(unsigned operand);
  llvm::Constant *neutral(unsigned output, llvm::Type *type);
  llvm::Value *combine(unsigned output, llvm::Value *a, llvm::Value *b);
  llvm::Value *address(unsigned operand);
  llvm::Value *load(unsigned operand);
  void store(unsigned output, llvm::Value *value);
  void loop(llvm::Value *begin, llvm::Value *end, int64_t step, bool innermost,
            Body body);
  void nest(ArrayRef<unsigned> dims, llvm::function_ref<void()> body);
  void initialize(unsigned output);
  void inner();
  void innerChunk(llvm::Value *begin, llvm::Value *end);
  void element();

  rt::LoopsOp op;
  llvm::Function *function;
  ArrayRef<unsigned> parameters;
  llvm::LLVMContext &context;
  llvm::IRBuilder<> builder;
  SmallVector<Dim> dims;
  SmallVector<llvm::Value *> indices; // of dims, in the current block
  SmallVector<llvm::AllocaInst *> accumulators, totals; // of outputs, or null
  bool failed = false;
};

} // namespace

LoopEmitter::LoopEmitter(rt::LoopsOp op, llvm::Function *function,
                         ArrayRef<unsigned> parameters)
    : op(op), function(function), parameters(parameters),
      context(function->getContext()), builder(context) {}

/// Orders and merges the dimensions.
void LoopEmitter::planDims() {
  SmallVector<bool> indexed(op.getShape().size(), false);
  op.getBody().walk([&](rt::IndexOp index) { indexed[index.getDim()] = true; });
  for (auto [i, size] : llvm::enumerate(op.getShape())) {
    if (size == 1)
      continue;
    Dim dim{size, {}, int64_t(i), indexed[i]};
    for (unsigned operand = 0; operand < op.getNumOperands(); ++operand)
      dim.strides.push_back(op.getStridesOf(operand)[i]);
    dims.push_back(dim);
  }
  // By what is stored, else by what is read.
  auto leading = [&](const Dim &dim) {
    for (unsigned output = 0; output < op.getOutputs().size(); ++output)
      if (op.getKindOf(output) == "store")
        return dim.strides[operandOf(output)];
    int64_t most = 0;
    for (unsigned i = 0; i < op.getInputs().size(); ++i)
      most = std::max(most, dim.strides[i]);
    return most;
  };
  llvm::stable_sort(dims, [&](const Dim &a, const Dim &b) {
    return leading(a) > leading(b);
  });
  SmallVector<Dim> merged;
  for (const Dim &dim : dims) {
    bool merges = !merged.empty() && !dim.isIndexed && !merged.back().isIndexed;
    for (unsigned i = 0; merges && i < dim.strides.size(); ++i)
      merges = merged.back().strides[i] == dim.strides[i] * dim.size;
    if (!merges) {
      merged.push_back(dim);
      continue;
    }
    merged.back().size *= dim.size;
    merged.back().strides = dim.strides;
  }
  dims = std::move(merged);
  if (dims.empty())
    dims.push_back({1, SmallVector<int64_t>(op.getNumOperands(), 0), 0, false});
}

bool LoopEmitter::isKeptInRegister(unsigned output) {
  return !isStored(output) && dims.back().strides[operandOf(output)] == 0;
}

/// Whether an output is combined over more than one run of the innermost loop.
bool LoopEmitter::needsInitialValue(unsigned output) {
  if (isStored(output))
    return false;
  ArrayRef<Dim> outer = ArrayRef<Dim>(dims).drop_back(isKeptInRegister(output));
  return llvm::any_of(outer, [&](const Dim &dim) {
    return dim.strides[operandOf(output)] == 0;
  });
}

llvm::Type *LoopEmitter::typeOf(unsigned operand) {
  return scalarType(getElementTypeOrSelf(op.getOperand(operand)), context);
}

llvm::Constant *LoopEmitter::neutral(unsigned output, llvm::Type *type) {
  StringRef kind = op.getKindOf(output);
  bool isFloat = type->isFloatingPointTy();
  if (kind == "sum")
    return llvm::Constant::getNullValue(type);
  if (kind == "prod")
    return isFloat ? llvm::ConstantFP::get(type, 1.0)
                   : llvm::ConstantInt::get(type, 1);
  bool isMax = kind == "max";
  if (isFloat)
    return llvm::ConstantFP::getInfinity(type, /*Negative=*/isMax);
  unsigned bits = type->getIntegerBitWidth();
  if (bits == 1) // or, and
    return llvm::ConstantInt::get(type, !isMax);
  return llvm::ConstantInt::get(type,
                                isMax ? llvm::APInt::getSignedMinValue(bits)
                                      : llvm::APInt::getSignedMaxValue(bits));
}

llvm::Value *LoopEmitter::combine(unsigned output, llvm::Value *a,
                                  llvm::Value *b) {
  StringRef kind = op.getKindOf(output);
  if (!a->getType()->isFloatingPointTy()) {
    if (a->getType()->isIntegerTy(1))
      return kind == "max" || kind == "sum" ? builder.CreateOr(a, b)
                                            : builder.CreateAnd(a, b);
    if (kind == "sum")
      return builder.CreateAdd(a, b);
    if (kind == "prod")
      return builder.CreateMul(a, b);
    return builder.CreateBinaryIntrinsic(
        kind == "max" ? llvm::Intrinsic::smax : llvm::Intrinsic::smin, a, b);
  }
  if (kind == "max" || kind == "min")
    return builder.CreateBinaryIntrinsic(
        kind == "max" ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a,
        b);
  // Lanes may be summed apart, in an order that the code fixes.
  llvm::IRBuilder<>::FastMathFlagGuard guard(builder);
  llvm::FastMathFlags flags;
  flags.setAllowReassoc();
  flags.setAllowContract();
  builder.setFastMathFlags(flags);
  return kind == "sum" ? builder.CreateFAdd(a, b) : builder.CreateFMul(a, b);
}

llvm::Value *LoopEmitter::address(unsigned operand) {
  llvm::Type *type =
      memoryType(getElementTypeOrSelf(op.getOperand(operand)), context);
  llvm::Value *offset = builder.getInt64(0);
  for (auto [dim, index] : llvm::zip_equal(dims, indices)) {
    int64_t stride = dim.strides[operand];
    if (stride == 0)
      continue;
    llvm::Value *step =
        stride == 1 ? index
                    : builder.CreateMul(index, builder.getInt64(stride), "",
                                        /*HasNUW=*/true, /*HasNSW=*/true);
    offset = builder.CreateAdd(offset, step, "", true, true);
  }
  return builder.CreateInBoundsGEP(type, function->getArg(parameters[operand]),
                                   offset);
}

llvm::Value *LoopEmitter::load(unsigned operand) {
  llvm::Type *stored =
      memoryType(getElementTypeOrSelf(op.getOperand(operand)), context);
  llvm::Value *value = builder.CreateLoad(stored, address(operand));
  if (stored == typeOf(operand))
    return value;
  return builder.CreateICmpNE(value, builder.getInt8(0));
}

void LoopEmitter::store(unsigned output, llvm::Value *value) {
  unsigned operand = operandOf(output);
  llvm::Type *stored =
      memoryType(getElementTypeOrSelf(op.getOperand(operand)), context);
  if (stored != value->getType())
    value = value->getType()->isFloatingPointTy()
                ? builder.CreateFPCast(value, stored)
                : builder.CreateZExt(value, stored);
  builder.CreateStore(value, address(operand));
}

/// for (index = begin; index < end; index += step) body(index), at least once.
void LoopEmitter::loop(llvm::Value *begin, llvm::Value *end, int64_t step,
                       bool innermost, Body body) {
  llvm::BasicBlock *before = builder.GetInsertBlock();
  auto *head = llvm::BasicBlock::Create(context, "loop", function);
  builder.CreateBr(head);
  builder.SetInsertPoint(head);
  llvm::PHINode *index = builder.CreatePHI(builder.getInt64Ty(), 2);
  index->addIncoming(begin, before);
  body(index);
  llvm::Value *next =
      builder.CreateAdd(index, builder.getInt64(step), "", true, true);
  index->addIncoming(next, builder.GetInsertBlock());
  auto *after = llvm::BasicBlock::Create(context, "after", function);
  llvm::BranchInst *back =
      builder.CreateCondBr(builder.CreateICmpULT(next, end), head, after);
  bool contiguous = llvm::all_of(dims.back().strides,
                                 [](int64_t s) { return s == 0 || s == 1; });
  if (innermost && contiguous && dims.back().size >= 8) {
    auto *enable = llvm::MDNode::get(
        context, {llvm::MDString::get(context, "llvm.loop.vectorize.enable"),
                  llvm::ConstantAsMetadata::get(builder.getTrue())});
    auto *self = llvm::MDNode::getDistinct(context, {nullptr, enable});
    self->replaceOperandWith(0, self);
    back->setMetadata(llvm::LLVMContext::MD_loop, self);
  }
  builder.SetInsertPoint(after);
}

void LoopEmitter::nest(ArrayRef<unsigned> which,
                       llvm::function_ref<void()> body) {
  if (which.empty())
    return body();
  unsigned dim = which.front();
  loop(builder.getInt64(0), builder.getInt64(dims[dim].size), 1, false,
       [&](llvm::Value *index) {
         indices[dim] = index;
         nest(which.drop_front(), body);
       });
}

/// Stores the neutral element to all of an output.
void LoopEmitter::initialize(unsigned output) {
  SmallVector<unsigned> kept;
  for (unsigned i = 0; i < dims.size(); ++i)
    if (dims[i].strides[operandOf(output)] != 0)
      kept.push_back(i);
  if (llvm::any_of(kept, [&](unsigned i) { return dims[i].size == 0; }))
    return;
  nest(kept,
       [&] { store(output, neutral(output, typeOf(operandOf(output)))); });
  indices.assign(dims.size(), builder.getInt64(0));
}

/// What happens at one index.
void LoopEmitter::element() {
  SmallVector<llvm::Value *> inputs;
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    inputs.push_back(load(i));
  auto indexOf = [&](int64_t source) -> llvm::Value * {
    for (auto [dim, index] : llvm::zip_equal(dims, indices))
      if (dim.source == source && dim.isIndexed)
        return index;
    return builder.getInt64(0); // a dimension of size 1
  };
  auto yielded = emitBody(op.getBody().front(), inputs, indexOf, builder);
  if (!yielded) {
    failed = true;
    return;
  }
  for (auto [output, value] : llvm::enumerate(*yielded)) {
    if (isStored(output)) {
      store(output, value);
    } else if (accumulators[output]) {
      llvm::Value *before =
          builder.CreateLoad(value->getType(), accumulators[output]);
      builder.CreateStore(combine(output, before, value), accumulators[output]);
    } else {
      store(output, combine(output, load(operandOf(output)), value));
    }
  }
}

void LoopEmitter::innerChunk(llvm::Value *begin, llvm::Value *end) {
  for (auto [output, accumulator] : llvm::enumerate(accumulators))
    if (accumulator)
      builder.CreateStore(neutral(output, accumulator->getAllocatedType()),
                          accumulator);
  loop(begin, end, 1, true, [&](llvm::Value *index) {
    indices.back() = index;
    element();
  });
  for (auto [output, accumulator] : llvm::enumerate(accumulators)) {
    if (!accumulator)
      continue;
    llvm::Type *wide = totals[output]->getAllocatedType();
    llvm::Value *value =
        builder.CreateLoad(accumulator->getAllocatedType(), accumulator);
    if (wide != value->getType())
      value = builder.CreateFPExt(value, wide);
    llvm::Value *total = builder.CreateLoad(wide, totals[output]);
    builder.CreateStore(combine(output, total, value), totals[output]);
  }
}

/// The innermost dimension, and what its accumulators then hold.
void LoopEmitter::inner() {
  for (auto [output, total] : llvm::enumerate(totals))
    if (total)
      builder.CreateStore(neutral(output, total->getAllocatedType()), total);
  int64_t size = dims.back().size;
  llvm::Value *zero = builder.getInt64(0), *end = builder.getInt64(size);
  bool sums = llvm::any_of(totals, [](auto *total) { return total; });
  if (sums && size > 2 * chunk)
    loop(zero, end, chunk, false, [&](llvm::Value *begin) {
      llvm::Value *stop = builder.CreateBinaryIntrinsic(
          llvm::Intrinsic::umin,
          builder.CreateAdd(begin, builder.getInt64(chunk)), end);
      innerChunk(begin, stop);
    });
  else
    innerChunk(zero, end);
  indices.back() = zero;
  for (auto [output, total] : llvm::enumerate(totals)) {
    if (!total)
      continue;
    llvm::Value *value = builder.CreateLoad(total->getAllocatedType(), total);
    if (value->getType() != typeOf(operandOf(output)))
      value = builder.CreateFPTrunc(value, typeOf(operandOf(output)));
    if (needsInitialValue(output))
      value = combine(output, load(operandOf(output)), value);
    store(output, value);
  }
}

LogicalResult LoopEmitter::run() {
  auto *entry = llvm::BasicBlock::Create(context, "entry", function);
  builder.SetInsertPoint(entry);
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  builder.setFastMathFlags(flags);
  planDims();
  indices.assign(dims.size(), builder.getInt64(0));
  bool isEmpty = llvm::is_contained(op.getShape(), 0);
  for (unsigned output = 0; output < op.getOutputs().size(); ++output) {
    bool inRegister = isKeptInRegister(output) && !isEmpty;
    llvm::Type *type = typeOf(operandOf(output));
    bool wide = type->isFloatTy() && op.getKindOf(output) == "sum";
    accumulators.push_back(inRegister ? builder.CreateAlloca(type) : nullptr);
    totals.push_back(
        inRegister ? builder.CreateAlloca(wide ? builder.getDoubleTy() : type)
                   : nullptr);
  }
  if (isEmpty) {
    for (unsigned output = 0; output < op.getOutputs().size(); ++output)
      if (op.getKindOf(output) != "store")
        initialize(output);
  } else {
    for (unsigned output = 0; output < op.getOutputs().size(); ++output)
      if (needsInitialValue(output))
        initialize(output);
    nest(llvm::to_vector(llvm::seq<unsigned>(0, dims.size() - 1)),
         [&] { inner(); });
  }
  builder.CreateRetVoid();
  return failure(failed);
}

LogicalResult cpu::emitLoops(rt::LoopsOp op, llvm::Function *function,
                             ArrayRef<unsigned> parameters) {
  return LoopEmitter(op, function, parameters).run();
}
