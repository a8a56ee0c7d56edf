//===- MapDerivative.cpp - Derivatives of scalar computations -------------===//
//
// The derivative of a map is one map: its body computes the scalars of the
// original body again and goes through them in reverse. It has a result, of the
// full shape, for each operand whose gradient is wanted; those of broadcast
// operands are then summed.
//
// Where a derivative is not defined it is what PyTorch has: 0 for the absolute
// value and a power with exponent 0 at 0. At a tie, the maximum or minimum of
// two values that both have a gradient gives half to each; with one that has
// none (relu is a maximum with 0) the gradient is 0. Rounding, comparisons and
// integers have derivative 0.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::nn;

//===----------------------------------------------------------------------===//
// Arithmetic on scalar values
//===----------------------------------------------------------------------===//

namespace {
/// A scalar value, with operators that build ops.
struct Scalar {
  Value value;
  OpBuilder *builder;
  Location loc;

  Scalar with(Value other) const { return {other, builder, loc}; }
  Scalar constant(double number) const {
    return with(arith::ConstantOp::create(
        *builder, loc, builder->getFloatAttr(value.getType(), number)));
  }
  template <typename OpT>
  Scalar make() const {
    return with(OpT::create(*builder, loc, value));
  }
  template <typename OpT>
  Scalar make(Scalar other) const {
    return with(OpT::create(*builder, loc, value, other.value));
  }
};
} // namespace

static Scalar operator+(Scalar a, Scalar b) { return a.make<arith::AddFOp>(b); }
static Scalar operator-(Scalar a, Scalar b) { return a.make<arith::SubFOp>(b); }
static Scalar operator*(Scalar a, Scalar b) { return a.make<arith::MulFOp>(b); }
static Scalar operator/(Scalar a, Scalar b) { return a.make<arith::DivFOp>(b); }
static Scalar operator-(Scalar a) { return a.make<arith::NegFOp>(); }
static Scalar operator+(double a, Scalar b) { return b.constant(a) + b; }
static Scalar operator-(double a, Scalar b) { return b.constant(a) - b; }
static Scalar operator*(double a, Scalar b) { return b.constant(a) * b; }

static Scalar compare(arith::CmpFPredicate predicate, Scalar a, Scalar b) {
  return a.with(
      arith::CmpFOp::create(*a.builder, a.loc, predicate, a.value, b.value));
}
static Scalar select(Scalar condition, Scalar a, Scalar b) {
  return a.with(arith::SelectOp::create(*a.builder, a.loc, condition.value,
                                        a.value, b.value));
}

static std::optional<double> constantOf(Scalar scalar) {
  APFloat number(0.0);
  if (!matchPattern(scalar.value, m_ConstantFloat(&number)))
    return std::nullopt;
  bool losesInfo;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return number.convertToDouble();
}

//===----------------------------------------------------------------------===//
// Rules of one operand: from the operand x, the result y and its gradient d
//===----------------------------------------------------------------------===//

static std::optional<Scalar> differentiateExponential(Operation *op, Scalar x,
                                                      Scalar y, Scalar d) {
  constexpr double ln2 = llvm::numbers::ln2, ln10 = llvm::numbers::ln10;
  return llvm::TypeSwitch<Operation *, std::optional<Scalar>>(op)
      .Case([&](math::ExpOp) { return d * y; })
      .Case([&](math::Exp2Op) { return ln2 * (d * y); })
      .Case([&](math::ExpM1Op) { return d * (1.0 + y); })
      .Case([&](math::LogOp) { return d / x; })
      .Case([&](math::Log1pOp) { return d / (1.0 + x); })
      .Case([&](math::Log2Op) { return d / (ln2 * x); })
      .Case([&](math::Log10Op) { return d / (ln10 * x); })
      .Case([&](math::SqrtOp) { return 0.5 * (d / y); })
      .Case([&](math::RsqrtOp) { return -0.5 * (d * (y * y * y)); })
      .Case([&](math::CbrtOp) { return d / (3.0 * (y * y)); })
      .Case([&](math::ErfOp) {
        constexpr double factor = 2 * llvm::numbers::inv_sqrtpi;
        return factor * (d * (-(x * x)).make<math::ExpOp>());
      })
      .Case([&](math::ErfcOp) {
        constexpr double factor = -2 * llvm::numbers::inv_sqrtpi;
        return factor * (d * (-(x * x)).make<math::ExpOp>());
      })
      .Default(std::nullopt);
}

static std::optional<Scalar> differentiateTrigonometric(Operation *op, Scalar x,
                                                        Scalar y, Scalar d) {
  auto sqrt = [](Scalar s) { return s.make<math::SqrtOp>(); };
  return llvm::TypeSwitch<Operation *, std::optional<Scalar>>(op)
      .Case([&](math::SinOp) { return d * x.make<math::CosOp>(); })
      .Case([&](math::CosOp) { return -(d * x.make<math::SinOp>()); })
      .Case([&](math::TanOp) { return d * (1.0 + y * y); })
      .Case([&](math::AsinOp) { return d / sqrt(1.0 - x * x); })
      .Case([&](math::AcosOp) { return -(d / sqrt(1.0 - x * x)); })
      .Case([&](math::AtanOp) { return d / (1.0 + x * x); })
      .Case([&](math::SinhOp) { return d * x.make<math::CoshOp>(); })
      .Case([&](math::CoshOp) { return d * x.make<math::SinhOp>(); })
      .Case([&](math::TanhOp) { return d * (1.0 - y * y); })
      .Case([&](math::AsinhOp) { return d / sqrt(1.0 + x * x); })
      .Case([&](math::AcoshOp) {
        return d / sqrt((x - x.constant(1)) * (1.0 + x));
      })
      .Case([&](math::AtanhOp) { return d / (1.0 - x * x); })
      .Default(std::nullopt);
}

static std::optional<Scalar> differentiateUnary(Operation *op, Scalar x,
                                                Scalar y, Scalar d) {
  if (auto gradient = differentiateExponential(op, x, y, d))
    return gradient;
  if (auto gradient = differentiateTrigonometric(op, x, y, d))
    return gradient;
  return llvm::TypeSwitch<Operation *, std::optional<Scalar>>(op)
      .Case([&](arith::NegFOp) { return -d; })
      .Case([&](math::AbsFOp) {
        Scalar zero = x.constant(0);
        Scalar negative = compare(arith::CmpFPredicate::OLT, x, zero);
        Scalar positive = compare(arith::CmpFPredicate::OGT, x, zero);
        return select(positive, d, select(negative, -d, d.constant(0)));
      })
      .Case([&](arith::ExtFOp) {
        return d.with(arith::TruncFOp::create(*d.builder, d.loc,
                                              x.value.getType(), d.value));
      })
      .Case([&](arith::TruncFOp) {
        return d.with(arith::ExtFOp::create(*d.builder, d.loc,
                                            x.value.getType(), d.value));
      })
      .Default(std::nullopt);
}

//===----------------------------------------------------------------------===//
// The sweep
//===----------------------------------------------------------------------===//

namespace {

/// Goes backward through the scalars of a block.
class ScalarSweep {
public:
  ScalarSweep(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  /// Declares that the gradient of an argument is wanted.
  void activate(Value argument) { active.insert(argument); }
  /// Finds the values that depend on active ones, op by op.
  void spread(Operation &op);

  /// Adds to the gradient of a value, if that matters.
  void add(Value value, Value gradient);
  /// The gradient of a value; null where it is zero.
  Value gradientOf(Value value) const { return gradients.lookup(value); }

  /// Adds to the gradients of an op's operands. Fails, with an error, where the
  /// op has no derivative.
  LogicalResult differentiate(Operation *op);

private:
  bool isActive(Value value) const { return active.contains(value); }
  Scalar scalar(Value value) { return {value, &builder, loc}; }
  void add(Value value, Scalar gradient) { add(value, gradient.value); }

  bool differentiateArithmetic(Operation *op, Scalar d);
  bool differentiateChoice(Operation *op, Scalar d);
  bool differentiatePower(Operation *op, Scalar d);
  void differentiateExtremum(Operation *op, Scalar d, bool isMaximum);
  void differentiatePowF(math::PowFOp op, Scalar d);

  OpBuilder &builder;
  Location loc;
  DenseSet<Value> active;
  DenseMap<Value, Value> gradients;
};

} // namespace

/// Whether an op's derivative is zero wherever it has one.
static bool isStepFunction(Operation &op) {
  return isa<math::CeilOp, math::FloorOp, math::RoundOp, math::RoundEvenOp,
             math::TruncOp>(op);
}

void ScalarSweep::spread(Operation &op) {
  if (isStepFunction(op) ||
      llvm::none_of(op.getOperands(), [&](Value v) { return isActive(v); }))
    return;
  for (Value result : op.getResults())
    if (isa<FloatType>(result.getType()))
      active.insert(result);
}

void ScalarSweep::add(Value value, Value gradient) {
  if (!isActive(value))
    return;
  Value &sum = gradients[value];
  sum = sum ? Value(arith::AddFOp::create(builder, loc, sum, gradient))
            : gradient;
}

bool ScalarSweep::differentiateArithmetic(Operation *op, Scalar d) {
  auto in = [&](unsigned i) { return scalar(op->getOperand(i)); };
  auto wants = [&](unsigned i) { return isActive(op->getOperand(i)); };
  auto give = [&](unsigned i, auto gradient) {
    if (wants(i))
      add(op->getOperand(i), gradient());
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](arith::AddFOp) {
        give(0, [&] { return d; });
        give(1, [&] { return d; });
        return true;
      })
      .Case([&](arith::SubFOp) {
        give(0, [&] { return d; });
        give(1, [&] { return -d; });
        return true;
      })
      .Case([&](arith::MulFOp) {
        give(0, [&] { return d * in(1); });
        give(1, [&] { return d * in(0); });
        return true;
      })
      .Case([&](arith::DivFOp) {
        Scalar y = scalar(op->getResult(0));
        give(0, [&] { return d / in(1); });
        give(1, [&] { return -(d * y) / in(1); });
        return true;
      })
      .Case([&](arith::RemFOp) { // a - trunc(a / b) * b
        give(0, [&] { return d; });
        give(1, [&] { return -(d * (in(0) / in(1)).make<math::TruncOp>()); });
        return true;
      })
      .Case([&](math::FmaOp) {
        give(0, [&] { return d * in(1); });
        give(1, [&] { return d * in(0); });
        give(2, [&] { return d; });
        return true;
      })
      .Case([&](math::Atan2Op) { // of y, x
        auto square = [&] { return in(0) * in(0) + in(1) * in(1); };
        give(0, [&] { return d * in(1) / square(); });
        give(1, [&] { return -(d * in(0)) / square(); });
        return true;
      })
      .Case([&](math::CopySignOp) {
        auto sign = [&](unsigned i) {
          return in(i).constant(1).make<math::CopySignOp>(in(i));
        };
        give(0, [&] { return d * (sign(0) * sign(1)); });
        return true;
      })
      .Default(false);
}

void ScalarSweep::differentiateExtremum(Operation *op, Scalar d,
                                        bool isMaximum) {
  Scalar a = scalar(op->getOperand(0)), b = scalar(op->getOperand(1));
  auto predicate =
      isMaximum ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
  Scalar atTie = d.constant(0);
  if (isActive(a.value) && isActive(b.value))
    atTie = select(compare(arith::CmpFPredicate::OEQ, a, b), 0.5 * d,
                   d.constant(0));
  if (isActive(a.value))
    add(a.value, select(compare(predicate, a, b), d, atTie));
  if (isActive(b.value))
    add(b.value, select(compare(predicate, b, a), d, atTie));
}

bool ScalarSweep::differentiateChoice(Operation *op, Scalar d) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) {
        differentiateExtremum(op, d, /*isMaximum=*/true);
        return true;
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) {
        differentiateExtremum(op, d, /*isMaximum=*/false);
        return true;
      })
      .Case([&](arith::SelectOp choice) {
        Scalar condition = scalar(choice.getCondition());
        Scalar zero = d.constant(0);
        if (isActive(choice.getTrueValue()))
          add(choice.getTrueValue(), select(condition, d, zero));
        if (isActive(choice.getFalseValue()))
          add(choice.getFalseValue(), select(condition, zero, d));
        return true;
      })
      .Case([&](math::ClampFOp clamp) { // inside, ends included, as PyTorch
        Scalar x = scalar(clamp.getValue()), low = scalar(clamp.getMin());
        Scalar high = scalar(clamp.getMax()), zero = d.constant(0);
        Scalar below = compare(arith::CmpFPredicate::OLT, x, low);
        Scalar above = compare(arith::CmpFPredicate::OGT, x, high);
        add(x.value, select(below, zero, select(above, zero, d)));
        add(low.value, select(below, d, zero));
        add(high.value, select(above, d, zero));
        return true;
      })
      .Default(false);
}

/// The derivative in the base is 0 for exponent 0, that in the exponent is 0
/// where a base of 0 gives 0.
void ScalarSweep::differentiatePowF(math::PowFOp op, Scalar d) {
  Scalar base = scalar(op.getLhs()), exponent = scalar(op.getRhs());
  Scalar y = scalar(op.getResult()), zero = d.constant(0);
  std::optional<double> known = constantOf(exponent);
  if (isActive(base.value)) {
    if (known && *known == 0)
      return;
    if (known && *known == 2) // the usual ones need no power
      add(base.value, 2.0 * (d * base));
    else if (known && *known == 3)
      add(base.value, 3.0 * (d * (base * base)));
    else if (known)
      add(base.value,
          d * (*known * base.make<math::PowFOp>(base.constant(*known - 1))));
    else {
      Scalar lower = base.make<math::PowFOp>(exponent - exponent.constant(1));
      Scalar isZero = compare(arith::CmpFPredicate::OEQ, exponent, zero);
      add(base.value, select(isZero, zero, d * (exponent * lower)));
    }
  }
  if (isActive(exponent.value)) {
    Scalar isZero = compare(arith::CmpFPredicate::OEQ, base, zero);
    Scalar inside = compare(arith::CmpFPredicate::OGE, exponent, zero);
    Scalar vanishes = isZero.make<arith::AndIOp>(inside);
    Scalar log = base.make<math::LogOp>();
    add(exponent.value, select(vanishes, zero, d * (y * log)));
  }
}

bool ScalarSweep::differentiatePower(Operation *op, Scalar d) {
  if (auto power = dyn_cast<math::PowFOp>(op)) {
    differentiatePowF(power, d);
    return true;
  }
  auto power = dyn_cast<math::FPowIOp>(op);
  if (!power)
    return false;
  // n * x^(n-1), 0 for n = 0.
  Scalar x = scalar(power.getLhs());
  Value exponent = power.getRhs();
  Type type = exponent.getType();
  auto integer = [&](int64_t number) -> Value {
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(type, number));
  };
  Value lower = arith::SubIOp::create(builder, loc, exponent, integer(1));
  Scalar rest = x.with(math::FPowIOp::create(builder, loc, x.value, lower));
  Scalar factor = x.with(
      arith::SIToFPOp::create(builder, loc, x.value.getType(), exponent));
  Scalar isZero = x.with(arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::eq, exponent, integer(0)));
  add(x.value, select(isZero, d.constant(0), d * (factor * rest)));
  return true;
}

LogicalResult ScalarSweep::differentiate(Operation *op) {
  if (op->getNumResults() != 1)
    return op->emitOpError("has no derivative");
  Value gradient = gradientOf(op->getResult(0));
  if (!gradient)
    return success();
  Scalar d = scalar(gradient);
  if (op->getNumOperands() == 1) {
    Value operand = op->getOperand(0);
    auto given =
        differentiateUnary(op, scalar(operand), scalar(op->getResult(0)), d);
    if (given) {
      add(operand, *given);
      return success();
    }
  }
  if (differentiateArithmetic(op, d) || differentiateChoice(op, d) ||
      differentiatePower(op, d))
    return success();
  return op->emitOpError("has no derivative");
}

//===----------------------------------------------------------------------===//
// MapOp
//===----------------------------------------------------------------------===//

/// Clones a map's body, without its terminator, to the end of `block`, whose
/// first arguments stand for the body's. Returns the yielded values.
static SmallVector<Value> cloneBody(OpBuilder &builder, MapOp op,
                                    Block &block) {
  Block &body = op.getBody().front();
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(body.getArguments(), block.getArguments()))
    mapping.map(from, to);
  for (Operation &inner : body.without_terminator())
    builder.clone(inner, mapping);
  return llvm::map_to_vector(
      body.getTerminator()->getOperands(),
      [&](Value value) { return mapping.lookupOrDefault(value); });
}

/// Erases the ops and arguments of a body that nothing uses; `operands` are the
/// map's.
static void dropUnused(Block &block, SmallVectorImpl<Value> &operands) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (unsigned i = block.getNumArguments(); i-- > 0;) {
    if (!block.getArgument(i).use_empty())
      continue;
    block.eraseArgument(i);
    operands.erase(operands.begin() + i);
  }
}

/// Makes the derivative's map from its region, which has an argument for each
/// of `operands`: first those of `op`, then results' gradients. `scalars[i]` is
/// the gradient of operand i, or null. Returns tensors of the full shape.
static SmallVector<Value> buildGradientMap(OpBuilder &builder, MapOp op,
                                           Region &region,
                                           SmallVector<Value> operands,
                                           ArrayRef<Value> scalars) {
  SmallVector<Value> gradients(scalars.size()), computed;
  SmallVector<unsigned> places;
  SmallVector<Type> types;
  for (auto [i, scalar] : llvm::enumerate(scalars)) {
    auto argument = dyn_cast_or_null<BlockArgument>(scalar);
    if (argument && argument.getArgNumber() >= op.getNumOperands()) {
      // A result's gradient as it is needs no map.
      gradients[i] = operands[argument.getArgNumber()];
    } else if (scalar) {
      computed.push_back(scalar);
      places.push_back(i);
      types.push_back(
          RankedTensorType::get(shapeOf(op.getResult(0)), scalar.getType()));
    }
  }
  if (computed.empty())
    return gradients;
  Block &block = region.front();
  OpBuilder inner(op.getContext());
  inner.setInsertionPointToEnd(&block);
  YieldOp::create(inner, op.getLoc(), computed);
  dropUnused(block, operands);
  auto map = MapOp::create(builder, op.getLoc(), types, operands);
  map.getBody().takeBody(region);
  for (auto [place, result] : llvm::zip(places, map.getResults()))
    gradients[place] = result;
  return gradients;
}

FailureOr<SmallVector<Value>>
MapOp::buildDerivative(OpBuilder &builder, ArrayRef<Value> resultGradients,
                       ArrayRef<bool> wanted) {
  Region region;
  Block &block = region.emplaceBlock();
  SmallVector<Value> operands(getOperands());
  llvm::append_range(operands, llvm::make_filter_range(
                                   resultGradients, [](Value v) { return v; }));
  for (Value operand : operands)
    block.addArgument(getElementTypeOrSelf(operand), getLoc());
  OpBuilder inner(getContext()); // the region has no op yet
  inner.setInsertionPointToStart(&block);
  SmallVector<Value> yielded = cloneBody(inner, *this, block);

  ScalarSweep sweep(inner, getLoc());
  for (unsigned i = 0; i < getNumOperands(); ++i)
    if (wanted[i] && isa<FloatType>(block.getArgument(i).getType()))
      sweep.activate(block.getArgument(i));
  SmallVector<Operation *> forward;
  for (Operation &op : block) {
    sweep.spread(op);
    forward.push_back(&op);
  }
  unsigned next = getNumOperands();
  for (auto [value, gradient] : llvm::zip(yielded, resultGradients))
    if (gradient)
      sweep.add(value, block.getArgument(next++));
  for (Operation *op : llvm::reverse(forward))
    if (failed(sweep.differentiate(op)))
      return failure();

  SmallVector<Value> scalars;
  for (unsigned i = 0; i < getNumOperands(); ++i)
    scalars.push_back(sweep.gradientOf(block.getArgument(i)));
  SmallVector<Value> gradients =
      buildGradientMap(builder, *this, region, operands, scalars);
  for (unsigned i = 0; i < getNumOperands(); ++i)
    if (gradients[i])
      gradients[i] =
          buildSumTo(builder, getLoc(), gradients[i], shapeOf(getOperand(i)));
  return gradients;
}
