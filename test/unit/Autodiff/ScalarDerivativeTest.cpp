//===- ScalarDerivativeTest.cpp - The derivative of every scalar op -------===//
//
// Every op of arith and math that gives a floating-point number has a row, or
// is in the list of those that a map may hold but training does not need.
//
//===----------------------------------------------------------------------===//

#include "espalier/Autodiff/Autodiff.h"

#include "test/unit/Autodiff/FiniteDifferences.h"
#include "test/unit/TestProgram.h"

using namespace mlir;
using namespace espalier;

/// A map of seven elements with floating-point scalars %a, %b, %c and an
/// integer %n; the body gives %y.
static std::string mapOf(std::string body) {
  return R"(func.func @f(%0: tensor<7xf64>, %1: tensor<7xf64>, %2: tensor<7xf64>,
                         %3: tensor<7xi64>) -> tensor<7xf64> {
    %r = nn.map %0, %1, %2, %3 : (tensor<7xf64>, tensor<7xf64>, tensor<7xf64>, tensor<7xi64>)
        -> tensor<7xf64> {
    ^bb0(%a: f64, %b: f64, %c: f64, %n: i64):
      )" +
         body + R"(
      nn.yield %y : f64
    }
    return %r : tensor<7xf64>
  })";
}

static std::string unary(std::string op) {
  return mapOf("%y = " + op + " %a : f64");
}
static std::string binary(std::string op) {
  return mapOf("%y = " + op + " %a, %b : f64");
}
static std::string ternary(std::string op) {
  return mapOf("%y = " + op + " %a, %b, %c : f64");
}

static std::vector<DerivativeCase> scalarCases() {
  std::vector<DerivativeCase> rows;
  for (std::string op :
       {"addf", "subf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"})
    rows.push_back({binary("arith." + op)});
  rows.push_back({unary("arith.negf")});
  for (std::string op : {"divf", "remf"})
    rows.push_back({binary("arith." + op), 0.3, 3});
  for (std::string op : {"absf", "exp", "exp2", "expm1", "tanh", "erf", "erfc",
                         "sin", "cos", "atan", "sinh", "cosh", "asinh", "ceil",
                         "floor", "round", "roundeven", "trunc"})
    rows.push_back({unary("math." + op)});
  for (std::string op :
       {"log", "log1p", "log2", "log10", "sqrt", "rsqrt", "cbrt"})
    rows.push_back({unary("math." + op), 0.3, 3});
  for (std::string op : {"tan", "asin", "acos", "atanh"})
    rows.push_back({unary("math." + op), -0.9, 0.9});
  rows.push_back({unary("math.acosh"), 1.1, 3});
  rows.push_back({binary("math.powf"), 0.3, 3});
  for (std::string op : {"atan2", "copysign"})
    rows.push_back({binary("math." + op)});
  rows.push_back({ternary("math.fma")});
  rows.push_back({mapOf(R"(%l = arith.constant -0.7 : f64
                           %h = arith.constant 0.9 : f64
                           %y = math.clampf %a to [%l, %h] : f64)")});
  rows.push_back(
      {mapOf("%y = math.clampf %a to [%b, %c] : f64"),
       -2,
       2,
       3,
       {{1, {-1, -1, -1, -1, -1, -1, -1}}, {2, {1, 1, 1, 1, 1, 1, 1}}}});
  rows.push_back({mapOf("%y = math.fpowi %a, %n : f64, i64"), -2, 2, 4});
  rows.push_back({mapOf("%y = math.fpowi %a, %n : f64, i64"),
                  0.5,
                  2,
                  3,
                  {{3, {-2, -1, 0, 1, 2, 3, 4}}}});
  for (std::string exponent : {"0.0", "1.0", "2.0", "3.0", "2.5", "-1.5"})
    rows.push_back({mapOf("%e = arith.constant " + exponent +
                          " : f64\n%y = math.powf %a, %e : f64"),
                    0.3, 3});
  rows.push_back({mapOf(R"(%p = arith.cmpf ogt, %a, %b : f64
                           %y = arith.select %p, %b, %c : f64)")});
  // Only up and down again: f32 rounds, which differences of f64 would not see.
  rows.push_back({mapOf(R"(%w = arith.extf %a : f64 to f128
                           %s = arith.mulf %w, %w : f128
                           %y = arith.truncf %s : f128 to f64)")});
  rows.push_back({mapOf(
      "%s = arith.sitofp %n : i64 to f64\n%y = arith.mulf %s, %a : f64")});
  rows.push_back({mapOf(
      "%s = arith.uitofp %n : i64 to f64\n%y = arith.mulf %s, %a : f64")});
  // A scalar used several times, and one that leads nowhere.
  rows.push_back({mapOf(R"(%e = math.exp %a : f64
                           %s = arith.mulf %e, %e : f64
                           %t = arith.addf %s, %a : f64
                           %l = math.log %c : f64
                           %y = arith.mulf %t, %e : f64)"),
                  0.1, 1});
  return rows;
}

TEST(ScalarDerivative, EveryOpAgreesWithFiniteDifferences) {
  std::set<std::string> covered;
  for (const DerivativeCase &row : scalarCases())
    covered.merge(checkDerivative(row));
  // Integers have no gradient; scaling_extf and the like are for narrow types.
  std::set<std::string> exempt = {"arith.addi",
                                  "arith.addui_extended",
                                  "arith.andi",
                                  "arith.bitcast",
                                  "arith.ceildivsi",
                                  "arith.ceildivui",
                                  "arith.cmpi",
                                  "arith.divsi",
                                  "arith.divui",
                                  "arith.extsi",
                                  "arith.extui",
                                  "arith.floordivsi",
                                  "arith.fptosi",
                                  "arith.fptoui",
                                  "arith.index_cast",
                                  "arith.index_castui",
                                  "arith.maxsi",
                                  "arith.maxui",
                                  "arith.minsi",
                                  "arith.minui",
                                  "arith.muli",
                                  "arith.mulsi_extended",
                                  "arith.mului_extended",
                                  "arith.ori",
                                  "arith.remsi",
                                  "arith.remui",
                                  "arith.scaling_extf",
                                  "arith.scaling_truncf",
                                  "arith.shli",
                                  "arith.shrsi",
                                  "arith.shrui",
                                  "arith.subi",
                                  "arith.trunci",
                                  "arith.xori",
                                  "math.absi",
                                  "math.ctlz",
                                  "math.ctpop",
                                  "math.cttz",
                                  "math.ipowi",
                                  "math.isfinite",
                                  "math.isinf",
                                  "math.isnan",
                                  "math.isnormal",
                                  "math.sincos",
                                  "arith.convertf",
                                  "arith.flush_denormals"};
  MLIRContext context;
  context.loadDialect<arith::ArithDialect, math::MathDialect>();
  for (StringRef dialect : {"arith", "math"})
    for (RegisteredOperationName name :
         context.getRegisteredOperationsByDialect(dialect)) {
      std::string op = name.getStringRef().str();
      EXPECT_TRUE(covered.count(op) || exempt.count(op))
          << op << " needs a row in this table";
    }
}

TEST(ScalarDerivative, RefusesWhatHasNone) {
  DerivativeCase row{mapOf("%y, %w = math.sincos %a : f64")};
  row.error = "'math.sincos' op has no derivative";
  checkDerivative(row);
}

//===----------------------------------------------------------------------===//
// Where a derivative is not defined
//===----------------------------------------------------------------------===//

/// The gradients of %a and %b of a body at these numbers, for a result's
/// gradient of 1.
static std::vector<double> gradientsAt(std::string body, std::vector<double> a,
                                       std::vector<double> b) {
  std::string n = std::to_string(a.size());
  TestProgram program("func.func @f(%0: tensor<" + n + "xf64>, %1: tensor<" +
                      n + "xf64>, %d: tensor<" + n +
                      "xf64>) { %r = nn.map %0, %1 : (tensor<" + n +
                      "xf64>, tensor<" + n + "xf64>) -> tensor<" + n +
                      "xf64> {\n^bb0(%a: f64, %b: f64):\n" + body +
                      "\nnn.yield %y : f64 }\nreturn }");
  auto f = program.function("f");
  Block &block = f.getBody().front();
  OpBuilder builder(block.getTerminator());
  auto gradients = buildGradients(
      builder, block, {{block.front().getResult(0), f.getArgument(2)}},
      ValueRange(f.getArguments()).take_front(2));
  EXPECT_TRUE(succeeded(gradients));
  SmallVector<Value> returned;
  for (Value gradient : *gradients)
    returned.push_back(
        gradient ? gradient : f.getArgument(2)); // where null: not looked at
  block.getTerminator()->setOperands(returned);
  f.setFunctionType(builder.getFunctionType(f.getArgumentTypes(),
                                            ValueRange(returned).getTypes()));
  RankedTensorType type = program.argumentType(f, 0);
  auto results = interpret(f,
                           {Tensor(type, a), Tensor(type, b),
                            Tensor(type, std::vector<double>(a.size(), 1))},
                           Precision::Double);
  EXPECT_TRUE(succeeded(results)) << program.messages;
  std::vector<double> both = (*results)[0].floats;
  both.insert(both.end(), (*results)[1].floats.begin(),
              (*results)[1].floats.end());
  return both;
}

TEST(ScalarDerivative, SharesTiesAndStopsAtConstants) {
  expectNear(
      gradientsAt("%y = arith.maximumf %a, %b : f64", {1, 2, 3}, {2, 2, 2}),
      {0, 0.5, 1, 1, 0.5, 0});
  // relu
  auto relu = gradientsAt(
      "%z = arith.constant 0.0 : f64\n%m = arith.maximumf %a, %z : f64\n"
      "%y = arith.addf %m, %b : f64",
      {-1, 0, 1}, {0, 0, 0});
  expectNear(relu, {0, 0, 1, 1, 1, 1});
  expectNear(
      gradientsAt("%m = math.absf %a : f64\n%y = arith.addf %m, %b : f64",
                  {-2, 0, 2}, {0, 0, 0}),
      {-1, 0, 1, 1, 1, 1});
  expectNear(
      gradientsAt(
          "%l = arith.constant -1.0 : f64\n%h = arith.constant 1.0 : f64\n"
          "%m = math.clampf %a to [%l, %h] : f64\n%y = arith.addf %m, %b : f64",
          {-2, -1, 1, 2}, {0, 0, 0, 0}),
      {0, 1, 1, 0, 1, 1, 1, 1});
}

TEST(ScalarDerivative, SelectsAndNeverMultipliesByZero) {
  // sqrt(0) has an infinite derivative, on the side not taken.
  expectNear(
      gradientsAt(
          "%z = arith.constant 0.0 : f64\n%p = arith.cmpf ogt, %a, %z : f64\n"
          "%s = math.sqrt %b : f64\n%y = arith.select %p, %s, %b : f64",
          {1}, {4}),
      {1, 0.25});
  expectNear(gradientsAt("%y = math.powf %a, %b : f64", {0, 0, 2}, {0, 2, 0}),
             {0, 0, 0, 0, 0, std::log(2)});
}
