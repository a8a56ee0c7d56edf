//===- EmitScalar.cpp - Scalar ops to LLVM IR -----------------------------===//

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Intrinsics.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include "CodeGen.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

llvm::Type *cpu::scalarType(Type type, llvm::LLVMContext &context) {
  if (type.isF64())
    return llvm::Type::getDoubleTy(context);
  if (type.isF32())
    return llvm::Type::getFloatTy(context);
  if (type.isBF16())
    return llvm::Type::getBFloatTy(context);
  if (type.isF16())
    return llvm::Type::getHalfTy(context);
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return llvm::Type::getIntNTy(context, bits);
}

llvm::Type *cpu::memoryType(Type type, llvm::LLVMContext &context) {
  if (type.isInteger(1))
    return llvm::Type::getInt8Ty(context);
  return scalarType(type, context);
}

llvm::Constant *cpu::scalarConstant(Attribute value, llvm::Type *type) {
  if (auto real = dyn_cast<FloatAttr>(value))
    return llvm::ConstantFP::get(type, real.getValue());
  return llvm::ConstantInt::get(type,
                                cast<IntegerAttr>(value).getValue().zextOrTrunc(
                                    type->getIntegerBitWidth()));
}

namespace {

using Values = llvm::ArrayRef<llvm::Value *>;

/// Emits one op after another.
class BodyEmitter {
public:
  BodyEmitter(llvm::IRBuilderBase &builder,
              llvm::function_ref<llvm::Value *(int64_t)> indexOf)
      : builder(builder), indexOf(indexOf) {}

  void bind(mlir::Value value, llvm::Value *emitted) { known[value] = emitted; }
  llvm::Value *of(mlir::Value value) { return known.lookup(value); }
  /// Emits an op and binds its result; null if it is not known.
  llvm::Value *emit(Operation *op);

private:
  llvm::Value *emitArith(Operation *op, Values in, llvm::Type *type);
  llvm::Value *emitIntegers(Operation *op, Values in);
  llvm::Value *emitCast(Operation *op, llvm::Value *in, llvm::Type *type);
  llvm::Value *emitMath(Operation *op, Values in, llvm::Type *type);
  llvm::Value *emitPower(math::PowFOp op, Values in, llvm::Type *type);
  llvm::Value *call(StringRef name, Values in, llvm::Type *type);
  llvm::Value *intrinsic(llvm::Intrinsic::ID id, Values in) {
    return builder.CreateIntrinsic(in[0]->getType(), id, in);
  }

  llvm::IRBuilderBase &builder;
  llvm::function_ref<llvm::Value *(int64_t)> indexOf;
  llvm::DenseMap<mlir::Value, llvm::Value *> known;
};

} // namespace

// Conversions of bfloat are written out in integers: LLVM's own, which it makes
// operations on bfloat of, become calls of functions that C libraries lack.

static llvm::Value *extendBFloat(llvm::IRBuilderBase &builder,
                                 llvm::Value *value) {
  llvm::Value *bits = builder.CreateZExt(
      builder.CreateBitCast(value, builder.getInt16Ty()), builder.getInt32Ty());
  return builder.CreateBitCast(builder.CreateShl(bits, 16),
                               builder.getFloatTy());
}

/// To the nearest, ties to even.
static llvm::Value *truncateToBFloat(llvm::IRBuilderBase &builder,
                                     llvm::Value *value) {
  if (!value->getType()->isFloatTy())
    value = builder.CreateFPCast(value, builder.getFloatTy());
  llvm::Value *bits = builder.CreateBitCast(value, builder.getInt32Ty());
  llvm::Value *high = builder.CreateLShr(bits, 16);
  llvm::Value *round = builder.CreateAdd(
      builder.CreateAnd(high, builder.getInt32(1)), builder.getInt32(0x7FFF));
  llvm::Value *rounded = builder.CreateLShr(builder.CreateAdd(bits, round), 16);
  llvm::Value *quiet = builder.CreateOr(high, builder.getInt32(0x40));
  llvm::Value *result =
      builder.CreateSelect(builder.CreateFCmpUNO(value, value), quiet, rounded);
  return builder.CreateBitCast(
      builder.CreateTrunc(result, builder.getInt16Ty()),
      llvm::Type::getBFloatTy(builder.getContext()));
}

static llvm::Value *convertFloat(llvm::IRBuilderBase &builder,
                                 llvm::Value *value, llvm::Type *type) {
  if (value->getType()->isBFloatTy())
    value = extendBFloat(builder, value);
  return type->isBFloatTy() ? truncateToBFloat(builder, value)
                            : builder.CreateFPCast(value, type);
}

/// A function of the kernel library for fp32 (espalier_exp_f32), libm's for
/// others.
llvm::Value *BodyEmitter::call(StringRef name, Values in, llvm::Type *type) {
  llvm::Module *module = builder.GetInsertBlock()->getModule();
  static constexpr StringLiteral ours[] = {"exp",  "log", "tanh",  "erf",
                                           "sin",  "cos", "expm1", "log1p",
                                           "exp2", "log2"};
  std::string symbol = type->isDoubleTy() ? name.str()
                       : llvm::is_contained(ours, name)
                           ? ("espalier_" + name + "_f32").str()
                           : (name + "f").str();
  llvm::SmallVector<llvm::Type *> types(in.size(), type);
  auto callee = module->getOrInsertFunction(
      symbol, llvm::FunctionType::get(type, types, false));
  if (auto *function = dyn_cast<llvm::Function>(callee.getCallee())) {
    function->setDoesNotAccessMemory();
    function->setDoesNotThrow();
    function->setWillReturn();
  }
  return builder.CreateCall(callee, in);
}

static llvm::CmpInst::Predicate predicateOf(arith::CmpFPredicate predicate) {
  // Both enumerate the subsets of {equal, greater, less, unordered} alike.
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return llvm::CmpInst::FCMP_FALSE;
  case P::OEQ:
    return llvm::CmpInst::FCMP_OEQ;
  case P::OGT:
    return llvm::CmpInst::FCMP_OGT;
  case P::OGE:
    return llvm::CmpInst::FCMP_OGE;
  case P::OLT:
    return llvm::CmpInst::FCMP_OLT;
  case P::OLE:
    return llvm::CmpInst::FCMP_OLE;
  case P::ONE:
    return llvm::CmpInst::FCMP_ONE;
  case P::ORD:
    return llvm::CmpInst::FCMP_ORD;
  case P::UEQ:
    return llvm::CmpInst::FCMP_UEQ;
  case P::UGT:
    return llvm::CmpInst::FCMP_UGT;
  case P::UGE:
    return llvm::CmpInst::FCMP_UGE;
  case P::ULT:
    return llvm::CmpInst::FCMP_ULT;
  case P::ULE:
    return llvm::CmpInst::FCMP_ULE;
  case P::UNE:
    return llvm::CmpInst::FCMP_UNE;
  case P::UNO:
    return llvm::CmpInst::FCMP_UNO;
  case P::AlwaysTrue:
    return llvm::CmpInst::FCMP_TRUE;
  }
  llvm_unreachable("all predicates are above");
}

static llvm::CmpInst::Predicate predicateOf(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return llvm::CmpInst::ICMP_EQ;
  case P::ne:
    return llvm::CmpInst::ICMP_NE;
  case P::slt:
    return llvm::CmpInst::ICMP_SLT;
  case P::sle:
    return llvm::CmpInst::ICMP_SLE;
  case P::sgt:
    return llvm::CmpInst::ICMP_SGT;
  case P::sge:
    return llvm::CmpInst::ICMP_SGE;
  case P::ult:
    return llvm::CmpInst::ICMP_ULT;
  case P::ule:
    return llvm::CmpInst::ICMP_ULE;
  case P::ugt:
    return llvm::CmpInst::ICMP_UGT;
  case P::uge:
    return llvm::CmpInst::ICMP_UGE;
  }
  llvm_unreachable("all predicates are above");
}

llvm::Value *BodyEmitter::emitIntegers(Operation *op, Values in) {
  using llvm::Intrinsic::smax, llvm::Intrinsic::smin, llvm::Intrinsic::umax,
      llvm::Intrinsic::umin;
  return llvm::TypeSwitch<Operation *, llvm::Value *>(op)
      .Case([&](arith::AddIOp) { return builder.CreateAdd(in[0], in[1]); })
      .Case([&](arith::SubIOp) { return builder.CreateSub(in[0], in[1]); })
      .Case([&](arith::MulIOp) { return builder.CreateMul(in[0], in[1]); })
      .Case([&](arith::DivSIOp) { return builder.CreateSDiv(in[0], in[1]); })
      .Case([&](arith::DivUIOp) { return builder.CreateUDiv(in[0], in[1]); })
      .Case([&](arith::RemSIOp) { return builder.CreateSRem(in[0], in[1]); })
      .Case([&](arith::RemUIOp) { return builder.CreateURem(in[0], in[1]); })
      .Case([&](arith::FloorDivSIOp) {
        // One less than the quotient if there is a remainder of other sign.
        llvm::Value *zero = llvm::ConstantInt::get(in[0]->getType(), 0);
        llvm::Value *quotient = builder.CreateSDiv(in[0], in[1]);
        llvm::Value *rest = builder.CreateSRem(in[0], in[1]);
        llvm::Value *differs =
            builder.CreateICmpSLT(builder.CreateXor(rest, in[1]), zero);
        llvm::Value *less =
            builder.CreateAnd(builder.CreateICmpNE(rest, zero), differs);
        return builder.CreateSub(quotient,
                                 builder.CreateZExt(less, in[0]->getType()));
      })
      .Case([&](arith::AndIOp) { return builder.CreateAnd(in[0], in[1]); })
      .Case([&](arith::OrIOp) { return builder.CreateOr(in[0], in[1]); })
      .Case([&](arith::XOrIOp) { return builder.CreateXor(in[0], in[1]); })
      .Case([&](arith::ShLIOp) { return builder.CreateShl(in[0], in[1]); })
      .Case([&](arith::ShRSIOp) { return builder.CreateAShr(in[0], in[1]); })
      .Case([&](arith::ShRUIOp) { return builder.CreateLShr(in[0], in[1]); })
      .Case([&](arith::MaxSIOp) { return intrinsic(smax, in); })
      .Case([&](arith::MinSIOp) { return intrinsic(smin, in); })
      .Case([&](arith::MaxUIOp) { return intrinsic(umax, in); })
      .Case([&](arith::MinUIOp) { return intrinsic(umin, in); })
      .Case([&](math::AbsIOp) {
        return builder.CreateIntrinsic(in[0]->getType(), llvm::Intrinsic::abs,
                                       {in[0], builder.getFalse()});
      })
      .Case([&](arith::CmpIOp cmp) {
        return builder.CreateICmp(predicateOf(cmp.getPredicate()), in[0],
                                  in[1]);
      })
      .Default([](Operation *) { return nullptr; });
}

llvm::Value *BodyEmitter::emitCast(Operation *op, llvm::Value *in,
                                   llvm::Type *type) {
  return llvm::TypeSwitch<Operation *, llvm::Value *>(op)
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](auto) { return convertFloat(builder, in, type); })
      .Case([&](arith::ExtSIOp) { return builder.CreateSExt(in, type); })
      .Case([&](arith::ExtUIOp) { return builder.CreateZExt(in, type); })
      .Case([&](arith::TruncIOp) { return builder.CreateTrunc(in, type); })
      .Case([&](arith::SIToFPOp) { return builder.CreateSIToFP(in, type); })
      .Case([&](arith::UIToFPOp) { return builder.CreateUIToFP(in, type); })
      .Case([&](arith::FPToSIOp) { return builder.CreateFPToSI(in, type); })
      .Case([&](arith::FPToUIOp) { return builder.CreateFPToUI(in, type); })
      .Case([&](arith::BitcastOp) { return builder.CreateBitCast(in, type); })
      .Case<arith::IndexCastOp>(
          [&](auto) { return builder.CreateSExtOrTrunc(in, type); })
      .Default([](Operation *) { return nullptr; });
}

llvm::Value *BodyEmitter::emitArith(Operation *op, Values in,
                                    llvm::Type *type) {
  using llvm::Intrinsic::maximum, llvm::Intrinsic::minimum,
      llvm::Intrinsic::maxnum, llvm::Intrinsic::minnum;
  return llvm::TypeSwitch<Operation *, llvm::Value *>(op)
      .Case([&](arith::ConstantOp constant) {
        return scalarConstant(constant.getValue(), type);
      })
      .Case([&](rt::IndexOp index) { return indexOf(index.getDim()); })
      .Case([&](arith::AddFOp) { return builder.CreateFAdd(in[0], in[1]); })
      .Case([&](arith::SubFOp) { return builder.CreateFSub(in[0], in[1]); })
      .Case([&](arith::MulFOp) { return builder.CreateFMul(in[0], in[1]); })
      .Case([&](arith::DivFOp) { return builder.CreateFDiv(in[0], in[1]); })
      .Case([&](arith::RemFOp) { return call("fmod", in, type); })
      .Case([&](arith::NegFOp) { return builder.CreateFNeg(in[0]); })
      .Case([&](arith::MaximumFOp) { return intrinsic(maximum, in); })
      .Case([&](arith::MinimumFOp) { return intrinsic(minimum, in); })
      .Case([&](arith::MaxNumFOp) { return intrinsic(maxnum, in); })
      .Case([&](arith::MinNumFOp) { return intrinsic(minnum, in); })
      .Case([&](arith::CmpFOp cmp) {
        return builder.CreateFCmp(predicateOf(cmp.getPredicate()), in[0],
                                  in[1]);
      })
      .Case([&](arith::SelectOp) {
        return builder.CreateSelect(in[0], in[1], in[2]);
      })
      .Default([&](Operation *other) -> llvm::Value * {
        if (in.size() == 1)
          if (llvm::Value *cast = emitCast(other, in[0], type))
            return cast;
        return emitIntegers(other, in);
      });
}

/// Small integer and half powers are products and roots.
llvm::Value *BodyEmitter::emitPower(math::PowFOp op, Values in,
                                    llvm::Type *type) {
  auto *exponent = llvm::dyn_cast<llvm::ConstantFP>(in[1]);
  if (!exponent)
    return call("pow", in, type);
  llvm::APFloat value = exponent->getValueAPF();
  bool inexact;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                &inexact);
  double power = value.convertToDouble();
  llvm::Value *x = in[0];
  if (power == 1.0)
    return x;
  llvm::Value *square = builder.CreateFMul(x, x);
  if (power == 2.0)
    return square;
  if (power == 3.0)
    return builder.CreateFMul(square, x);
  if (power == 4.0)
    return builder.CreateFMul(square, square);
  if (power == -1.0)
    return builder.CreateFDiv(llvm::ConstantFP::get(type, 1.0), x);
  return call("pow", in, type);
}

llvm::Value *BodyEmitter::emitMath(Operation *op, Values in, llvm::Type *type) {
  using namespace llvm::Intrinsic;
  if (auto power = dyn_cast<math::PowFOp>(op))
    return emitPower(power, in, type);
  if (isa<math::RsqrtOp>(op))
    return builder.CreateFDiv(llvm::ConstantFP::get(type, 1.0),
                              intrinsic(llvm::Intrinsic::sqrt, in));
  if (isa<math::IsNaNOp>(op))
    return builder.CreateFCmpUNO(in[0], in[0]);
  if (isa<math::ErfcOp>(op) && type->isFloatTy())
    return call("erfc", in, type);
  auto id =
      llvm::TypeSwitch<Operation *, llvm::Intrinsic::ID>(op)
          .Case([](math::SqrtOp) { return llvm::Intrinsic::sqrt; })
          .Case([](math::AbsFOp) { return llvm::Intrinsic::fabs; })
          .Case([](math::FloorOp) { return llvm::Intrinsic::floor; })
          .Case([](math::CeilOp) { return llvm::Intrinsic::ceil; })
          .Case([](math::TruncOp) { return llvm::Intrinsic::trunc; })
          .Case([](math::RoundOp) { return llvm::Intrinsic::round; })
          .Case([](math::RoundEvenOp) { return llvm::Intrinsic::roundeven; })
          .Case([](math::CopySignOp) { return llvm::Intrinsic::copysign; })
          .Case([](math::FmaOp) { return llvm::Intrinsic::fma; })
          .Default([](Operation *) { return not_intrinsic; });
  if (id != not_intrinsic)
    return intrinsic(id, in);
  // The others have libm's names: math.exp, math.tanh, ...
  StringRef name = op->getName().stripDialect();
  static constexpr StringLiteral functions[] = {
      "exp",   "exp2",  "expm1", "log",   "log2", "log10", "log1p", "sin",
      "cos",   "tan",   "sinh",  "cosh",  "tanh", "asin",  "acos",  "atan",
      "asinh", "acosh", "atanh", "atan2", "erf",  "erfc",  "cbrt"};
  return llvm::is_contained(functions, name) ? call(name, in, type) : nullptr;
}

llvm::Value *BodyEmitter::emit(Operation *op) {
  if (op->getNumResults() != 1)
    return nullptr;
  llvm::SmallVector<llvm::Value *> in;
  for (mlir::Value operand : op->getOperands())
    in.push_back(of(operand));
  llvm::Type *type =
      scalarType(op->getResult(0).getType(), builder.getContext());
  // Arithmetic on narrow floats is done in fp32 and rounded.
  auto isNarrow = [](llvm::Type *t) {
    return t->isBFloatTy() || t->isHalfTy();
  };
  bool isCast = isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp>(op);
  bool widens = isNarrow(type) && !isCast && !isa<arith::ConstantOp>(op);
  llvm::Type *computed = widens ? builder.getFloatTy() : type;
  if (!isCast)
    for (llvm::Value *&value : in)
      if (isNarrow(value->getType()))
        value = convertFloat(builder, value, builder.getFloatTy());
  llvm::Value *result = emitArith(op, in, computed);
  if (!result && isa<math::MathDialect>(op->getDialect()))
    result = emitMath(op, in, computed);
  if (result && widens && result->getType() == computed)
    result = convertFloat(builder, result, type);
  if (result)
    bind(op->getResult(0), result);
  return result;
}

std::optional<llvm::SmallVector<llvm::Value *>>
cpu::emitBody(Block &body, Values arguments,
              llvm::function_ref<llvm::Value *(int64_t)> indexOf,
              llvm::IRBuilderBase &builder) {
  BodyEmitter emitter(builder, indexOf);
  for (auto [argument, value] : llvm::zip_equal(body.getArguments(), arguments))
    emitter.bind(argument, value);
  for (Operation &op : body.without_terminator())
    if (!emitter.emit(&op)) {
      op.emitOpError("not supported: the cpu target has no code for it");
      return std::nullopt;
    }
  llvm::SmallVector<llvm::Value *> yielded;
  for (mlir::Value value : body.getTerminator()->getOperands())
    yielded.push_back(emitter.of(value));
  return yielded;
}
