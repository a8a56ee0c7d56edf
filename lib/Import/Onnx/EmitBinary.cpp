//===- EmitBinary.cpp - Elementwise ops of several values -*- C++ -*-===//

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;
using Compare = espalier::onnx::ScalarBuilder::Compare;

namespace espalier::onnx {

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

namespace {
enum class Arithmetic { Add, Sub, Mul, Div, Max, Min };
} // namespace

static Arithmetic arithmeticOf(StringRef op) {
  return StringSwitch<Arithmetic>(op)
      .Cases({"Add", "Sum", "Mean"}, Arithmetic::Add)
      .Case("Sub", Arithmetic::Sub)
      .Case("Mul", Arithmetic::Mul)
      .Case("Div", Arithmetic::Div)
      .Case("Max", Arithmetic::Max)
      .Default(Arithmetic::Min);
}

static double foldFloat(Arithmetic kind, double a, double b) {
  switch (kind) {
  case Arithmetic::Add:
    return a + b;
  case Arithmetic::Sub:
    return a - b;
  case Arithmetic::Mul:
    return a * b;
  case Arithmetic::Div:
    return a / b;
  case Arithmetic::Max:
    return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
  case Arithmetic::Min:
    return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
  }
  return 0;
}

/// Wraps on overflow; division is towards zero, and by zero gives 0 (ONNX does
/// not define it).
static int64_t foldInt(Arithmetic kind, int64_t a, int64_t b) {
  switch (kind) {
  case Arithmetic::Add:
    return uint64_t(a) + uint64_t(b);
  case Arithmetic::Sub:
    return uint64_t(a) - uint64_t(b);
  case Arithmetic::Mul:
    return uint64_t(a) * uint64_t(b);
  case Arithmetic::Div:
    if (b == 0)
      return 0;
    return b == -1 ? int64_t(-uint64_t(a)) : a / b;
  case Arithmetic::Max:
    return std::max(a, b);
  case Arithmetic::Min:
    return std::min(a, b);
  }
  return 0;
}

static mlir::Value build(Arithmetic kind, ScalarBuilder &s, mlir::Value a,
                         mlir::Value b) {
  switch (kind) {
  case Arithmetic::Add:
    return s.add(a, b);
  case Arithmetic::Sub:
    return s.sub(a, b);
  case Arithmetic::Mul:
    return s.mul(a, b);
  case Arithmetic::Div:
    return s.div(a, b);
  case Arithmetic::Max:
    return s.max(a, b);
  case Arithmetic::Min:
    return s.min(a, b);
  }
  return {};
}

static bool sameTypes(NodeContext &node) {
  for (unsigned i = 1; i < node.inputs(); ++i)
    if (node.dtype(i) != node.dtype(0)) {
      node.fail("operands are of " + dtypeName(node.dtype(0)) + " and " +
                dtypeName(node.dtype(i)));
      return false;
    }
  return true;
}

/// x * 1, x / 1, x + 0 and x - 0 are x, if x has the result's shape.
static const ImportedValue *neutralOperand(NodeContext &node, Arithmetic kind) {
  if (node.inputs() != 2 || kind == Arithmetic::Max || kind == Arithmetic::Min)
    return nullptr;
  double neutral = kind == Arithmetic::Mul || kind == Arithmetic::Div ? 1 : 0;
  bool commutes = kind == Arithmetic::Add || kind == Arithmetic::Mul;
  for (unsigned side : {1, 0}) {
    const Constant *other = node.constant(side);
    if (!other || !other->isUniform() || other->firstAsDouble() != neutral ||
        (side == 0 && !commutes))
      continue;
    const ImportedValue &kept = node.in(1 - side);
    if (broadcastShapes({kept.shape, other->shape}) == kept.shape)
      return &kept;
  }
  return nullptr;
}

void emitArithmetic(NodeContext &node) {
  if (!sameTypes(node))
    return;
  StringRef op = node.node.proto->op_type();
  Arithmetic kind = arithmeticOf(op);
  if (const ImportedValue *kept = neutralOperand(node, kind))
    return node.set(0, ImportedValue(*kept));
  Dtype dtype = node.dtype(0);
  if (!isFloating(dtype) && op == "Mean")
    return node.unsupported("Mean of integers");
  double count = node.inputs();
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar result = x[0];
    for (Scalar next : x.drop_front()) {
      if (isFloating(dtype))
        result.f = foldFloat(kind, result.f, next.f);
      else
        result.i = foldInt(kind, result.i, next.i);
    }
    if (op == "Mean")
      result.f /= count;
    return result;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) {
    mlir::Value result = x[0];
    for (mlir::Value next : x.drop_front())
      result = build(kind, s, result, next);
    if (op == "Mean")
      result = s.div(result, s.constantLike(count, result));
    return result;
  };
  elementwise(node, dtype, {fold, body});
}

/// A fixed power by products and roots, if it is one of the usual; else null.
static mlir::Value fixedPower(ScalarBuilder &s, mlir::Value x, double power) {
  auto reciprocal = [&](mlir::Value value) {
    return s.div(s.constantLike(1, value), value);
  };
  if (power < 0) {
    mlir::Value positive = fixedPower(s, x, -power);
    return positive ? reciprocal(positive) : positive;
  }
  if (power == 0)
    return s.constantLike(1, x);
  if (power == 0.5)
    return s.sqrt(x);
  if (power == 1)
    return x;
  if (power == 2)
    return s.mul(x, x);
  if (power == 3)
    return s.mul(s.mul(x, x), x);
  if (power == 4) {
    mlir::Value square = s.mul(x, x);
    return s.mul(square, square);
  }
  return {};
}

static int64_t intPower(int64_t base, int64_t power) {
  if (power < 0)
    return base == 1 ? 1 : base == -1 ? (power % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = base;
  for (; power; power >>= 1, factor *= factor)
    if (power & 1)
      result *= factor;
  return result;
}

void emitPow(NodeContext &node) {
  Dtype dtype = node.dtype(0);
  ImportedValue power = node.in(1);
  if (power.dtype != dtype && (isFloating(dtype) || !isFloating(power.dtype)))
    power = castTo(node, power, dtype);
  if (power.dtype != dtype)
    return node.unsupported("an integer to a floating-point power");
  if (!isFloating(dtype) && !node.allConstant())
    return node.unsupported("powers of integers that depend on data");
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar result;
    if (isFloating(dtype))
      result.f = std::pow(x[0].f, x[1].f);
    else
      result.i = intPower(x[0].i, x[1].i);
    return result;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) {
    if (power.constant && power.constant->isUniform())
      if (mlir::Value fixed = fixedPower(s, x[0], power.constant->first().f))
        return fixed;
    return s.pow(x[0], x[1]);
  };
  ImportedValue result =
      elementwise(node, {node.in(0), power}, dtype, {fold, body});
  if (!node.failed())
    node.set(0, std::move(result));
}

void emitMod(NodeContext &node) {
  if (!sameTypes(node))
    return;
  if (!node.allConstant())
    return node.unsupported("Mod of values that depend on data");
  Dtype dtype = node.dtype(0);
  bool truncates = node.attr("fmod", int64_t(0));
  if (isFloating(dtype) && !truncates)
    return node.fail("attribute 'fmod' expects 1 for floating-point operands");
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar result;
    if (isFloating(dtype)) {
      result.f = std::fmod(x[0].f, x[1].f);
      return result;
    }
    bool isZero = x[1].i == 0 || x[1].i == -1;
    result.i = isZero ? 0 : x[0].i % x[1].i;
    if (!truncates && result.i != 0 && (result.i < 0) != (x[1].i < 0))
      result.i += x[1].i;
    return result;
  };
  auto body = [&](ScalarBuilder &, mlir::ValueRange x) { return x[0]; };
  elementwise(node, dtype, {fold, body});
}

//===----------------------------------------------------------------------===//
// Comparisons and logic
//===----------------------------------------------------------------------===//

template <typename T>
static bool foldCompare(Compare kind, T a, T b) {
  switch (kind) {
  case Compare::Equal:
    return a == b;
  case Compare::Less:
    return a < b;
  case Compare::LessOrEqual:
    return a <= b;
  case Compare::Greater:
    return a > b;
  case Compare::GreaterOrEqual:
    return a >= b;
  }
  return false;
}

void emitCompare(NodeContext &node) {
  if (!sameTypes(node))
    return;
  Compare kind = StringSwitch<Compare>(node.node.proto->op_type())
                     .Case("Equal", Compare::Equal)
                     .Case("Less", Compare::Less)
                     .Case("LessOrEqual", Compare::LessOrEqual)
                     .Case("Greater", Compare::Greater)
                     .Default(Compare::GreaterOrEqual);
  Dtype dtype = node.dtype(0);
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar result;
    result.i = isFloating(dtype) ? foldCompare(kind, x[0].f, x[1].f)
                                 : foldCompare(kind, x[0].i, x[1].i);
    return result;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) {
    return s.compare(kind, x[0], x[1]);
  };
  elementwise(node, Dtype::Bool, {fold, body});
}

static bool expectBool(NodeContext &node) {
  for (unsigned i = 0; i < node.inputs(); ++i)
    if (node.dtype(i) != Dtype::Bool) {
      node.fail("operand " + Twine(i) + " expects bool, but got " +
                dtypeName(node.dtype(i)));
      return false;
    }
  return true;
}

/// And with true, Or with false: the other operand, repeated to the result's
/// shape.
static bool emitNeutralLogic(NodeContext &node, StringRef op) {
  if (op != "And" && op != "Or")
    return false;
  for (unsigned side : {0, 1}) {
    const Constant *other = node.constant(side);
    if (!other || !other->isUniform() || other->first().i != (op == "And"))
      continue;
    const ImportedValue &kept = node.in(1 - side);
    std::optional<Shape> shape = broadcastShapes({kept.shape, other->shape});
    if (!shape || kept.constant)
      return false;
    node.set(0, node.nn.broadcast(kept.value, *shape));
    return true;
  }
  return false;
}

void emitLogic(NodeContext &node) {
  StringRef op = node.node.proto->op_type();
  if (!expectBool(node) || emitNeutralLogic(node, op))
    return;
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar result;
    if (op == "Not")
      result.i = !x[0].i;
    else if (op == "And")
      result.i = x[0].i & x[1].i;
    else
      result.i = op == "Or" ? x[0].i | x[1].i : x[0].i ^ x[1].i;
    return result;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) {
    if (op == "Not")
      return s.logicalNot(x[0]);
    if (op == "And")
      return s.logicalAnd(x[0], x[1]);
    return op == "Or" ? s.logicalOr(x[0], x[1]) : s.logicalXor(x[0], x[1]);
  };
  elementwise(node, Dtype::Bool, {fold, body});
}

void emitIsNan(NodeContext &node) {
  if (!isFloating(node.dtype(0)))
    return node.fail("expects floating-point numbers");
  auto fold = [](ArrayRef<Scalar> x) {
    Scalar result;
    result.i = std::isnan(x[0].f);
    return result;
  };
  auto body = [](ScalarBuilder &s, mlir::ValueRange x) {
    return s.isNan(x[0]);
  };
  elementwise(node, Dtype::Bool, {fold, body});
}

void emitIsInf(NodeContext &node) {
  if (!isFloating(node.dtype(0)))
    return node.fail("expects floating-point numbers");
  bool negative = node.attr("detect_negative", int64_t(1));
  bool positive = node.attr("detect_positive", int64_t(1));
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar result;
    result.i = std::isinf(x[0].f) && (x[0].f < 0 ? negative : positive);
    return result;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) -> mlir::Value {
    mlir::Value up =
        s.compare(Compare::Equal, x[0], s.constantLike(INFINITY, x[0]));
    mlir::Value down =
        s.compare(Compare::Equal, x[0], s.constantLike(-INFINITY, x[0]));
    if (positive && negative)
      return s.logicalOr(up, down);
    if (positive || negative)
      return positive ? up : down;
    return s.constant(0, s.builder.getI1Type());
  };
  elementwise(node, Dtype::Bool, {fold, body});
}

void emitWhere(NodeContext &node) {
  if (node.dtype(0) != Dtype::Bool || node.dtype(1) != node.dtype(2))
    return node.fail("expects bool and two operands of one type, but got " +
                     dtypeName(node.dtype(0)) + ", " +
                     dtypeName(node.dtype(1)) + ", " +
                     dtypeName(node.dtype(2)));
  std::optional<Shape> shape =
      broadcastShapes({node.shape(0), node.shape(1), node.shape(2)});
  const Constant *condition = node.constant(0);
  if (shape && condition && condition->isUniform()) {
    const ImportedValue &taken = node.in(condition->first().i ? 1 : 2);
    if (!taken.constant)
      return node.set(0, node.nn.broadcast(taken.value, *shape));
  }
  auto fold = [](ArrayRef<Scalar> x) { return x[0].i ? x[1] : x[2]; };
  auto body = [](ScalarBuilder &s, mlir::ValueRange x) {
    return s.select(x[0], x[1], x[2]);
  };
  elementwise(node, node.dtype(1), {fold, body});
}

void emitPrelu(NodeContext &node) {
  if (!sameTypes(node))
    return;
  auto fold = [](ArrayRef<Scalar> x) {
    Scalar result;
    result.f = x[0].f > 0 ? x[0].f : x[0].f * x[1].f;
    return result;
  };
  auto body = [](ScalarBuilder &s, mlir::ValueRange x) {
    return s.selectGreater(x[0], 0, x[0], s.mul(x[0], x[1]));
  };
  elementwise(node, node.dtype(0), {fold, body});
}

void emitClip(NodeContext &node) {
  SmallVector<ImportedValue> operands{node.in(0)};
  bool hasLow = node.has(1), hasHigh = node.has(2);
  for (unsigned i : {1, 2})
    if (node.has(i))
      operands.push_back(node.in(i));
  for (const ImportedValue &operand : operands)
    if (operand.dtype != node.dtype(0) ||
        (&operand != &operands[0] && !operand.shape.empty() &&
         elementCount(operand.shape) != 1))
      return node.fail("expects bounds of one element, of the input's type");
  bool isFloat = isFloating(node.dtype(0));
  auto pick = [&](Arithmetic kind, Scalar a, Scalar b) {
    if (isFloat)
      a.f = foldFloat(kind, a.f, b.f);
    else
      a.i = foldInt(kind, a.i, b.i);
    return a;
  };
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar result = hasLow ? pick(Arithmetic::Max, x[0], x[1]) : x[0];
    return hasHigh ? pick(Arithmetic::Min, result, x.back()) : result;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) {
    mlir::Value result = hasLow ? s.max(x[0], x[1]) : x[0];
    return hasHigh ? s.min(result, x.back()) : result;
  };
  ImportedValue result =
      elementwise(node, operands, node.dtype(0), {fold, body});
  if (!node.failed() && result.shape != node.shape(0))
    return node.fail("expects scalar bounds");
  if (!node.failed())
    node.set(0, std::move(result));
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static void emitCastTo(NodeContext &node, Dtype to) {
  if (to == Dtype::String || node.dtype(0) == Dtype::String)
    return node.unsupported("strings");
  ImportedValue result = castTo(node, node.in(0), to);
  if (!node.failed())
    node.set(0, std::move(result));
}

void emitCast(NodeContext &node) {
  int64_t number = node.attr("to", int64_t(0));
  Dtype to =
      number > INT32_MAX || number < 0 ? Dtype::Undefined : toDtype(number);
  if (to == Dtype::Undefined)
    return node.unsupported("data type " + Twine(number) +
                            " in attribute 'to'");
  emitCastTo(node, to);
}

void emitCastLike(NodeContext &node) { emitCastTo(node, node.dtype(1)); }

} // namespace espalier::onnx
