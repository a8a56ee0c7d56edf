//===- OpDerivativeTest.cpp - The derivative of every nn op ---------------===//
//
// One row, at least, for each op of the dialect: an op without one fails the
// test. Numbers are f64 throughout.
//
//===----------------------------------------------------------------------===//

#include "test/unit/Autodiff/FiniteDifferences.h"
#include "test/unit/TestProgram.h"

using namespace mlir;
using namespace espalier;

static const double inf = INFINITY;

/// @f with these arguments, one line of a body that defines %y, and its type.
static std::string text(std::string arguments, std::string body,
                        std::string type) {
  return "func.func @f(" + arguments + ") -> " + type + " {\n" + body +
         "\nreturn %y : " + type + "\n}";
}

/// The same for two results %y and %z.
static std::string text(std::string arguments, std::string body,
                        std::string type, std::string second) {
  return "func.func @f(" + arguments + ") -> (" + type + ", " + second +
         ") {\n" + body + "\nreturn %y, %z : " + type + ", " + second + "\n}";
}

//===----------------------------------------------------------------------===//
// Elementwise and structural
//===----------------------------------------------------------------------===//

static std::vector<DerivativeCase> structuralCases() {
  return {
      {text(
          "%x: tensor<2xf64>",
          R"(%c = nn.constant dense<[2.0, 3.0]> : tensor<2xf64> -> tensor<2xf64>
               %y = nn.map %x, %c : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64> {
               ^bb0(%a: f64, %b: f64):
                 %p = arith.mulf %a, %b : f64
                 nn.yield %p : f64
               })",
          "tensor<2xf64>")},
      {text("%x: tensor<2xf64>",
            R"(%c = nn.iota dim = 0 : tensor<2xf64>
               %y = nn.map %x, %c : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64> {
               ^bb0(%a: f64, %b: f64):
                 %p = arith.mulf %a, %b : f64
                 nn.yield %p : f64
               })",
            "tensor<2xf64>")},
      // Dropout: what is random has no gradient, what it is multiplied with
      // has.
      {text("%x: tensor<2x3xf64>, %rng: tensor<3xi64>",
            R"(%u = nn.random_uniform %rng stream = "d" logical_shape = [2, 3]
                   : tensor<3xi64> -> tensor<2x3xf64>
               %y = nn.map %x, %u : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64> {
               ^bb0(%a: f64, %b: f64):
                 %half = arith.constant 0.5 : f64
                 %zero = arith.constant 0.0 : f64
                 %keep = arith.cmpf olt, %b, %half : f64
                 %d = arith.divf %a, %half : f64
                 %s = arith.select %keep, %d, %zero : f64
                 nn.yield %s : f64
               })",
            "tensor<2x3xf64>")},
      // Broadcasting in every way; two results, which share scalars.
      {text("%a: tensor<2x1x3xf64>, %b: tensor<3xf64>, %c: tensor<f64>, %d: "
            "tensor<4x1xf64>",
            R"(%y, %z = nn.map %a, %b, %c, %d
                   : (tensor<2x1x3xf64>, tensor<3xf64>, tensor<f64>, tensor<4x1xf64>)
                     -> (tensor<2x4x3xf64>, tensor<2x4x3xf64>) {
               ^bb0(%p: f64, %q: f64, %r: f64, %s: f64):
                 %0 = arith.mulf %p, %q : f64
                 %1 = arith.addf %0, %r : f64
                 %2 = math.tanh %1 : f64
                 %3 = arith.mulf %2, %s : f64
                 nn.yield %2, %3 : f64, f64
               })",
            "tensor<2x4x3xf64>", "tensor<2x4x3xf64>")},
      // Dimensions of size 1 that stay, an operand used twice, one not at all.
      {text(
          "%a: tensor<1x3xf64>, %b: tensor<1x1xf64>",
          R"(%y = nn.map %a, %b, %a : (tensor<1x3xf64>, tensor<1x1xf64>, tensor<1x3xf64>)
                   -> tensor<1x3xf64> {
               ^bb0(%p: f64, %q: f64, %r: f64):
                 %0 = arith.mulf %p, %r : f64
                 nn.yield %0 : f64
               })",
          "tensor<1x3xf64>")},
      // A sum hands its gradient on as it is.
      {text(
          "%a: tensor<2x3xf64>, %b: tensor<3xf64>",
          R"(%y = nn.map %a, %b : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64> {
               ^bb0(%p: f64, %q: f64):
                 %0 = arith.addf %p, %q : f64
                 nn.yield %0 : f64
               })",
          "tensor<2x3xf64>")},
      {text("%x: tensor<4x6xf64>",
            "%y = nn.reshape %x : tensor<4x6xf64> -> tensor<3x8xf64>",
            "tensor<3x8xf64>")},
      {text("%x: tensor<2x3x4xf64>",
            "%y = nn.transpose %x [2, 0, 1] : tensor<2x3x4xf64> -> "
            "tensor<4x2x3xf64>",
            "tensor<4x2x3xf64>")},
      {text("%x: tensor<4x8xf64>",
            "%y = nn.slice %x offsets = [0, 2] strides = [1, 1] : "
            "tensor<4x8xf64> -> tensor<4x3xf64>",
            "tensor<4x3xf64>")},
      // Strides: the last zeros inside, exactly at and beyond the input's end.
      {text("%x: tensor<7x8xf64>",
            "%y = nn.slice %x offsets = [1, 2] strides = [3, 2] : "
            "tensor<7x8xf64> -> tensor<2x3xf64>",
            "tensor<2x3xf64>")},
      {text("%x: tensor<7xf64>",
            "%y = nn.slice %x offsets = [0] strides = [3] : tensor<7xf64> -> "
            "tensor<3xf64>",
            "tensor<3xf64>")},
      {text("%x: tensor<9xf64>",
            "%y = nn.slice %x offsets = [4] strides = [5] : tensor<9xf64> -> "
            "tensor<1xf64>",
            "tensor<1xf64>")},
      {text("%a: tensor<2x3xf64>, %b: tensor<2x1xf64>, %c: tensor<2x2xf64>",
            R"(%y = nn.concat %a, %b, %c, %a dim = 1
                : (tensor<2x3xf64>, tensor<2x1xf64>, tensor<2x2xf64>, tensor<2x3xf64>)
                  -> tensor<2x9xf64>)",
            "tensor<2x9xf64>"),
       -2,
       2,
       3,
       {},
       {1}},
      {text("%x: tensor<2x3xf64>",
            R"(%y = nn.pad %x low = [0, 1] high = [2, 0] value = 7.0 : f64
                : tensor<2x3xf64> -> tensor<4x4xf64>)",
            "tensor<4x4xf64>")},
      {text("%x: tensor<4x1xf64>",
            "%y = nn.broadcast %x : tensor<4x1xf64> -> tensor<2x4x3xf64>",
            "tensor<2x4x3xf64>")},
      {text("%x: tensor<1x1xf64>",
            "%y = nn.broadcast %x : tensor<1x1xf64> -> tensor<1x3xf64>",
            "tensor<1x3xf64>")},
  };
}

static std::vector<DerivativeCase> reductionCases() {
  auto reduce = [](std::string kind) {
    return text(
        "%x: tensor<2x3x2xf64>",
        "%y = nn.reduce " + kind +
            " %x dims = [0, 2] : tensor<2x3x2xf64> -> tensor<1x3x1xf64>",
        "tensor<1x3x1xf64>");
  };
  return {
      {reduce("sum")},
      {reduce("max")},
      {reduce("min")},
      {reduce("prod")},
      // One zero, two zeros, none.
      {reduce("prod"), -2, 2, 3, {{0, {0, 2, 0, 3, 4, 5, 1.5, 2, 2, 0, 3, 4}}}},
      {text("%a: tensor<2x4x3xf64>, %b: tensor<3x5xf64>",
            R"(%y = nn.contract "bmk,kn->bmn" %a, %b
                : tensor<2x4x3xf64>, tensor<3x5xf64> -> tensor<2x4x5xf64>)",
            "tensor<2x4x5xf64>")},
      // Batches in other places, transposed operands and result, and one
      // operand's own letters.
      {text("%a: tensor<3x2x4xf64>, %b: tensor<2x5x3xf64>",
            R"(%y = nn.contract "kbm,bnk->nbm" %a, %b
                : tensor<3x2x4xf64>, tensor<2x5x3xf64> -> tensor<5x2x4xf64>)",
            "tensor<5x2x4xf64>")},
      {text(
          "%a: tensor<3xf64>, %b: tensor<2xf64>",
          R"(%y = nn.contract "a,b->ba" %a, %b : tensor<3xf64>, tensor<2xf64> -> tensor<2x3xf64>)",
          "tensor<2x3xf64>")},
      {text(
          "%a: tensor<3xf64>, %b: tensor<3xf64>",
          R"(%y = nn.contract "a,a->" %a, %b : tensor<3xf64>, tensor<3xf64> -> tensor<f64>)",
          "tensor<f64>")},
      {text("%a: tensor<3x3xf64>",
            R"(%y = nn.contract "ab,bc->ac" %a, %a
                : tensor<3x3xf64>, tensor<3x3xf64> -> tensor<3x3xf64>)",
            "tensor<3x3xf64>")},
  };
}

//===----------------------------------------------------------------------===//
// Softmax and norms
//===----------------------------------------------------------------------===//

static std::vector<DerivativeCase> rowCases() {
  std::string softmax = text("%x: tensor<2x3xf64>",
                             "%y = nn.softmax zero_masked_rows %x : "
                             "tensor<2x3xf64> -> tensor<2x3xf64>",
                             "tensor<2x3xf64>");
  return {
      {text("%x: tensor<2x1x3xf64>",
            "%y = nn.softmax %x : tensor<2x1x3xf64> -> tensor<2x1x3xf64>",
            "tensor<2x1x3xf64>")},
      {softmax, -2, 2, 3, {{0, {-inf, -inf, -inf, 1, -inf, 2}}}},
      {text("%y0: tensor<2x3xf64>, %dy: tensor<2x3xf64>",
            "%y = nn.softmax_grad %y0, %dy : tensor<2x3xf64>, tensor<2x3xf64> "
            "-> tensor<2x3xf64>",
            "tensor<2x3xf64>"),
       -2,
       2,
       3,
       {},
       {},
       "has no second derivative"},
      {text("%x: tensor<2x2x3xf64>, %s: tensor<3xf64>, %b: tensor<3xf64>",
            R"(%y = nn.layer_norm %x scale %s bias %b epsilon = 0.01
                : (tensor<2x2x3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<2x2x3xf64>)",
            "tensor<2x2x3xf64>")},
      {text("%x: tensor<2x3xf64>, %b: tensor<3xf64>",
            R"(%y = nn.layer_norm %x bias %b epsilon = 0.01
                : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>)",
            "tensor<2x3xf64>")},
      {text("%x: tensor<4x1xf64>, %s: tensor<1xf64>",
            R"(%y = nn.layer_norm %x scale %s epsilon = 0.5
                : (tensor<4x1xf64>, tensor<1xf64>) -> tensor<4x1xf64>)",
            "tensor<4x1xf64>")},
      {text("%x: tensor<3xf64>",
            "%y = nn.layer_norm %x epsilon = 0.01 : (tensor<3xf64>) -> "
            "tensor<3xf64>",
            "tensor<3xf64>")},
      {text("%x: tensor<2x3xf64>, %dy: tensor<2x3xf64>",
            R"(%y, %s, %b = nn.layer_norm_grad %x, %dy epsilon = 0.01
                : (tensor<2x3xf64>, tensor<2x3xf64>)
                  -> (tensor<2x3xf64>, tensor<3xf64>, tensor<3xf64>))",
            "tensor<2x3xf64>"),
       -2,
       2,
       3,
       {},
       {},
       "has no second derivative"},
      {text("%x: tensor<2x2x3xf64>, %s: tensor<3xf64>",
            R"(%y = nn.rms_norm %x scale %s epsilon = 0.01
                : (tensor<2x2x3xf64>, tensor<3xf64>) -> tensor<2x2x3xf64>)",
            "tensor<2x2x3xf64>")},
      {text("%x: tensor<2x3xf64>",
            "%y = nn.rms_norm %x epsilon = 0.01 : (tensor<2x3xf64>) -> "
            "tensor<2x3xf64>",
            "tensor<2x3xf64>")},
      {text("%x: tensor<2x3xf64>, %dy: tensor<2x3xf64>",
            R"(%y, %s = nn.rms_norm_grad %x, %dy epsilon = 0.01
                : (tensor<2x3xf64>, tensor<2x3xf64>) -> (tensor<2x3xf64>, tensor<3xf64>))",
            "tensor<2x3xf64>"),
       -2,
       2,
       3,
       {},
       {},
       "has no second derivative"},
  };
}

//===----------------------------------------------------------------------===//
// Convolution and pooling
//===----------------------------------------------------------------------===//

static std::vector<DerivativeCase> convolutionCases() {
  // Strides that leave a rest, uneven pads, dilation, groups.
  std::string window =
      "strides = [2, 1] pads = [1, 0] - [0, 2] dilations = [1, 2] groups = 2";
  std::string plain =
      "strides = [1] pads = [0] - [0] dilations = [1] groups = 1";
  std::string x = "tensor<2x4x6x5xf64>", w = "tensor<6x2x3x2xf64>",
              y = "tensor<2x6x3x5xf64>";
  return {
      {text("%x: " + x + ", %w: " + w,
            "%y = nn.conv %x, %w " + window + " : " + x + ", " + w + " -> " + y,
            y)},
      {text("%x: tensor<1x1x3xf64>, %w: tensor<2x1x1xf64>",
            "%y = nn.conv %x, %w " + plain +
                " : tensor<1x1x3xf64>, tensor<2x1x1xf64> -> tensor<1x2x3xf64>",
            "tensor<1x2x3xf64>")},
      {text(
          "%x: tensor<1x2x3x2x3xf64>, %w: tensor<1x2x2x2x2xf64>",
          R"(%y = nn.conv %x, %w strides = [1, 1, 1] pads = [0, 0, 1] - [0, 0, 0]
                dilations = [1, 1, 1] groups = 1
                : tensor<1x2x3x2x3xf64>, tensor<1x2x2x2x2xf64> -> tensor<1x1x2x1x3xf64>)",
          "tensor<1x1x2x1x3xf64>")},
      {text("%dy: " + y + ", %w: " + w,
            "%y = nn.conv_input_grad %dy, %w " + window + " : " + y + ", " + w +
                " -> " + x,
            x)},
      {text("%x: " + x + ", %dy: " + y,
            "%y = nn.conv_filter_grad %x, %dy " + window + " : " + x + ", " +
                y + " -> " + w,
            w)},
  };
}

static std::vector<DerivativeCase> poolingCases() {
  std::string window = " kernel = [3, 2] strides = [2, 1] pads = [1, 0] - [0, "
                       "1] dilations = [1, 1]";
  std::string x = "tensor<2x2x6x4xf64>", y = "tensor<2x2x3x4xf64>";
  auto pool = [&](std::string name, std::string from, std::string to,
                  std::string more = "") {
    return text("%x: " + from,
                "%y = nn." + name + " %x" + window + more + " : " + from +
                    " -> " + to,
                to);
  };
  return {
      {pool("max_pool", x, y)},
      {text(
          "%x: tensor<1x1x7xf64>",
          R"(%y = nn.max_pool %x kernel = [2] strides = [1] pads = [0] - [0] dilations = [3]
                : tensor<1x1x7xf64> -> tensor<1x1x4xf64>)",
          "tensor<1x1x4xf64>")},
      {pool("avg_pool", x, y)},
      {pool("avg_pool", x, y, " count_pads")},
      {pool("avg_pool_grad", y, x)},
      {pool("avg_pool_grad", y, x, " count_pads")},
      {text("%x: " + x + ", %dy: " + y,
            "%y = nn.max_pool_grad %x, %dy" + window + " : " + x + ", " + y +
                " -> " + x,
            x),
       -2,
       2,
       3,
       {},
       {},
       "has no second derivative"},
  };
}

//===----------------------------------------------------------------------===//
// Tables, attention, loss
//===----------------------------------------------------------------------===//

static std::vector<DerivativeCase> tableCases() {
  return {
      {text("%t: tensor<3x2xf64>, %i: tensor<2x4xi64>",
            "%y = nn.gather %t, %i : tensor<3x2xf64>, tensor<2x4xi64> -> "
            "tensor<2x4x2xf64>",
            "tensor<2x4x2xf64>")},
      {text("%t: tensor<3xf64>, %i: tensor<i32>",
            "%y = nn.gather %t, %i : tensor<3xf64>, tensor<i32> -> tensor<f64>",
            "tensor<f64>")},
      {text("%i: tensor<4xi64>, %u: tensor<4x2xf64>",
            "%y = nn.scatter_add %i, %u : tensor<4xi64>, tensor<4x2xf64> -> "
            "tensor<3x2xf64>",
            "tensor<3x2xf64>")},
      {text("%x: tensor<2x3x4xf64>, %l: tensor<2x3xi64>",
            R"(%y, %z = nn.cross_entropy %x, %l ignore_index = -100
                : tensor<2x3x4xf64>, tensor<2x3xi64> -> tensor<2x3xf64>, tensor<2x3xf64>)",
            "tensor<2x3xf64>", "tensor<2x3xf64>"),
       -2,
       2,
       4,
       {{1, {0, -100, 3, 2, 1, -100}}}},
      {text("%x: tensor<2x4xf64>, %l: tensor<2xi64>",
            R"(%y, %lse = nn.cross_entropy %x, %l ignore_index = 1
                : tensor<2x4xf64>, tensor<2xi64> -> tensor<2xf64>, tensor<2xf64>)",
            "tensor<2xf64>"),
       -2,
       2,
       4,
       {{1, {1, 3}}}},
      {text("%x: tensor<2x4xf64>, %l: tensor<2xi64>, %s: tensor<2xf64>, %d: "
            "tensor<2xf64>",
            R"(%y = nn.cross_entropy_grad %x, %l, %s, %d ignore_index = 1
                : (tensor<2x4xf64>, tensor<2xi64>, tensor<2xf64>, tensor<2xf64>)
                  -> tensor<2x4xf64>)",
            "tensor<2x4xf64>"),
       -2,
       2,
       4,
       {},
       {},
       "has no second derivative"},
  };
}

static std::vector<DerivativeCase> ropeCases() {
  auto rope = [](std::string flags, std::string angles) {
    return text("%x: tensor<2x3x4xf64>, %c: " + angles + ", %s: " + angles,
                "%y = nn.rope %x, %c, %s " + flags + " : tensor<2x3x4xf64>, " +
                    angles + ", " + angles + " -> tensor<2x3x4xf64>",
                "tensor<2x3x4xf64>");
  };
  return {{rope("", "tensor<3x2xf64>")},
          {rope("inverse", "tensor<2x1x2xf64>")},
          {rope("interleaved", "tensor<2xf64>")},
          {rope("interleaved inverse", "tensor<2x3x2xf64>")}};
}

/// Attention with 2 samples, 4 heads in 2 groups, 3 queries, `keys` keys.
static std::string attention(std::string keys, std::string mask,
                             std::string causal) {
  std::string q = "tensor<2x4x3x2xf64>", k = "tensor<2x2x" + keys + "x2xf64>",
              v = "tensor<2x2x" + keys + "x3xf64>", out = "tensor<2x4x3x3xf64>";
  return text("%q: " + q + ", %k: " + k + ", %v: " + v +
                  (mask.empty() ? "" : ", %m: " + mask),
              "%y, %lse = nn.attention %q, %k, %v " +
                  std::string(mask.empty() ? "" : "mask %m ") + causal +
                  " scale = 0.5 : (" + q + ", " + k + ", " + v +
                  (mask.empty() ? "" : ", " + mask) + ") -> (" + out +
                  ", tensor<2x4x3xf64>)",
              out);
}

static std::vector<DerivativeCase> attentionCases() {
  std::string q = "tensor<1x1x2x2xf64>";
  return {
      {attention("3", "", "")},
      {attention("5", "", "causal")},
      // More queries than keys: the first sees nothing.
      {attention("2", "", "causal")},
      {attention("4", "tensor<2x1x3x4xi1>", "")},
      {attention("4", "tensor<1x1x3x4xi1>", ""),
       -2,
       2,
       3,
       {{3, {0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1}}}},
      {attention("4", "tensor<2x4x3x4xf64>", "")},
      {attention("4", "tensor<1x4x1x4xf64>", "causal")},
      // A row of nothing but minus infinity.
      {attention("4", "tensor<1x1x3x4xf64>", ""),
       -2,
       2,
       3,
       {{3, {0.5, -inf, 1, 0, -inf, -inf, -inf, -inf, 0, -1, -inf, 2}}}},
      {text("%q: " + q + ", %o: " + q + ", %l: tensor<1x1x2xf64>",
            "%y, %dk, %dv = nn.attention_grad %q, %q, %q, %o, %l, %q scale = "
            "1.0 : (" +
                q + ", " + q + ", " + q + ", " + q + ", tensor<1x1x2xf64>, " +
                q + ") -> (" + q + ", " + q + ", " + q + ")",
            q),
       -2,
       2,
       3,
       {},
       {},
       "has no second derivative"},
      {text("%q: " + q,
            "%o, %y = nn.attention %q, %q, %q scale = 1.0 : (" + q + ", " + q +
                ", " + q + ") -> (" + q + ", tensor<1x1x2xf64>)",
            "tensor<1x1x2xf64>"),
       -2,
       2,
       3,
       {},
       {},
       "has no derivative of its log-sum-exp"},
  };
}

TEST(OpDerivative, EveryOpAgreesWithFiniteDifferences) {
  std::set<std::string> covered = {"nn.yield"};
  for (const auto &rows :
       {structuralCases(), reductionCases(), rowCases(), convolutionCases(),
        poolingCases(), tableCases(), ropeCases(), attentionCases()})
    for (const DerivativeCase &row : rows)
      covered.merge(checkDerivative(row));
  MLIRContext context;
  context.loadDialect<nn::NnDialect>();
  for (RegisteredOperationName name :
       context.getRegisteredOperationsByDialect("nn"))
    EXPECT_TRUE(covered.count(name.getStringRef().str()))
        << name.getStringRef().str() << " needs a row in this table";
}

TEST(OpDerivative, StopsAtWhatNothingWants) {
  // The condition and the integers have no gradient; the square of %x has.
  checkDerivative({text("%x: tensor<3xf64>, %i: tensor<3xi64>",
                        R"(%c = nn.map %x : (tensor<3xf64>) -> tensor<3xi64> {
                           ^bb0(%a: f64):
                             %n = arith.fptosi %a : f64 to i64
                             nn.yield %n : i64
                           }
                           %y = nn.map %x, %i, %c
                               : (tensor<3xf64>, tensor<3xi64>, tensor<3xi64>) -> tensor<3xf64> {
                           ^bb0(%a: f64, %b: i64, %d: i64):
                             %e = arith.addi %b, %d : i64
                             %f = arith.sitofp %e : i64 to f64
                             %s = arith.mulf %a, %a : f64
                             %p = arith.mulf %s, %f : f64
                             nn.yield %p : f64
                           })",
                        "tensor<3xf64>"),
                   0.1, 0.9});
}
