//===- LayersTest.cpp - Attention, windows and rope, compiled -------------===//

#include "llvm/Support/FormatVariadic.h"

#include "CompareWithInterpreter.h"

using namespace espalier::test;
using llvm::formatv;

static std::string tensor(std::vector<int64_t> shape,
                          const std::string &type = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + type + ">";
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

struct Shape {
  int64_t batch, heads, groups, s, t, d, e;
};

/// Forward and gradient with one mask; `mask` is its type, or empty.
void compareAttention(Shape n, bool causal, const std::string &mask,
                      const std::string &type = "f32") {
  std::string q = tensor({n.batch, n.heads, n.s, n.d}, type),
              k = tensor({n.batch, n.groups, n.t, n.d}, type),
              v = tensor({n.batch, n.groups, n.t, n.e}, type),
              o = tensor({n.batch, n.heads, n.s, n.e}, type),
              l = tensor({n.batch, n.heads, n.s},
                         type == "bf16" ? "f32" : type);
  std::string operand = mask.empty() ? "" : " mask %a4";
  std::string flag = causal ? " causal" : "";
  std::string maskType = mask.empty() ? "" : ", " + mask;
  std::vector<std::string> arguments = {q, k, v, o};
  if (!mask.empty())
    arguments.push_back(mask);
  compare(arguments, {o, l, q, k, v},
          formatv("%o, %l = nn.attention %a0, %a1, %a2{0}{1} scale = 0.7 : "
                  "({2}, {3}, {4}{5}) -> ({6}, {7})\n"
                  "%r:3 = nn.attention_grad %a0, %a1, %a2, %o, %l, %a3{0}{1} "
                  "scale = 0.7 : ({2}, {3}, {4}, {6}, {7}, {6}{5}) -> "
                  "({2}, {3}, {4})\n"
                  "return %o, %l, %r#0, %r#1, %r#2 : {6}, {7}, {2}, {3}, {4}",
                  operand, flag, q, k, v, maskType, o, l),
          {.tolerance = 2e-5});
}

} // namespace

TEST(Attention, Shapes) {
  compareAttention({1, 1, 1, 1, 1, 1, 1}, false, "");
  compareAttention({2, 3, 3, 7, 5, 3, 6}, false, "");
  compareAttention({1, 4, 2, 33, 65, 16, 16}, false, "");
  compareAttention({1, 2, 1, 70, 130, 17, 20}, false, "");
  compareAttention({1, 4, 2, 17, 9, 8, 8}, false, "", "f64");
}

TEST(Attention, Causal) {
  compareAttention({2, 2, 2, 64, 64, 16, 16}, true, "");
  compareAttention({1, 2, 1, 65, 65, 8, 8}, true, "");
  compareAttention({1, 1, 1, 3, 70, 8, 8}, true, "");
  compareAttention({1, 1, 1, 70, 3, 8, 8}, true,
                   ""); // queries that see nothing
}

TEST(Attention, Masks) {
  Shape n = {2, 4, 2, 7, 17, 8, 8};
  compareAttention(n, false, "tensor<2x1x1x17xi1>");
  compareAttention(n, true, "tensor<1x4x7x17xi1>");
  compareAttention(n, false, "tensor<1x1x7x17xf32>");
  compareAttention(n, true, "tensor<2x1x7x1xf32>");
}

// A row masked entirely by the lowest float sees all keys alike, in both
// directions: the logarithm of its sum is lost beside such a score.
TEST(Attention, RowsMaskedByTheLowestFloat) {
  std::string q = tensor({2, 2, 7, 8}), k = tensor({2, 2, 70, 8});
  std::string mask = tensor({2, 1, 7, 1}), lse = tensor({2, 2, 7});
  compare({q, k, k, q, "tensor<2x1x7x1xi1>"}, {q, q, k, k},
          formatv("%m = nn.map %a4 : (tensor<2x1x7x1xi1>) -> {2} {{\n"
                  "^bb0(%u: i1):\n"
                  "  %zero = arith.constant 0.0 : f32\n"
                  "  %low = arith.constant -3.4028234663852886e38 : f32\n"
                  "  %s = arith.select %u, %zero, %low : f32\n"
                  "  nn.yield %s : f32\n"
                  "}\n"
                  "%o, %l = nn.attention %a0, %a1, %a2 mask %m scale = 0.7 : "
                  "({0}, {1}, {1}, {2}) -> ({0}, {3})\n"
                  "%r:3 = nn.attention_grad %a0, %a1, %a2, %o, %l, %a3 mask %m "
                  "scale = 0.7 : ({0}, {1}, {1}, {0}, {3}, {0}, {2}) -> "
                  "({0}, {1}, {1})\n"
                  "return %o, %r#0, %r#1, %r#2 : {0}, {0}, {1}, {1}",
                  q, k, mask, lse),
          {.tolerance = 2e-5});
}

TEST(Attention, ReadsAndWritesHeadsInPlace) {
  CompiledProgram program = compare(
      {tensor({2, 9, 96})}, {tensor({2, 9, 32})},
      "%q0 = nn.slice %a0 offsets = [0, 0, 0] strides = [1, 1, 1] : "
      "tensor<2x9x96xf32> -> tensor<2x9x32xf32>\n"
      "%k0 = nn.slice %a0 offsets = [0, 0, 32] strides = [1, 1, 1] : "
      "tensor<2x9x96xf32> -> tensor<2x9x32xf32>\n"
      "%v0 = nn.slice %a0 offsets = [0, 0, 64] strides = [1, 1, 1] : "
      "tensor<2x9x96xf32> -> tensor<2x9x32xf32>\n"
      "%q1 = nn.reshape %q0 : tensor<2x9x32xf32> -> tensor<2x9x4x8xf32>\n"
      "%k1 = nn.reshape %k0 : tensor<2x9x32xf32> -> tensor<2x9x4x8xf32>\n"
      "%v1 = nn.reshape %v0 : tensor<2x9x32xf32> -> tensor<2x9x4x8xf32>\n"
      "%q = nn.transpose %q1 [0, 2, 1, 3] : tensor<2x9x4x8xf32> -> "
      "tensor<2x4x9x8xf32>\n"
      "%k = nn.transpose %k1 [0, 2, 1, 3] : tensor<2x9x4x8xf32> -> "
      "tensor<2x4x9x8xf32>\n"
      "%v = nn.transpose %v1 [0, 2, 1, 3] : tensor<2x9x4x8xf32> -> "
      "tensor<2x4x9x8xf32>\n"
      "%o, %l = nn.attention %q, %k, %v causal scale = 0.5 : "
      "(tensor<2x4x9x8xf32>, "
      "tensor<2x4x9x8xf32>, tensor<2x4x9x8xf32>) -> (tensor<2x4x9x8xf32>, "
      "tensor<2x4x9xf32>)\n"
      "%t = nn.transpose %o [0, 2, 1, 3] : tensor<2x4x9x8xf32> -> "
      "tensor<2x9x4x8xf32>\n"
      "%r = nn.reshape %t : tensor<2x9x4x8xf32> -> tensor<2x9x32xf32>\n"
      "return %r : tensor<2x9x32xf32>");
  EXPECT_EQ(program.object.rt.find("rt.loops"), std::string::npos)
      << program.object.rt;
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {

struct Conv {
  std::vector<int64_t> x, w, y;
  std::string strides, low, high, dilations;
  int64_t groups;
};

void compareConv(const Conv &conv, const std::string &type = "f32") {
  std::string x = tensor(conv.x, type), w = tensor(conv.w, type),
              y = tensor(conv.y, type);
  std::string window = formatv(
      "strides = [{0}] pads = [{1}] - [{2}] dilations = [{3}] groups = {4}",
      conv.strides, conv.low, conv.high, conv.dilations, conv.groups);
  compare({x, w, y}, {y, x, w},
          formatv("%y = nn.conv %a0, %a1 {0} : {1}, {2} -> {3}\n"
                  "%x = nn.conv_input_grad %a2, %a1 {0} : {3}, {2} -> {1}\n"
                  "%w = nn.conv_filter_grad %a0, %a2 {0} : {1}, {3} -> {2}\n"
                  "return %y, %x, %w : {3}, {1}, {2}",
                  window, x, w, y));
}

} // namespace

TEST(Windows, Convolutions) {
  compareConv({{2, 3, 8, 9},
               {4, 3, 3, 3},
               {2, 4, 8, 9},
               "1, 1",
               "1, 1",
               "1, 1",
               "1, 1",
               1});
  compareConv({{2, 4, 9, 7},
               {6, 2, 3, 2},
               {2, 6, 4, 4},
               "2, 2",
               "0, 1",
               "0, 1",
               "1, 1",
               2});
  compareConv({{1, 3, 7, 7},
               {3, 1, 3, 3},
               {1, 3, 5, 5},
               "1, 1",
               "1, 1",
               "1, 1",
               "2, 2",
               3});
  compareConv({{2, 5, 4, 4},
               {3, 5, 1, 1},
               {2, 3, 4, 4},
               "1, 1",
               "0, 0",
               "0, 0",
               "1, 1",
               1});
  compareConv({{2, 3, 11}, {4, 3, 4}, {2, 4, 5}, "2", "1", "0", "1", 1});
  compareConv({{1, 2, 4, 5, 6},
               {3, 2, 2, 3, 2},
               {1, 3, 3, 5, 5},
               "1, 1, 1",
               "0, 1, 0",
               "0, 1, 0",
               "1, 1, 1",
               1});
  compareConv({{1, 2, 5, 5},
               {2, 2, 3, 3},
               {1, 2, 5, 5},
               "1, 1",
               "1, 1",
               "1, 1",
               "1, 1",
               1},
              "f64");
}

TEST(Windows, Pools) {
  std::string window =
      "kernel = [3, 2] strides = [2, 2] pads = [1, 0] - [1, 1] "
      "dilations = [1, 1]";
  for (const char *type : {"f32", "f64", "bf16"}) {
    std::string x = tensor({2, 3, 7, 9}, type), y = tensor({2, 3, 4, 5}, type);
    compare({x, y}, {y, x},
            formatv("%y = nn.max_pool %a0 {0} : {1} -> {2}\n"
                    "%x = nn.max_pool_grad %a0, %a1 {0} : {1}, {2} -> {1}\n"
                    "return %y, %x : {2}, {1}",
                    window, x, y));
    for (const char *count : {"", " count_pads"})
      compare({x, y}, {y, x},
              formatv("%y = nn.avg_pool %a0 {0}{3} : {1} -> {2}\n"
                      "%x = nn.avg_pool_grad %a1 {0}{3} : {2} -> {1}\n"
                      "return %y, %x : {2}, {1}",
                      window, x, y, count));
  }
}

TEST(Layers, Rope) {
  for (const char *flags :
       {"", " interleaved", " inverse", " interleaved inverse"})
    for (int64_t d : {2, 6, 16, 34}) {
      std::string x = tensor({2, 3, 5, d}), angle = tensor({5, d / 2}),
                  other = tensor({2, 1, 5, d / 2});
      compare({x, angle, angle, other, other}, {x, x},
              formatv("%y = nn.rope %a0, %a1, %a2{0} : {1}, {2}, {2} -> {1}\n"
                      "%z = nn.rope %a0, %a3, %a4{0} : {1}, {3}, {3} -> {1}\n"
                      "return %y, %z : {1}, {1}",
                      flags, x, angle, other));
    }
}
