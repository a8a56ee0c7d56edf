//===- CollectivesTest.cpp - Programs of several ranks, compiled ----------===//

#include "llvm/Support/FormatVariadic.h"

#include "CompareWithInterpreter.h"

using namespace espalier::test;
using llvm::formatv;

namespace {

/// A function from one tensor to another on a mesh of 2 x 3 ranks.
void compareOnMesh(const std::string &from, const std::string &to,
                   const std::string &body) {
  compareProgram(
      formatv(
          "dist.mesh @mesh [#dist.mesh_axis<\"dp\" = 2, \"node\">, "
          "#dist.mesh_axis<\"tp\" = 3, \"node\">]\n"
          "func.func @first(%x: {0} {{espalier.name = \"x\", espalier.role = "
          "\"input\"}) -> ({1} {{espalier.name = \"y\", espalier.role = "
          "\"output\"}) {{\n{2}\nreturn %y : {1}\n}\n"
          "func.func @update() {{\n  return\n}\n",
          from, to, body),
      "first");
}

const char *const axes[] = {"[\"dp\"]", "[\"tp\"]", "[\"dp\", \"tp\"]"};
const int64_t sizes[] = {2, 3, 6};

std::string tensor(std::vector<int64_t> shape) {
  return formatv("tensor<{0}x{1}x{2}xf32>", shape[0], shape[1], shape[2]);
}

} // namespace

TEST(Collectives, AllReduce) {
  for (const char *kind : {"sum", "max"})
    for (const char *group : axes)
      compareOnMesh(
          tensor({2, 3, 5}), tensor({2, 3, 5}),
          formatv("%z, %w = dist.all_reduce {0} %x, %x axes = {1} : "
                  "{2}, {2} -> {2}, {2}\n"
                  "%y = nn.map %z, %w, %x : ({2}, {2}, {2}) -> {2} {{\n"
                  "^bb0(%a: f32, %b: f32, %c: f32):\n"
                  "  %1 = arith.mulf %a, %b : f32\n"
                  "  %2 = arith.addf %1, %c : f32\n"
                  "  nn.yield %2 : f32\n}",
                  kind, group, tensor({2, 3, 5})));
}

TEST(Collectives, Blocks) {
  for (int group = 0; group < 3; ++group)
    for (int64_t dim = 0; dim < 3; ++dim) {
      std::vector<int64_t> block = {2, 3, 5}, whole = block;
      whole[dim] *= sizes[group];
      std::string b = tensor(block), w = tensor(whole);
      compareOnMesh(
          b, w,
          formatv("%y = dist.all_gather %x dim = {0} axes = {1} : {2} -> {3}",
                  dim, axes[group], b, w));
      compareOnMesh(
          w, b,
          formatv("%y = dist.reduce_scatter sum %x dim = {0} axes = {1} "
                  ": {3} -> {2}",
                  dim, axes[group], b, w));
      compareOnMesh(w, b,
                    formatv("%y = dist.shard_slice %x dim = {0} axes = {1} : "
                            "{3} -> {2}",
                            dim, axes[group], b, w));
    }
}

TEST(Collectives, AllToAll) {
  for (int group = 0; group < 3; ++group)
    for (int64_t split = 0; split < 3; ++split)
      for (int64_t concat = 0; concat < 3; ++concat) {
        if (split == concat)
          continue;
        std::vector<int64_t> from = {6, 12, 18}, to = from;
        to[split] /= sizes[group];
        to[concat] *= sizes[group];
        compareOnMesh(
            tensor(from), tensor(to),
            formatv("%y = dist.all_to_all %x split_dim = {0} concat_dim "
                    "= {1} axes = {2} : {3} -> {4}",
                    split, concat, axes[group], tensor(from), tensor(to)));
      }
}

TEST(Collectives, BlockIndex) {
  for (const char *group : axes)
    compareOnMesh(
        tensor({1, 1, 4}), tensor({1, 1, 4}),
        formatv("%i = dist.block_index axes = {0} scale = 4 : tensor<i64>\n"
                "%j = nn.iota dim = 2 offset %i : tensor<i64> : "
                "tensor<1x1x4xi64>\n"
                "%y = nn.map %x, %j : ({1}, tensor<1x1x4xi64>) -> {1} {{\n"
                "^bb0(%a: f32, %b: i64):\n"
                "  %1 = arith.sitofp %b : i64 to f32\n"
                "  %2 = arith.addf %a, %1 : f32\n"
                "  nn.yield %2 : f32\n}",
                group, tensor({1, 1, 4})));
}
