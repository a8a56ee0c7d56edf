//===- InterpreterTest.cpp - What the ops give, by hand -------------------===//

#include "espalier/Support/Philox.h"

#include "test/unit/TestProgram.h"

using namespace mlir;
using namespace espalier;

static const double inf = INFINITY;

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

// The known answers of the Random123 distribution.
TEST(Philox, GivesTheKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, HashesNamesByFnv1a) {
  EXPECT_EQ(hashOfStream(""), 0x811c9dc5u);
  EXPECT_EQ(hashOfStream("a"), 0xe40c292cu);
  EXPECT_EQ(hashOfStream("foobar"), 0xbf9cf968u);
}

// The block [1:2, 2:4] of a logical [2, 4], in microbatch 3: elements 8 * 3 +
// 6, 7.
TEST(Interpreter, DrawsLogicalElements) {
  auto block = runText(R"mlir(
    func.func @f(%rng: tensor<3xi64>, %at: tensor<2xi64>) -> tensor<1x2xf32> {
      %u = nn.random_uniform %rng offsets %at : tensor<2xi64> stream = "d"
          logical_shape = [2, 4] : tensor<3xi64> -> tensor<1x2xf32>
      return %u : tensor<1x2xf32>
    })mlir",
                       {{7, 5, 3}, {1, 2}});
  uint32_t stream = hashOfStream("d");
  expectNear(block[0],
             {uniformAt(7, stream, 30, 5), uniformAt(7, stream, 31, 5)});
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

TEST(Interpreter, MapsWithBroadcasting) {
  auto results = runText(R"mlir(
    func.func @f(%a: tensor<2x1xf32>, %b: tensor<3xf32>, %c: tensor<f32>)
        -> (tensor<2x3xf32>, tensor<2x3xi1>) {
      %s:2 = nn.map %a, %b, %c : (tensor<2x1xf32>, tensor<3xf32>, tensor<f32>)
          -> (tensor<2x3xf32>, tensor<2x3xi1>) {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %p = arith.mulf %x, %y : f32
        %q = arith.addf %p, %z : f32
        %g = arith.cmpf ogt, %q, %z : f32
        nn.yield %q, %g : f32, i1
      }
      return %s#0, %s#1 : tensor<2x3xf32>, tensor<2x3xi1>
    })mlir",
                         {{2, -1}, {1, 2, 3}, {0.5}});
  expectNear(results[0], {2.5, 4.5, 6.5, -0.5, -1.5, -2.5});
  expectNear(results[1], {1, 1, 1, 0, 0, 0});
}

// 1 + 2^-30 is 1 in f32, 1 + 2^-10 is 1 in bf16.
TEST(Interpreter, RoundsAfterEachOpAsTyped) {
  std::string text = R"mlir(
    func.func @f(%a: tensor<T>, %b: tensor<T>) -> tensor<T> {
      %s = nn.map %a, %b : (tensor<T>, tensor<T>) -> tensor<T> {
      ^bb0(%x: T, %y: T):
        %sum = arith.addf %x, %y : T
        %d = arith.subf %sum, %x : T
        nn.yield %d : T
      }
      return %s : tensor<T>
    })mlir";
  auto with = [&](std::string type) {
    std::string result;
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == 'T')
        result += type;
      else
        result += text[i];
    return result;
  };
  EXPECT_EQ(runText(with("f32"), {{1}, {0x1p-30}}, Precision::AsTyped)[0][0],
            0);
  EXPECT_EQ(runText(with("f32"), {{1}, {0x1p-30}}, Precision::Double)[0][0],
            0x1p-30);
  EXPECT_EQ(runText(with("f64"), {{1}, {0x1p-30}}, Precision::AsTyped)[0][0],
            0x1p-30);
  EXPECT_EQ(runText(with("bf16"), {{1}, {0x1p-10}}, Precision::AsTyped)[0][0],
            0);
  EXPECT_EQ(runText(with("bf16"), {{1}, {0x1p-7}}, Precision::AsTyped)[0][0],
            0x1p-7);
}

TEST(Interpreter, WrapsIntegers) {
  auto results = runText(R"mlir(
    func.func @f(%a: tensor<4xi64>) -> (tensor<4xi32>, tensor<4xi64>, tensor<4xi1>) {
      %r:3 = nn.map %a : (tensor<4xi64>) -> (tensor<4xi32>, tensor<4xi64>, tensor<4xi1>) {
      ^bb0(%x: i64):
        %three = arith.constant 3 : i64
        %t = arith.trunci %x : i64 to i32
        %q = arith.floordivsi %x, %three : i64
        %g = arith.cmpi slt, %x, %three : i64
        nn.yield %t, %q, %g : i32, i64, i1
      }
      return %r#0, %r#1, %r#2 : tensor<4xi32>, tensor<4xi64>, tensor<4xi1>
    })mlir",
                         {{2147483648.0, -7, 7, 2}});
  expectNear(results[0], {-2147483648.0, -7, 7, 2});
  expectNear(results[1], {715827882, -3, 2, 0});
  expectNear(results[2], {0, 1, 0, 1});
}

//===----------------------------------------------------------------------===//
// Shape, reductions, products
//===----------------------------------------------------------------------===//

TEST(Interpreter, MovesElements) {
  auto results = runText(R"mlir(
    func.func @f(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<2x2xf32>, tensor<2x5xf32>,
                                          tensor<2x4xf32>, tensor<2x2x3xf32>, tensor<2x3xi64>) {
      %t = nn.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
      %s = nn.slice %x offsets = [0, 0] strides = [1, 2] : tensor<2x3xf32> -> tensor<2x2xf32>
      %c = nn.concat %x, %s dim = 1 : (tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<2x5xf32>
      %p = nn.pad %x low = [0, 1] high = [0, 0] value = 9.0 : f32
          : tensor<2x3xf32> -> tensor<2x4xf32>
      %b = nn.broadcast %x : tensor<2x3xf32> -> tensor<2x2x3xf32>
      %i = nn.iota dim = 1 : tensor<2x3xi64>
      return %t, %s, %c, %p, %b, %i : tensor<3x2xf32>, tensor<2x2xf32>, tensor<2x5xf32>,
          tensor<2x4xf32>, tensor<2x2x3xf32>, tensor<2x3xi64>
    })mlir",
                         {{1, 2, 3, 4, 5, 6}});
  expectNear(results[0], {1, 4, 2, 5, 3, 6});
  expectNear(results[1], {1, 3, 4, 6});
  expectNear(results[2], {1, 2, 3, 1, 3, 4, 5, 6, 4, 6});
  expectNear(results[3], {9, 1, 2, 3, 9, 4, 5, 6});
  expectNear(results[4], {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  expectNear(results[5], {0, 1, 2, 0, 1, 2});
}

TEST(Interpreter, Reduces) {
  auto results = runText(R"mlir(
    func.func @f(%x: tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<1x3xf32>, tensor<1x1xf32>,
                                          tensor<1x3xf32>) {
      %s = nn.reduce sum %x dims = [1] : tensor<2x3xf32> -> tensor<2x1xf32>
      %m = nn.reduce max %x dims = [0] : tensor<2x3xf32> -> tensor<1x3xf32>
      %p = nn.reduce prod %x dims = [0, 1] : tensor<2x3xf32> -> tensor<1x1xf32>
      %n = nn.reduce min %x dims = [0] : tensor<2x3xf32> -> tensor<1x3xf32>
      return %s, %m, %p, %n : tensor<2x1xf32>, tensor<1x3xf32>, tensor<1x1xf32>, tensor<1x3xf32>
    })mlir",
                         {{1, -2, 3, 4, 5, -6}});
  expectNear(results[0], {2, 3});
  expectNear(results[1], {4, 5, 3});
  expectNear(results[2], {720});
  expectNear(results[3], {1, -2, -6});
}

// c[n, b, m] = sum over k of a[k, b, m] * b[b, n, k], with b = 2, m = 1, n = 2,
// k = 2: batch 0: rows (1, 5), batch 1: rows (2, 6) of a.
TEST(Interpreter, Contracts) {
  auto results = runText(R"mlir(
    func.func @f(%a: tensor<2x2x1xf32>, %b: tensor<2x2x2xf32>) -> tensor<2x2x1xf32> {
      %c = nn.contract "kbm,bnk->nbm" %a, %b
          : tensor<2x2x1xf32>, tensor<2x2x2xf32> -> tensor<2x2x1xf32>
      return %c : tensor<2x2x1xf32>
    })mlir",
                         {{1, 2, 5, 6}, {1, 2, 3, 4, 5, 6, 7, 8}});
  // n=0: 1*1+5*2, 2*5+6*6; n=1: 1*3+5*4, 2*7+6*8
  expectNear(results[0], {11, 46, 23, 62});
}

// Seven rows: four at once, then the rest one by one.
TEST(Interpreter, ContractsManyRows) {
  std::vector<double> a(7 * 3), b(3 * 5), c(7 * 5, 0);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = std::sin(double(i));
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = std::cos(double(i));
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 3; ++k)
        c[i * 5 + j] += a[i * 3 + k] * b[k * 5 + j];
  auto results = runText(R"mlir(
    func.func @f(%a: tensor<7x3xf32>, %b: tensor<3x5xf32>) -> tensor<7x5xf32> {
      %c = nn.contract "mk,kn->mn" %a, %b : tensor<7x3xf32>, tensor<3x5xf32> -> tensor<7x5xf32>
      return %c : tensor<7x5xf32>
    })mlir",
                         {a, b});
  expectNear(results[0], c);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

TEST(Interpreter, MasksWholeRowsOfSoftmax) {
  auto results = runText(R"mlir(
    func.func @f(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
      %y = nn.softmax %x : tensor<2x2xf32> -> tensor<2x2xf32>
      %z = nn.softmax zero_masked_rows %x : tensor<2x2xf32> -> tensor<2x2xf32>
      return %y, %z : tensor<2x2xf32>, tensor<2x2xf32>
    })mlir",
                         {{0, std::log(3), -inf, -inf}});
  expectNear(results[0], {0.25, 0.75, NAN, NAN});
  expectNear(results[1], {0.25, 0.75, 0, 0});
}

// Row (1, 3): mean 2, variance 1, mean square 5.
TEST(Interpreter, Normalizes) {
  auto results = runText(R"mlir(
    func.func @f(%x: tensor<1x2xf32>, %s: tensor<2xf32>, %b: tensor<2xf32>)
        -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) {
      %l = nn.layer_norm %x scale %s bias %b epsilon = 0.0
          : (tensor<1x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      %n = nn.layer_norm %x bias %b epsilon = 3.0
          : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      %r = nn.rms_norm %x scale %s epsilon = 4.0
          : (tensor<1x2xf32>, tensor<2xf32>) -> tensor<1x2xf32>
      return %l, %n, %r : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>
    })mlir",
                         {{1, 3}, {2, 3}, {10, 20}});
  expectNear(results[0], {8, 23});
  expectNear(results[1], {9.5, 20.5});
  expectNear(results[2], {2.0 / 3, 3});
}

// A 1-D input of 4 in two groups of one channel, kernel (1, 2), stride 2, pad 1
// low: windows (0, x0), (x1, x2).
TEST(Interpreter, ConvolvesInGroups) {
  auto results = runText(R"mlir(
    func.func @f(%x: tensor<1x2x4xf32>, %w: tensor<2x1x2xf32>) -> tensor<1x2x2xf32> {
      %y = nn.conv %x, %w strides = [2] pads = [1] - [0] dilations = [1] groups = 2
          : tensor<1x2x4xf32>, tensor<2x1x2xf32> -> tensor<1x2x2xf32>
      return %y : tensor<1x2x2xf32>
    })mlir",
                         {{1, 2, 3, 4, 10, 20, 30, 40}, {1, 2, 3, 4}});
  expectNear(results[0], {2, 8, 40, 180});
}

// Windows of three with pads: (-, 1, 2), (2, 2, -).
TEST(Interpreter, Pools) {
  auto results = runText(R"mlir(
    func.func @f(%x: tensor<1x1x3xf32>, %dy: tensor<1x1x2xf32>)
        -> (tensor<1x1x2xf32>, tensor<1x1x3xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) {
      %m = nn.max_pool %x kernel = [3] strides = [2] pads = [1] - [1] dilations = [1]
          : tensor<1x1x3xf32> -> tensor<1x1x2xf32>
      %g = nn.max_pool_grad %x, %dy kernel = [3] strides = [2] pads = [1] - [1] dilations = [1]
          : tensor<1x1x3xf32>, tensor<1x1x2xf32> -> tensor<1x1x3xf32>
      %a = nn.avg_pool %x kernel = [3] strides = [2] pads = [1] - [1] dilations = [1]
          : tensor<1x1x3xf32> -> tensor<1x1x2xf32>
      %b = nn.avg_pool %x kernel = [3] strides = [2] pads = [1] - [1] dilations = [1] count_pads
          : tensor<1x1x3xf32> -> tensor<1x1x2xf32>
      return %m, %g, %a, %b
          : tensor<1x1x2xf32>, tensor<1x1x3xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>
    })mlir",
                         {{-1, -2, -2}, {10, 20}});
  expectNear(results[0], {-1, -2});
  expectNear(results[1], {10, 20, 0}); // the first of the largest
  expectNear(results[2], {-1.5, -2});
  expectNear(results[3], {-1, -4.0 / 3});
}

TEST(Interpreter, GathersAndScatters) {
  auto results = runText(R"mlir(
    func.func @f(%t: tensor<3x2xf32>, %i: tensor<3xi64>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
      %y = nn.gather %t, %i : tensor<3x2xf32>, tensor<3xi64> -> tensor<3x2xf32>
      %s = nn.scatter_add %i, %t : tensor<3xi64>, tensor<3x2xf32> -> tensor<3x2xf32>
      return %y, %s : tensor<3x2xf32>, tensor<3x2xf32>
    })mlir",
                         {{1, 2, 3, 4, 5, 6}, {2, 0, 2}});
  expectNear(results[0], {5, 6, 1, 2, 5, 6});
  expectNear(results[1], {3, 4, 0, 0, 6, 8});
}

// Two queries on three keys, causal: t <= s + 1. Scores are all 0 (q = 0), so
// that weights are even. The mask hides key 0 of query 0 and everything of
// query 1.
TEST(Interpreter, AttendsCausallyAndUnderMasks) {
  std::string text = R"mlir(
    func.func @f(%q: tensor<1x1x2x1xf32>, %k: tensor<1x1x3x1xf32>, %v: tensor<1x1x3x1xf32>,
                 %m: tensor<1x1x2x3xi1>)
        -> (tensor<1x1x2x1xf32>, tensor<1x1x2xf32>, tensor<1x1x2x1xf32>, tensor<1x1x2xf32>) {
      %o, %l = nn.attention %q, %k, %v causal scale = 1.0
          : (tensor<1x1x2x1xf32>, tensor<1x1x3x1xf32>, tensor<1x1x3x1xf32>)
            -> (tensor<1x1x2x1xf32>, tensor<1x1x2xf32>)
      %p, %n = nn.attention %q, %k, %v mask %m scale = 1.0
          : (tensor<1x1x2x1xf32>, tensor<1x1x3x1xf32>, tensor<1x1x3x1xf32>, tensor<1x1x2x3xi1>)
            -> (tensor<1x1x2x1xf32>, tensor<1x1x2xf32>)
      return %o, %l, %p, %n : tensor<1x1x2x1xf32>, tensor<1x1x2xf32>,
          tensor<1x1x2x1xf32>, tensor<1x1x2xf32>
    })mlir";
  auto results =
      runText(text, {{0, 0}, {1, 2, 3}, {3, 6, 9}, {0, 1, 1, 0, 0, 0}});
  expectNear(results[0], {4.5, 6});
  expectNear(results[1], {std::log(2), std::log(3)});
  expectNear(results[2], {7.5, 0});
  expectNear(results[3], {std::log(2), -inf});
}

TEST(Interpreter, RotatesByHalvesAndPairs) {
  std::string text = R"mlir(
    func.func @f(%x: tensor<1x4xf32>, %c: tensor<2xf32>, %s: tensor<2xf32>)
        -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
      %h = nn.rope %x, %c, %s : tensor<1x4xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<1x4xf32>
      %i = nn.rope %x, %c, %s interleaved
          : tensor<1x4xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<1x4xf32>
      %b = nn.rope %h, %c, %s inverse
          : tensor<1x4xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<1x4xf32>
      return %h, %i, %b : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
    })mlir";
  auto results = runText(text, {{1, 2, 3, 4}, {0, 0.6}, {1, 0.8}});
  expectNear(results[0], {-3, 0.6 * 2 - 0.8 * 4, 1, 0.6 * 4 + 0.8 * 2});
  expectNear(results[1], {-2, 1, 0.6 * 3 - 0.8 * 4, 0.6 * 4 + 0.8 * 3});
  expectNear(results[2], {1, 2, 3, 4});
}

TEST(Interpreter, IgnoresLabels) {
  auto results = runText(R"mlir(
    func.func @f(%x: tensor<2x2xf32>, %l: tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>) {
      %y, %lse = nn.cross_entropy %x, %l ignore_index = -1
          : tensor<2x2xf32>, tensor<2xi64> -> tensor<2xf32>, tensor<2xf32>
      return %y, %lse : tensor<2xf32>, tensor<2xf32>
    })mlir",
                         {{0, std::log(3), 0, 0}, {1, -1}});
  expectNear(results[0], {std::log(4.0 / 3), 0});
  expectNear(results[1], {std::log(4), std::log(2)});
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

TEST(Interpreter, NamesAnIndexOutsideOfItsTable) {
  TestProgram program(R"mlir(
    func.func @f(%t: tensor<3x2xf32>, %i: tensor<1xi64>) -> tensor<1x2xf32> {
      %y = nn.gather %t, %i : tensor<3x2xf32>, tensor<1xi64> -> tensor<1x2xf32>
      return %y : tensor<1x2xf32>
    })mlir");
  auto f = program.function("f");
  Tensors arguments = {
      Tensor(program.argumentType(f, 0)),
      Tensor(program.argumentType(f, 1), std::vector<int64_t>{3})};
  EXPECT_TRUE(failed(interpret(f, arguments)));
  EXPECT_NE(program.messages.find("expects indices in [0, 3), but got 3"),
            std::string::npos);
}

// An op of another dialect is the derived interpreter's; here it sums over
// ranks.
TEST(Interpreter, RunsRanksInLockStep) {
  struct Summing : RankedInterpreter {
    using RankedInterpreter::RankedInterpreter;
    LogicalResult
    evaluateTogether(Operation *op,
                     MutableArrayRef<Environment> ranks) override {
      Tensor sum = ranks[0].get(op->getOperand(0));
      for (Environment &rank : ranks.drop_front())
        sum.floats[0] += rank.get(op->getOperand(0)).floats[0];
      for (Environment &rank : ranks)
        rank.set(op->getResult(0), sum);
      return success();
    }
  };
  TestProgram program(R"mlir(
    func.func private @twice(%x: tensor<1xf32>) -> tensor<1xf32> {
      %y = nn.map %x : (tensor<1xf32>) -> tensor<1xf32> {
      ^bb0(%a: f32):
        %s = arith.addf %a, %a : f32
        nn.yield %s : f32
      }
      return %y : tensor<1xf32>
    }
    func.func @f(%x: tensor<1xf32>) -> tensor<1xf32> {
      %y = func.call @twice(%x) : (tensor<1xf32>) -> tensor<1xf32>
      %z = builtin.unrealized_conversion_cast %y : tensor<1xf32> to tensor<1xf32>
      return %z : tensor<1xf32>
    })mlir");
  auto f = program.function("f");
  RankedTensorType type = program.argumentType(f, 0);
  Summing interpreter(/*numRanks=*/2, Precision::Double);
  unsigned seen = 0;
  interpreter.onValue = [&](Value, unsigned, const Tensor &) { ++seen; };
  auto results = interpreter.run(f, {{Tensor(type, std::vector<double>{1})},
                                     {Tensor(type, std::vector<double>{2})}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ((*results)[0][0].floats[0], 6);
  EXPECT_EQ((*results)[1][0].floats[0], 6);
  EXPECT_EQ(seen, 2u * 5); // two arguments and three results, on two ranks
  EXPECT_TRUE(failed(interpret(f, {Tensor(type)})));
}
