//===- EmitUnary.cpp - Functions of one value -*- C++ -*-===//

#include "llvm/ADT/StringMap.h"

#include <cmath>

#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;

namespace espalier::onnx {

namespace {

/// ScalarBuilder's vocabulary on numbers, so that a formula is written once for
/// maps and for folding.
struct Numbers {
  double constantLike(double value, double) { return value; }
  double add(double a, double b) { return a + b; }
  double sub(double a, double b) { return a - b; }
  double mul(double a, double b) { return a * b; }
  double div(double a, double b) { return a / b; }
  double neg(double a) { return -a; }
  double max(double a, double b) { return std::fmax(a, b); }
  double min(double a, double b) { return std::fmin(a, b); }
  double exp(double a) { return std::exp(a); }
  double log(double a) { return std::log(a); }
  double sqrt(double a) { return std::sqrt(a); }
  double abs(double a) { return std::fabs(a); }
  double tanh(double a) { return std::tanh(a); }
  double erf(double a) { return std::erf(a); }
  double sin(double a) { return std::sin(a); }
  double cos(double a) { return std::cos(a); }
  double floor(double a) { return std::floor(a); }
  double ceil(double a) { return std::ceil(a); }
  double roundEven(double a) { return std::nearbyint(a); }
  double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }
  double selectGreater(double a, double threshold, double b, double c) {
    return a > threshold ? b : c;
  }
  double selectLessOrEqual(double a, double threshold, double b, double c) {
    return a <= threshold ? b : c;
  }
};

/// `parameters` names the op's attributes with their defaults, in the order of
/// p: "alpha=0.01 beta=0.5".
struct UnaryRow {
  const char *name;
  const char *parameters;
  double (*fold)(Numbers &, double, const double *);
  mlir::Value (*body)(ScalarBuilder &, mlir::Value, const double *);
};

} // namespace

//===----------------------------------------------------------------------===//
// Formulas, for S = Numbers on double and S = ScalarBuilder on values
//===----------------------------------------------------------------------===//

/// log(1 + exp(x)), of which neither value nor derivative overflows; from 30 on
/// it is x, to the last bit in fp32.
template <typename S, typename V>
static V softplus(S &s, V x) {
  V one = s.constantLike(1, x);
  V low = s.min(x, s.constantLike(30, x));
  return s.selectGreater(x, 30, x, s.log(s.add(one, s.exp(low))));
}

/// a * (exp(x) - 1) for x <= 0. The minimum keeps the branch that is not taken
/// finite, since its derivative is multiplied by zero.
template <typename S, typename V>
static V expBranch(S &s, V x, double a) {
  V low = s.selectGreater(x, 0, s.constantLike(0, x), x);
  return s.mul(s.constantLike(a, x), s.sub(s.exp(low), s.constantLike(1, x)));
}

template <typename S, typename V>
static V hardSigmoid(S &s, V x, double alpha, double beta) {
  V line = s.add(s.mul(s.constantLike(alpha, x), x), s.constantLike(beta, x));
  return s.min(s.max(line, s.constantLike(0, x)), s.constantLike(1, x));
}

template <typename S, typename V>
static V sign(S &s, V x) {
  V zero = s.constantLike(0, x);
  V positive = s.selectGreater(x, 0, s.constantLike(1, x), zero);
  V negative = s.selectGreater(s.neg(x), 0, s.constantLike(1, x), zero);
  return s.sub(positive, negative);
}

template <typename S, typename V>
static V geluErf(S &s, V x) {
  V scaled = s.mul(x, s.constantLike(0.70710678118654752, x));
  V factor = s.add(s.constantLike(1, x), s.erf(scaled));
  return s.mul(s.mul(s.constantLike(0.5, x), x), factor);
}

template <typename S, typename V>
static V geluTanh(S &s, V x) {
  V cube = s.mul(s.mul(x, x), x);
  V inner = s.add(x, s.mul(s.constantLike(0.044715, x), cube));
  V t = s.tanh(s.mul(s.constantLike(0.79788456080286536, x), inner));
  return s.mul(s.mul(s.constantLike(0.5, x), x),
               s.add(s.constantLike(1, x), t));
}

/// Zero and below give zero with derivative zero, as PyTorch has it; NaN stays.
template <typename S, typename V>
static V relu(S &s, V x, double threshold) {
  return s.selectLessOrEqual(x, threshold, s.constantLike(0, x), x);
}

template <typename S, typename V>
static V reciprocal(S &s, V x) {
  return s.div(s.constantLike(1, x), x);
}

template <typename S, typename V>
static V tangent(S &s, V x) {
  return s.div(s.sin(x), s.cos(x));
}

template <typename S, typename V>
static V halfExp(S &s, V x, bool plus) {
  V a = s.exp(x), b = s.exp(s.neg(x));
  return s.mul(s.constantLike(0.5, x), plus ? s.add(a, b) : s.sub(a, b));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

#define ROW(name, parameters, formula)                                         \
  {name, parameters,                                                           \
   [](Numbers &s, double x, const double *p) -> double {                       \
     (void)p;                                                                  \
     return formula;                                                           \
   },                                                                          \
   [](ScalarBuilder &s, mlir::Value x, const double *p) -> mlir::Value {       \
     (void)p;                                                                  \
     return formula;                                                           \
   }}
#define C(value) s.constantLike(value, x)

static const UnaryRow unaryRows[] = {
    ROW("Abs", "", s.abs(x)),
    ROW("Neg", "", s.neg(x)),
    ROW("Sign", "", sign(s, x)),
    ROW("Floor", "", s.floor(x)),
    ROW("Ceil", "", s.ceil(x)),
    ROW("Round", "", s.roundEven(x)),
    ROW("Sqrt", "", s.sqrt(x)),
    ROW("Reciprocal", "", reciprocal(s, x)),
    ROW("Exp", "", s.exp(x)),
    ROW("Log", "", s.log(x)),
    ROW("Sin", "", s.sin(x)),
    ROW("Cos", "", s.cos(x)),
    ROW("Tan", "", tangent(s, x)),
    ROW("Sinh", "", halfExp(s, x, false)),
    ROW("Cosh", "", halfExp(s, x, true)),
    ROW("Tanh", "", s.tanh(x)),
    ROW("Erf", "", s.erf(x)),
    ROW("Sigmoid", "", s.sigmoid(x)),
    ROW("Softplus", "", softplus(s, x)),
    ROW("Softsign", "", s.div(x, s.add(C(1), s.abs(x)))),
    ROW("Relu", "", relu(s, x, 0)),
    ROW("ThresholdedRelu", "alpha=1", relu(s, x, p[0])),
    ROW("LeakyRelu", "alpha=0.01", s.selectGreater(x, 0, x, s.mul(C(p[0]), x))),
    ROW("Elu", "alpha=1", s.selectGreater(x, 0, x, expBranch(s, x, p[0]))),
    ROW("Celu", "alpha=1",
        s.selectGreater(x, 0, x, expBranch(s, s.div(x, C(p[0])), p[0]))),
    ROW("Selu",
        "alpha=1.67326319217681884765625 gamma=1.05070102214813232421875",
        s.mul(C(p[1]), s.selectGreater(x, 0, x, expBranch(s, x, p[0])))),
    ROW("HardSigmoid", "alpha=0.2 beta=0.5", hardSigmoid(s, x, p[0], p[1])),
    ROW("HardSwish", "", s.mul(x, hardSigmoid(s, x, 1.0 / 6, 0.5))),
    ROW("Mish", "", s.mul(x, s.tanh(softplus(s, x)))),
    ROW("Swish", "alpha=1", s.mul(x, s.sigmoid(s.mul(C(p[0]), x)))),
    ROW("Gelu", "", geluErf(s, x)),
    ROW("Gelu/tanh", "", geluTanh(s, x)),
};

static const UnaryRow *findRow(StringRef name) {
  static const StringMap<const UnaryRow *> rows = [] {
    StringMap<const UnaryRow *> map;
    for (const UnaryRow &row : unaryRows)
      map[row.name] = &row;
    return map;
  }();
  return rows.lookup(name);
}

static SmallVector<double, 2> readParameters(NodeContext &node,
                                             StringRef text) {
  SmallVector<double, 2> values;
  while (!text.empty()) {
    auto [entry, rest] = text.split(' ');
    auto [name, fallback] = entry.split('=');
    double number = 0;
    fallback.getAsDouble(number);
    values.push_back(node.attr(name, number));
    text = rest;
  }
  return values;
}

/// Abs, Neg and Sign of integers.
static void integerUnary(NodeContext &node) {
  StringRef op = node.node.proto->op_type();
  if (op != "Abs" && op != "Neg" && op != "Sign") {
    node.unsupported(op + " of " + dtypeName(node.dtype(0)));
    return;
  }
  auto fold = [&](ArrayRef<Scalar> x) {
    Scalar result;
    uint64_t value = x[0].i;
    if (op == "Sign")
      result.i = (x[0].i > 0) - (x[0].i < 0);
    else
      result.i = op == "Neg" || x[0].i < 0 ? -value : value;
    return result;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) -> mlir::Value {
    if (op == "Abs")
      return s.abs(x[0]);
    return op == "Neg" ? s.neg(x[0]) : sign(s, x[0]);
  };
  elementwise(node, node.dtype(0), {fold, body});
}

void emitUnary(NodeContext &node) {
  if (!isFloating(node.dtype(0)))
    return integerUnary(node);
  std::string name = node.node.proto->op_type();
  if (name == "Gelu") {
    StringRef form = node.attr("approximate", StringRef("none"));
    if (form == "tanh")
      name += "/tanh";
    else if (form != "none")
      return node.fail("attribute 'approximate' is " + quoted(form) +
                       "; supported are 'none' and 'tanh'");
  }
  const UnaryRow *row = findRow(name);
  assert(row && "the op table names this handler for ops of this table only");
  SmallVector<double, 2> parameters = readParameters(node, row->parameters);
  auto fold = [&](ArrayRef<Scalar> x) {
    Numbers numbers;
    Scalar result;
    result.f = row->fold(numbers, x[0].f, parameters.data());
    return result;
  };
  auto body = [&](ScalarBuilder &s, mlir::ValueRange x) {
    return row->body(s, x[0], parameters.data());
  };
  elementwise(node, node.dtype(0), {fold, body});
}

} // namespace espalier::onnx
