//===- OpsTest.cpp - Every op, compiled, against the interpreter ----------===//

#include "llvm/Support/FormatVariadic.h"

#include "CompareWithInterpreter.h"

using namespace espalier::test;
using llvm::formatv;

namespace {

using Strings = std::vector<std::string>;

std::string tensor(std::vector<int64_t> shape,
                   const std::string &type = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + type + ">";
}

/// Sizes that are no multiple of a vector, and some that are.
const int64_t awkward[] = {1, 3, 7, 17, 64, 65, 130};

} // namespace

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

TEST(Ops, MapBroadcasts) {
  for (int64_t n : awkward)
    compare(
        {tensor({3, n}), tensor({n}), tensor({3, 1}), tensor({})},
        {tensor({3, n}), tensor({3, n}, "i1")},
        formatv(
            "%r:2 = nn.map %a0, %a1, %a2, %a3 : ({0}, {1}, tensor<3x1xf32>, "
            "tensor<f32>) -> ({0}, {2}) {{\n"
            "^bb0(%u: f32, %v: f32, %w: f32, %x: f32):\n"
            "  %1 = arith.addf %u, %v : f32\n"
            "  %2 = arith.mulf %1, %w : f32\n"
            "  %3 = arith.divf %2, %x : f32\n"
            "  %4 = arith.cmpf olt, %3, %u : f32\n"
            "  nn.yield %3, %4 : f32, i1\n}\n"
            "return %r#0, %r#1 : {0}, {2}",
            tensor({3, n}), tensor({n}), tensor({3, n}, "i1")));
}

TEST(Ops, MapFunctions) {
  for (const char *name :
       {"exp", "tanh", "erf", "sin", "cos", "expm1", "atan", "absf", "floor",
        "sqrt", "log", "log1p", "exp2", "log2", "rsqrt"})
    for (const char *type : {"f32", "f64", "bf16"})
      compare({tensor({65}, type)}, {tensor({65}, type)},
              formatv("%r = nn.map %a0 : ({0}) -> {0} {{\n^bb0(%u: {1}):\n"
                      "  %1 = math.{2} %u : {1}\n  nn.yield %1 : {1}\n}\n"
                      "return %r : {0}",
                      tensor({65}, type), type, name));
}

TEST(Ops, MapOfIntegersAndIotas) {
  compare({tensor({5, 9}, "i64"), tensor({9}, "i32"), tensor({5, 1}, "i1")},
          {tensor({5, 9}), tensor({5, 9}, "i64")},
          "%i = nn.iota dim = 1 : tensor<5x9xi64>\n"
          "%j = nn.iota dim = 0 : tensor<9xf32>\n"
          "%c = nn.constant dense<3> : tensor<5x1xi64> -> tensor<5x1xi64>\n"
          "%r:2 = nn.map %a0, %a1, %a2, %i, %j, %c : (tensor<5x9xi64>, "
          "tensor<9xi32>, tensor<5x1xi1>, tensor<5x9xi64>, tensor<9xf32>, "
          "tensor<5x1xi64>) -> (tensor<5x9xf32>, tensor<5x9xi64>) {\n"
          "^bb0(%u: i64, %v: i32, %w: i1, %x: i64, %y: f32, %z: i64):\n"
          "  %1 = arith.extsi %v : i32 to i64\n"
          "  %2 = arith.muli %1, %x : i64\n"
          "  %3 = arith.select %w, %2, %u : i64\n"
          "  %4 = arith.sitofp %3 : i64 to f32\n"
          "  %5 = arith.addf %4, %y : f32\n"
          "  %6 = arith.maxsi %3, %z : i64\n"
          "  nn.yield %5, %6 : f32, i64\n}\n"
          "return %r#0, %r#1 : tensor<5x9xf32>, tensor<5x9xi64>",
          {.indexRange = 10});
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST(Ops, Reduce) {
  const Strings dims = {"0", "1", "2", "0, 1", "1, 2", "0, 2", "0, 1, 2"};
  for (const char *kind : {"sum", "max", "min", "prod"})
    for (const std::string &which : dims)
      for (const char *type : {"f32", "f64"}) {
        std::vector<int64_t> shape = {3, 5, 33};
        for (char digit : which)
          if (digit >= '0' && digit <= '2')
            shape[digit - '0'] = 1;
        compare({tensor({3, 5, 33}, type)}, {tensor(shape, type)},
                formatv("%r = nn.reduce {0} %a0 dims = [{1}] : {2} -> {3}\n"
                        "return %r : {3}",
                        kind, which, tensor({3, 5, 33}, type),
                        tensor(shape, type)));
      }
  compare({tensor({4, 6}, "bf16")}, {tensor({4, 1}, "bf16")},
          "%r = nn.reduce sum %a0 dims = [1] : tensor<4x6xbf16> -> "
          "tensor<4x1xbf16>\nreturn %r : tensor<4x1xbf16>");
  compare({tensor({4, 6}, "i64")}, {tensor({1, 6}, "i64")},
          "%r = nn.reduce max %a0 dims = [0] : tensor<4x6xi64> -> "
          "tensor<1x6xi64>\nreturn %r : tensor<1x6xi64>",
          {.indexRange = 100});
}

TEST(Ops, SumsOfManyNumbersAreExact) {
  compare({tensor({300001})}, {tensor({1})},
          "%r = nn.reduce sum %a0 dims = [0] : tensor<300001xf32> -> "
          "tensor<1xf32>\nreturn %r : tensor<1xf32>",
          {.tolerance = 1e-6});
}

TEST(Ops, ReductionsOfAMapShareItsLoops) {
  CompiledProgram program = compare(
      {tensor({6, 20})},
      {tensor({6, 20}), tensor({1, 20}), tensor({6, 1}), tensor({1, 1})},
      "%s:2 = nn.map %a0 : (tensor<6x20xf32>) -> (tensor<6x20xf32>, "
      "tensor<6x20xf32>) {\n^bb0(%u: f32):\n  %1 = arith.mulf %u, %u : f32\n"
      "  %2 = arith.addf %1, %u : f32\n  nn.yield %1, %2 : f32, f32\n}\n"
      "%c = nn.reduce sum %s#0 dims = [0] : tensor<6x20xf32> -> "
      "tensor<1x20xf32>\n"
      "%d = nn.reduce max %s#0 dims = [1] : tensor<6x20xf32> -> "
      "tensor<6x1xf32>\n"
      "%e = nn.reduce sum %s#1 dims = [0, 1] : tensor<6x20xf32> -> "
      "tensor<1x1xf32>\n"
      "return %s#0, %c, %d, %e : tensor<6x20xf32>, tensor<1x20xf32>, "
      "tensor<6x1xf32>, tensor<1x1xf32>");
  size_t first = program.object.rt.find("rt.loops");
  EXPECT_EQ(program.object.rt.find("rt.loops", first + 1), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

TEST(Ops, ShapeOps) {
  compare({tensor({3, 4, 5})}, {tensor({5, 12}), tensor({4, 3, 2})},
          "%t = nn.transpose %a0 [2, 0, 1] : tensor<3x4x5xf32> -> "
          "tensor<5x3x4xf32>\n"
          "%r = nn.reshape %t : tensor<5x3x4xf32> -> tensor<5x12xf32>\n"
          "%u = nn.transpose %a0 [1, 0, 2] : tensor<3x4x5xf32> -> "
          "tensor<4x3x5xf32>\n"
          "%s = nn.slice %u offsets = [0, 0, 1] strides = [1, 1, 2] : "
          "tensor<4x3x5xf32> -> tensor<4x3x2xf32>\n"
          "return %r, %s : tensor<5x12xf32>, tensor<4x3x2xf32>");
  compare({tensor({3, 4}), tensor({3, 2}), tensor({3, 1})},
          {tensor({3, 7}), tensor({5, 6}), tensor({2, 3, 4})},
          "%c = nn.concat %a0, %a1, %a2 dim = 1 : (tensor<3x4xf32>, "
          "tensor<3x2xf32>, tensor<3x1xf32>) -> tensor<3x7xf32>\n"
          "%p = nn.pad %a0 low = [1, 0] high = [1, 2] value = 2.5 : f32 : "
          "tensor<3x4xf32> -> tensor<5x6xf32>\n"
          "%b = nn.broadcast %a2 : tensor<3x1xf32> -> tensor<2x3x4xf32>\n"
          "return %c, %p, %b : tensor<3x7xf32>, tensor<5x6xf32>, "
          "tensor<2x3x4xf32>");
}

TEST(Ops, ConstantsAndCombinedReshapes) {
  compare({tensor({2, 3, 4})}, {tensor({3, 8}), tensor({2, 3})},
          "%c = nn.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : "
          "tensor<2x3xf32> -> tensor<2x3xf32>\n"
          "%t = nn.transpose %a0 [1, 0, 2] : tensor<2x3x4xf32> -> "
          "tensor<3x2x4xf32>\n"
          "%m = nn.map %t, %t : (tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> "
          "tensor<3x2x4xf32> {\n^bb0(%u: f32, %v: f32):\n"
          "  %1 = arith.addf %u, %v : f32\n  nn.yield %1 : f32\n}\n"
          "%r = nn.reshape %m : tensor<3x2x4xf32> -> tensor<3x8xf32>\n"
          "return %r, %c : tensor<3x8xf32>, tensor<2x3xf32>");
}

TEST(Ops, ArgumentsReturnedInOtherPlaces) {
  compareProgram(
      "func.func @first("
      "%a: tensor<4xf32> {espalier.name = \"a\", espalier.role = \"x\"},"
      "%b: tensor<4xf32> {espalier.name = \"b\", espalier.role = \"x\"})"
      "-> (tensor<4xf32> {espalier.name = \"b\", espalier.role = \"x\"},"
      "tensor<4xf32> {espalier.name = \"a\", espalier.role = \"x\"}) {\n"
      "return %a, %b : tensor<4xf32>, tensor<4xf32>\n}\n"
      "func.func @update() {\n return\n}",
      "first");
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

void compareContract(const std::string &equation, std::vector<int64_t> lhs,
                     std::vector<int64_t> rhs, std::vector<int64_t> result,
                     const std::string &type = "f32") {
  compare({tensor(lhs, type), tensor(rhs, type)}, {tensor(result, type)},
          formatv("%r = nn.contract \"{0}\" %a0, %a1 : {1}, {2} -> {3}\n"
                  "return %r : {3}",
                  equation, tensor(lhs, type), tensor(rhs, type),
                  tensor(result, type)));
}

} // namespace

TEST(Ops, Contract) {
  for (const char *type : {"f32", "f64", "bf16"})
    for (int64_t n : {1, 3, 17}) {
      compareContract("mk,kn->mn", {5, 7}, {7, n}, {5, n}, type);
      compareContract("mk,nk->mn", {5, 7}, {n, 7}, {5, n}, type);
      compareContract("km,kn->nm", {7, 5}, {7, n}, {n, 5}, type);
      compareContract("abk,kn->abn", {2, 3, 7}, {7, n}, {2, 3, n}, type);
      compareContract("abi,abo->io", {2, 3, 7}, {2, 3, n}, {7, n}, type);
      compareContract("bhsd,bhtd->bhst", {2, 3, 5, 4}, {2, 3, n, 4},
                      {2, 3, 5, n}, type);
      compareContract("bshd,bthd->bhst", {2, 5, 3, 4}, {2, n, 3, 4},
                      {2, 3, 5, n}, type);
      compareContract("m,n->mn", {5}, {n}, {5, n}, type);
      compareContract("k,k->", {n}, {n}, {}, type);
      compareContract("akb,bka->ab", {3, n, 2}, {2, n, 3}, {3, 2}, type);
      compareContract("mab,bna->mn", {4, 2, 3}, {3, n, 2}, {4, n}, type);
    }
}

TEST(Ops, TransposesFoldIntoProducts) {
  CompiledProgram program = compare(
      {tensor({8, 6, 12}), tensor({12, 5})}, {tensor({5, 48})},
      "%x = nn.reshape %a0 : tensor<8x6x12xf32> -> tensor<48x12xf32>\n"
      "%c = nn.contract \"mk,kn->mn\" %x, %a1 : tensor<48x12xf32>, "
      "tensor<12x5xf32> -> tensor<48x5xf32>\n"
      "%t = nn.transpose %c [1, 0] : tensor<48x5xf32> -> tensor<5x48xf32>\n"
      "return %t : tensor<5x48xf32>");
  EXPECT_EQ(program.object.rt.find("rt.loops"), std::string::npos)
      << program.object.rt;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

TEST(Ops, Rows) {
  for (const char *type : {"f32", "f64", "bf16"})
    for (int64_t n : awkward) {
      std::string x = tensor({3, n}, type), v = tensor({n}, type);
      compare({x}, {x},
              formatv("%r = nn.softmax %a0 : {0} -> {0}\nreturn %r : {0}", x));
      compare({x, x}, {x},
              formatv("%r = nn.softmax_grad %a0, %a1 : {0}, {0} -> {0}\n"
                      "return %r : {0}",
                      x));
      compare({x, v, v}, {x},
              formatv("%r = nn.layer_norm %a0 scale %a1 bias %a2 epsilon = "
                      "1.0e-02 : ({0}, {1}, {1}) -> {0}\nreturn %r : {0}",
                      x, v));
      compare({x}, {x},
              formatv("%r = nn.layer_norm %a0 epsilon = 1.0e-02 : ({0}) -> {0}"
                      "\nreturn %r : {0}",
                      x));
      compare({x, x, v}, {x, v, v},
              formatv("%r:3 = nn.layer_norm_grad %a0, %a1 scale %a2 epsilon = "
                      "1.0e-02 : ({0}, {0}, {1}) -> ({0}, {1}, {1})\n"
                      "return %r#0, %r#1, %r#2 : {0}, {1}, {1}",
                      x, v),
              {.tolerance = 2e-5});
      compare({x, v}, {x},
              formatv("%r = nn.rms_norm %a0 scale %a1 epsilon = 1.0e-02 : "
                      "({0}, {1}) -> {0}\nreturn %r : {0}",
                      x, v));
      compare({x, x, v}, {x, v},
              formatv("%r:2 = nn.rms_norm_grad %a0, %a1 scale %a2 epsilon = "
                      "1.0e-02 : ({0}, {0}, {1}) -> ({0}, {1})\n"
                      "return %r#0, %r#1 : {0}, {1}",
                      x, v),
              {.tolerance = 2e-5});
    }
}

TEST(Ops, CrossEntropy) {
  for (const char *type : {"f32", "f64"})
    for (const char *index : {"i64", "i32"})
      for (int64_t n : awkward) {
        std::string x = tensor({2, 5, n}, type), y = tensor({2, 5}, index),
                    l = tensor({2, 5}, type);
        compare({x, y}, {l, l},
                formatv("%r:2 = nn.cross_entropy %a0, %a1 ignore_index = 0 : "
                        "{0}, {1} -> {2}, {2}\nreturn %r#0, %r#1 : {2}, {2}",
                        x, y, l),
                {.indexRange = n});
        compare({x, y, l, l}, {x},
                formatv("%r = nn.cross_entropy_grad %a0, %a1, %a2, %a3 "
                        "ignore_index = 0 : ({0}, {1}, {2}, {2}) -> {0}\n"
                        "return %r : {0}",
                        x, y, l),
                {.indexRange = n});
      }
}

//===----------------------------------------------------------------------===//
// Tables and random numbers
//===----------------------------------------------------------------------===//

TEST(Ops, Tables) {
  for (const char *type : {"f32", "f64", "bf16"})
    for (int64_t n : {1, 7, 65}) {
      std::string table = tensor({10, n}, type), rows = tensor({2, 9, n}, type);
      compare({table, tensor({2, 9}, "i64")}, {rows},
              formatv("%r = nn.gather %a0, %a1 : {0}, tensor<2x9xi64> -> {1}\n"
                      "return %r : {1}",
                      table, rows),
              {.indexRange = 10});
      compare(
          {tensor({2, 9}, "i64"), rows, table}, {table},
          formatv("%s = nn.scatter_add %a0, %a1 : tensor<2x9xi64>, {1} -> {0}\n"
                  "%r = nn.map %a2, %s : ({0}, {0}) -> {0} {{\n"
                  "^bb0(%u: {2}, %v: {2}):\n  %1 = arith.addf %u, %v : {2}\n"
                  "  nn.yield %1 : {2}\n}\nreturn %r : {0}",
                  table, rows, type),
          {.indexRange = 10});
    }
}

TEST(Ops, RandomUniform) {
  compare(
      {tensor({3}, "i64"), tensor({2}, "i64")}, {tensor({3, 17}), tensor({5})},
      "%r = nn.random_uniform %a0 offsets %a1 : tensor<2xi64> stream = \"s\" "
      "logical_shape = [6, 34] : tensor<3xi64> -> tensor<3x17xf32>\n"
      "%s = nn.random_uniform %a0 stream = \"t\" logical_shape = [5] : "
      "tensor<3xi64> -> tensor<5xf32>\n"
      "return %r, %s : tensor<3x17xf32>, tensor<5xf32>",
      {.indexRange = 3, .tolerance = 0});
}
