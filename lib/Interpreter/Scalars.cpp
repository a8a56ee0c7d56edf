//===- Scalars.cpp - Scalar ops on runs of elements -----------------------===//
//
// Each op is a loop over a run of elements, so that the cost of finding out
// what the op is falls on the run and the loop vectorizes.
//
//===----------------------------------------------------------------------===//

#include "Scalars.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

namespace {
/// What a step is made from.
struct Lanes {
  ArrayRef<const Lane *> in;
  Lane *out;

  const double *floats(unsigned i) const { return in[i]->floats.data(); }
  const int64_t *integers(unsigned i) const { return in[i]->integers.data(); }
  double *outFloats() const { return out->floats.data(); }
  int64_t *outIntegers() const { return out->integers.data(); }
  unsigned outWidth() const { return out->type.getIntOrFloatBitWidth(); }
  unsigned width(unsigned i) const {
    return in[i]->type.getIntOrFloatBitWidth();
  }
};
} // namespace

template <typename Out, typename In, typename F>
static Step unary(Out *out, const In *a, F f) {
  return [=](int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = f(a[i]);
  };
}

template <typename Out, typename In, typename F>
static Step binary(Out *out, const In *a, const In *b, F f) {
  return [=](int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = f(a[i], b[i]);
  };
}

template <typename Out, typename C, typename In, typename F>
static Step ternary(Out *out, const C *a, const In *b, const In *c, F f) {
  return [=](int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = f(a[i], b[i], c[i]);
  };
}

//===----------------------------------------------------------------------===//
// Floating point
//===----------------------------------------------------------------------===//

template <typename F>
static Step floatUnary(const Lanes &l, F f) {
  return unary(l.outFloats(), l.floats(0), f);
}
template <typename F>
static Step floatBinary(const Lanes &l, F f) {
  return binary(l.outFloats(), l.floats(0), l.floats(1), f);
}

/// NaN where one operand is; +0 is larger than -0.
static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
static double minimum(double a, double b) { return -maximum(-a, -b); }

static Step makeFloatArithStep(Operation *op, const Lanes &l) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](arith::AddFOp) {
        return floatBinary(l, [](double a, double b) { return a + b; });
      })
      .Case([&](arith::SubFOp) {
        return floatBinary(l, [](double a, double b) { return a - b; });
      })
      .Case([&](arith::MulFOp) {
        return floatBinary(l, [](double a, double b) { return a * b; });
      })
      .Case([&](arith::DivFOp) {
        return floatBinary(l, [](double a, double b) { return a / b; });
      })
      .Case([&](arith::RemFOp) {
        return floatBinary(l,
                           [](double a, double b) { return std::fmod(a, b); });
      })
      .Case([&](arith::NegFOp) {
        return floatUnary(l, [](double a) { return -a; });
      })
      .Case([&](arith::MaximumFOp) { return floatBinary(l, maximum); })
      .Case([&](arith::MinimumFOp) { return floatBinary(l, minimum); })
      .Case([&](arith::MaxNumFOp) {
        return floatBinary(l,
                           [](double a, double b) { return std::fmax(a, b); });
      })
      .Case([&](arith::MinNumFOp) {
        return floatBinary(l,
                           [](double a, double b) { return std::fmin(a, b); });
      })
      .Case<arith::ExtFOp, arith::TruncFOp>(
          [&](auto) { return floatUnary(l, [](double a) { return a; }); })
      .Default(Step());
}

// Each line names an op and the function of <cmath> that it is.
#define ESPALIER_UNARY(Op, expression)                                         \
  .Case([&](math::Op) {                                                        \
    return floatUnary(l, [](double a) -> double { return expression; });       \
  })
#define ESPALIER_BINARY(Op, expression)                                        \
  .Case([&](math::Op) {                                                        \
    return floatBinary(                                                        \
        l, [](double a, double b) -> double { return expression; });           \
  })

// clang-format off
static Step makeTrigonometricStep(Operation *op, const Lanes &l) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      ESPALIER_UNARY(SinOp, std::sin(a))
      ESPALIER_UNARY(CosOp, std::cos(a))
      ESPALIER_UNARY(TanOp, std::tan(a))
      ESPALIER_UNARY(AsinOp, std::asin(a))
      ESPALIER_UNARY(AcosOp, std::acos(a))
      ESPALIER_UNARY(AtanOp, std::atan(a))
      ESPALIER_UNARY(SinhOp, std::sinh(a))
      ESPALIER_UNARY(CoshOp, std::cosh(a))
      ESPALIER_UNARY(TanhOp, std::tanh(a))
      ESPALIER_UNARY(AsinhOp, std::asinh(a))
      ESPALIER_UNARY(AcoshOp, std::acosh(a))
      ESPALIER_UNARY(AtanhOp, std::atanh(a))
      ESPALIER_BINARY(Atan2Op, std::atan2(a, b))
      .Default(Step());
}

static Step makeExponentialStep(Operation *op, const Lanes &l) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      ESPALIER_UNARY(ExpOp, std::exp(a))
      ESPALIER_UNARY(Exp2Op, std::exp2(a))
      ESPALIER_UNARY(ExpM1Op, std::expm1(a))
      ESPALIER_UNARY(LogOp, std::log(a))
      ESPALIER_UNARY(Log1pOp, std::log1p(a))
      ESPALIER_UNARY(Log2Op, std::log2(a))
      ESPALIER_UNARY(Log10Op, std::log10(a))
      ESPALIER_UNARY(SqrtOp, std::sqrt(a))
      ESPALIER_UNARY(RsqrtOp, 1.0 / std::sqrt(a))
      ESPALIER_UNARY(CbrtOp, std::cbrt(a))
      ESPALIER_UNARY(ErfOp, std::erf(a))
      ESPALIER_UNARY(ErfcOp, std::erfc(a))
      ESPALIER_BINARY(PowFOp, std::pow(a, b))
      .Default(Step());
}

static Step makeRoundingStep(Operation *op, const Lanes &l) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      ESPALIER_UNARY(AbsFOp, std::fabs(a))
      ESPALIER_UNARY(CeilOp, std::ceil(a))
      ESPALIER_UNARY(FloorOp, std::floor(a))
      ESPALIER_UNARY(RoundOp, std::round(a))
      ESPALIER_UNARY(RoundEvenOp, std::nearbyint(a))
      ESPALIER_UNARY(TruncOp, std::trunc(a))
      ESPALIER_BINARY(CopySignOp, std::copysign(a, b))
      .Default(Step());
}
// clang-format on
#undef ESPALIER_UNARY
#undef ESPALIER_BINARY

static Step makeOtherMathStep(Operation *op, const Lanes &l) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](math::FmaOp) {
        return ternary(
            l.outFloats(), l.floats(0), l.floats(1), l.floats(2),
            [](double a, double b, double c) { return std::fma(a, b, c); });
      })
      .Case([&](math::ClampFOp) {
        return ternary(l.outFloats(), l.floats(0), l.floats(1), l.floats(2),
                       [](double a, double low, double high) {
                         return a < low ? low : a > high ? high : a;
                       });
      })
      .Case([&](math::FPowIOp) -> Step {
        double *out = l.outFloats();
        const double *a = l.floats(0);
        const int64_t *b = l.integers(1);
        return [=](int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            out[i] = std::pow(a[i], double(b[i]));
        };
      })
      .Default(Step());
}

//===----------------------------------------------------------------------===//
// Comparison, selection, conversion
//===----------------------------------------------------------------------===//

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::ORD:
    return !unordered;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return unordered || a > b;
  case P::UGE:
    return unordered || a >= b;
  case P::ULT:
    return unordered || a < b;
  case P::ULE:
    return unordered || a <= b;
  case P::UNE:
    return unordered || a != b;
  case P::UNO:
    return unordered;
  case P::AlwaysTrue:
    return true;
  }
  llvm_unreachable("all predicates are above");
}

/// The bits of a value of `width` bits, without the sign's extension.
static uint64_t unsignedOf(int64_t value, unsigned width) {
  return width == 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

static int64_t signedOf(int64_t value, unsigned width) {
  return width == 1 ? -value : value;
}

static Step makeIntegerComparison(arith::CmpIPredicate predicate,
                                  const Lanes &l) {
  using P = arith::CmpIPredicate;
  unsigned width = l.width(0);
  return binary(l.outIntegers(), l.integers(0), l.integers(1),
                [=](int64_t a, int64_t b) -> int64_t {
                  uint64_t ua = unsignedOf(a, width), ub = unsignedOf(b, width);
                  int64_t sa = signedOf(a, width), sb = signedOf(b, width);
                  switch (predicate) {
                  case P::eq:
                    return a == b;
                  case P::ne:
                    return a != b;
                  case P::slt:
                    return sa < sb;
                  case P::sle:
                    return sa <= sb;
                  case P::sgt:
                    return sa > sb;
                  case P::sge:
                    return sa >= sb;
                  case P::ult:
                    return ua < ub;
                  case P::ule:
                    return ua <= ub;
                  case P::ugt:
                    return ua > ub;
                  case P::uge:
                    return ua >= ub;
                  }
                  llvm_unreachable("all predicates are above");
                });
}

template <typename F>
static Step classify(const Lanes &l, F f) {
  return unary(l.outIntegers(), l.floats(0),
               [f](double a) -> int64_t { return f(a); });
}

/// Towards zero; what does not fit gives the nearest end of the range.
static int64_t toInteger(double a) {
  if (std::isnan(a))
    return 0;
  if (a >= 0x1p63)
    return INT64_MAX;
  return a <= -0x1p63 ? INT64_MIN : int64_t(a);
}

static Step makeChoiceStep(Operation *op, const Lanes &l) {
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](arith::CmpFOp cmp) {
        auto predicate = cmp.getPredicate();
        return binary(l.outIntegers(), l.floats(0), l.floats(1),
                      [=](double a, double b) -> int64_t {
                        return compareFloats(predicate, a, b);
                      });
      })
      .Case([&](arith::CmpIOp cmp) {
        return makeIntegerComparison(cmp.getPredicate(), l);
      })
      .Case([&](arith::SelectOp) {
        if (!l.out->floats.empty())
          return ternary(
              l.outFloats(), l.integers(0), l.floats(1), l.floats(2),
              [](int64_t c, double a, double b) { return c ? a : b; });
        return ternary(
            l.outIntegers(), l.integers(0), l.integers(1), l.integers(2),
            [](int64_t c, int64_t a, int64_t b) { return c ? a : b; });
      })
      .Case([&](math::IsNaNOp) {
        return classify(l, [](double a) { return std::isnan(a); });
      })
      .Case([&](math::IsInfOp) {
        return classify(l, [](double a) { return std::isinf(a); });
      })
      .Case([&](math::IsFiniteOp) {
        return classify(l, [](double a) { return std::isfinite(a); });
      })
      .Default(Step());
}

static Step makeConversionStep(Operation *op, const Lanes &l) {
  unsigned to = l.outWidth();
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](arith::SIToFPOp) {
        return unary(l.outFloats(), l.integers(0),
                     [from = l.width(0)](int64_t a) {
                       return double(signedOf(a, from));
                     });
      })
      .Case([&](arith::UIToFPOp) {
        return unary(l.outFloats(), l.integers(0),
                     [from = l.width(0)](int64_t a) {
                       return double(unsignedOf(a, from));
                     });
      })
      .Case<arith::FPToSIOp, arith::FPToUIOp>([&](auto) {
        return unary(l.outIntegers(), l.floats(0),
                     [to](double a) { return wrapInteger(toInteger(a), to); });
      })
      .Case([&](arith::ExtSIOp) {
        return unary(
            l.outIntegers(), l.integers(0),
            [from = l.width(0)](int64_t a) { return signedOf(a, from); });
      })
      .Case([&](arith::ExtUIOp) {
        return unary(l.outIntegers(), l.integers(0),
                     [from = l.width(0)](int64_t a) {
                       return int64_t(unsignedOf(a, from));
                     });
      })
      .Case([&](arith::TruncIOp) {
        return unary(l.outIntegers(), l.integers(0),
                     [to](int64_t a) { return wrapInteger(a, to); });
      })
      .Default(Step());
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

template <typename F>
static Step integerBinary(const Lanes &l, F f) {
  unsigned width = l.outWidth();
  return binary(
      l.outIntegers(), l.integers(0), l.integers(1),
      [=](int64_t a, int64_t b) { return wrapInteger(f(a, b), width); });
}

/// On the bits, as unsigned numbers.
template <typename F>
static Step unsignedBinary(const Lanes &l, F f) {
  unsigned width = l.outWidth();
  return integerBinary(l, [=](int64_t a, int64_t b) {
    return int64_t(f(unsignedOf(a, width), unsignedOf(b, width)));
  });
}

/// Division is never by zero in a program that means something; the interpreter
/// gives 0 and does not trap.
static int64_t quotientOf(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? int64_t(-uint64_t(a)) : a / b;
}
static int64_t remainderOf(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}
static int64_t floorDivide(int64_t a, int64_t b) {
  return quotientOf(a, b) -
         (remainderOf(a, b) != 0 && (remainderOf(a, b) < 0) != (b < 0));
}

static int64_t integerPower(int64_t a, int64_t b) {
  if (b < 0)
    return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t power = 1, base = a;
  for (; b > 0; b >>= 1, base *= base)
    if (b & 1)
      power *= base;
  return power;
}

static Step makeIntegerStep(Operation *op, const Lanes &l) {
  using I = int64_t;
  using U = uint64_t;
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](arith::AddIOp) {
        return integerBinary(l, [](I a, I b) { return I(U(a) + U(b)); });
      })
      .Case([&](arith::SubIOp) {
        return integerBinary(l, [](I a, I b) { return I(U(a) - U(b)); });
      })
      .Case([&](arith::MulIOp) {
        return integerBinary(l, [](I a, I b) { return I(U(a) * U(b)); });
      })
      .Case([&](arith::DivSIOp) { return integerBinary(l, quotientOf); })
      .Case([&](arith::RemSIOp) { return integerBinary(l, remainderOf); })
      .Case([&](arith::FloorDivSIOp) { return integerBinary(l, floorDivide); })
      .Case([&](arith::CeilDivSIOp) {
        return integerBinary(l, [](I a, I b) { return -floorDivide(-a, b); });
      })
      .Case([&](arith::DivUIOp) {
        return unsignedBinary(l, [](U a, U b) { return b ? a / b : 0; });
      })
      .Case([&](arith::RemUIOp) {
        return unsignedBinary(l, [](U a, U b) { return b ? a % b : 0; });
      })
      .Case([&](math::IPowIOp) { return integerBinary(l, integerPower); })
      .Case([&](math::AbsIOp) {
        return unary(l.outIntegers(), l.integers(0),
                     [](I a) { return a < 0 ? I(-U(a)) : a; });
      })
      .Default(Step());
}

static Step makeBitStep(Operation *op, const Lanes &l) {
  using I = int64_t;
  using U = uint64_t;
  return llvm::TypeSwitch<Operation *, Step>(op)
      .Case([&](arith::AndIOp) {
        return integerBinary(l, [](I a, I b) { return a & b; });
      })
      .Case([&](arith::OrIOp) {
        return integerBinary(l, [](I a, I b) { return a | b; });
      })
      .Case([&](arith::XOrIOp) {
        return integerBinary(l, [](I a, I b) { return a ^ b; });
      })
      .Case([&](arith::ShLIOp) {
        return unsignedBinary(l, [](U a, U b) { return b < 64 ? a << b : 0; });
      })
      .Case([&](arith::ShRUIOp) {
        return unsignedBinary(l, [](U a, U b) { return b < 64 ? a >> b : 0; });
      })
      .Case([&](arith::ShRSIOp) {
        return integerBinary(l,
                             [](I a, I b) { return a >> std::min<I>(b, 63); });
      })
      .Case([&](arith::MaxSIOp) {
        return integerBinary(l, [](I a, I b) { return std::max(a, b); });
      })
      .Case([&](arith::MinSIOp) {
        return integerBinary(l, [](I a, I b) { return std::min(a, b); });
      })
      .Case([&](arith::MaxUIOp) {
        return unsignedBinary(l, [](U a, U b) { return std::max(a, b); });
      })
      .Case([&](arith::MinUIOp) {
        return unsignedBinary(l, [](U a, U b) { return std::min(a, b); });
      })
      .Default(Step());
}

FailureOr<Step> interpreter::makeStep(Operation *op,
                                      ArrayRef<const Lane *> operands,
                                      Lane &result) {
  Lanes lanes{operands, &result};
  for (auto make :
       {makeFloatArithStep, makeTrigonometricStep, makeExponentialStep,
        makeRoundingStep, makeOtherMathStep, makeChoiceStep, makeConversionStep,
        makeIntegerStep, makeBitStep})
    if (Step step = make(op, lanes))
      return step;
  return op->emitOpError("is no scalar op that the interpreter knows");
}
