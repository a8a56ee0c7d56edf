//===- EmitTransformer.cpp - Attention, rotation, dropout -*- C++ -*-===//

#include <cmath>

#include "ConstantOps.h"
#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;

namespace espalier::onnx {

/// [batch, sequence, heads * size] as [batch, heads, sequence, size].
static mlir::Value splitHeads(NodeContext &node, unsigned i,
                              StringRef attribute) {
  const Shape &shape = node.shape(i);
  if (shape.size() == 4)
    return node.value(i);
  int64_t heads = node.attr(attribute, int64_t(0));
  if (shape.size() != 3 || heads < 1 || shape[2] % heads) {
    node.fail("input " + Twine(i) + " of shape " + shapeText(shape) +
              " does not split into " + Twine(heads) + " heads");
    return {};
  }
  mlir::Value value = node.nn.reshape(
      node.value(i), {shape[0], shape[1], heads, shape[2] / heads});
  return node.nn.transpose(value, {0, 2, 1, 3});
}

static mlir::Value mergeHeads(NodeContext &node, mlir::Value value) {
  Shape s(NnBuilder::shapeOf(value));
  return node.nn.reshape(node.nn.transpose(value, {0, 2, 1, 3}),
                         {s[0], s[2], s[1] * s[3]});
}

static bool checkAttention(NodeContext &node, ArrayRef<int64_t> q,
                           ArrayRef<int64_t> k, ArrayRef<int64_t> v) {
  bool fits = q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[2] == v[2] &&
              q[3] == k[3] && k[1] > 0 && q[1] % k[1] == 0;
  if (!fits)
    node.fail("queries " + shapeText(q) + ", keys " + shapeText(k) +
              " and values " + shapeText(v) + " do not fit");
  for (unsigned i = 0; i < 3; ++i)
    if (!isFloating(node.dtype(i)) || node.dtype(i) != node.dtype(0))
      node.fail("expects queries, keys and values of one type");
  if (node.has(4) || node.has(5) || node.has(6))
    node.unsupported("a cache of keys and values");
  if (node.attr("softcap", 0.0) != 0)
    node.unsupported("attribute 'softcap'");
  for (unsigned i = 1; i < node.node.outputs.size(); ++i)
    if (!node.node.proto->output(i).empty())
      node.unsupported("output " + Twine(i));
  bool causal = node.attr("is_causal", int64_t(0));
  if (causal && q[2] != k[2])
    node.unsupported("'is_causal' with " + Twine(q[2]) + " queries for " +
                     Twine(k[2]) + " keys");
  return !node.failed();
}

/// The mask with rank 4, or null.
static mlir::Value attentionMask(NodeContext &node, ArrayRef<int64_t> scores) {
  if (!node.has(3))
    return {};
  const ImportedValue &mask = node.in(3);
  std::optional<Shape> wide = broadcastShapes({mask.shape, Shape(scores)});
  if (wide != Shape(scores) ||
      (mask.dtype != Dtype::Bool && mask.dtype != node.dtype(0))) {
    node.fail("mask of shape " + shapeText(mask.shape) + " and type " +
              dtypeName(mask.dtype) + " does not fit scores " +
              shapeText(scores));
    return {};
  }
  mlir::Value value = node.compact(mask);
  Shape shape(NnBuilder::shapeOf(value));
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  return node.nn.reshape(value, shape);
}

void emitAttention(NodeContext &node) {
  for (unsigned i = 0; i < 3; ++i)
    if (node.rank(i) != node.rank(0) ||
        (node.rank(0) != 3 && node.rank(0) != 4))
      return node.fail("expects queries, keys and values of rank 3 or 4");
  mlir::Value q = splitHeads(node, 0, "q_num_heads");
  mlir::Value k = splitHeads(node, 1, "kv_num_heads");
  mlir::Value v = splitHeads(node, 2, "kv_num_heads");
  if (node.failed())
    return;
  auto qs = NnBuilder::shapeOf(q), ks = NnBuilder::shapeOf(k);
  if (!checkAttention(node, qs, ks, NnBuilder::shapeOf(v)))
    return;
  mlir::Value mask = attentionMask(node, {qs[0], qs[1], qs[2], ks[2]});
  if (node.failed())
    return;
  double scale = node.attr("scale", 0.0);
  if (scale == 0)
    scale = 1 / std::sqrt(double(qs[3]));
  mlir::Value out = node.nn.attention(q, k, v, mask, scale,
                                      node.attr("is_causal", int64_t(0)));
  node.set(0, node.rank(0) == 3 ? mergeHeads(node, out) : out);
}

/// cos or sin as [batch or 1, 1, sequence, half]; null after a report.
static mlir::Value rotaryTable(NodeContext &node, unsigned i,
                               ArrayRef<int64_t> x, int64_t half) {
  mlir::Value table = node.value(i);
  if (node.has(3)) {
    if (node.rank(i) != 2 || node.rank(3) != 2) {
      node.fail("expects a table and position ids of rank 2");
      return {};
    }
    if (const Constant *ids = node.constant(3)) {
      for (int64_t id : ids->ints())
        if (id < 0 || id >= node.shape(i)[0]) {
          node.fail("position " + Twine(id) + " is outside the table");
          return {};
        }
    } else if (node.in(3).input >= 0) {
      int64_t &range = node.state.tableSizes[node.in(3).input];
      int64_t size = node.shape(i)[0];
      range = range < 0 ? size : std::min(range, size);
    }
    table = node.nn.gather(table, node.value(3));
  }
  Shape shape(NnBuilder::shapeOf(table));
  // The batch may be 1 where exporters leave it at that.
  if (shape.size() != 3 || (shape[0] != x[0] && shape[0] != 1) ||
      shape[1] != x[2] || shape[2] != half) {
    node.fail("table of shape " + shapeText(shape) + " does not fit input " +
              shapeText(x));
    return {};
  }
  return node.nn.reshape(table, {shape[0], 1, shape[1], shape[2]});
}

void emitRotaryEmbedding(NodeContext &node) {
  mlir::Value value = splitHeads(node, 0, "num_heads");
  if (node.failed())
    return;
  Shape x(NnBuilder::shapeOf(value));
  int64_t rotated = node.attr("rotary_embedding_dim", int64_t(0));
  rotated = rotated == 0 ? x[3] : rotated;
  if (rotated < 2 || rotated % 2 || rotated > x[3] ||
      !isFloating(node.dtype(0)))
    return node.fail("cannot rotate " + Twine(rotated) + " of " + Twine(x[3]) +
                     " elements");
  mlir::Value cos = rotaryTable(node, 1, x, rotated / 2);
  mlir::Value sin = cos ? rotaryTable(node, 2, x, rotated / 2) : cos;
  if (!sin)
    return;
  mlir::Value part = node.nn.sliceDim(value, 3, 0, rotated);
  mlir::Value result =
      node.nn.rope(part, cos, sin, node.attr("interleaved", int64_t(0)));
  if (rotated < x[3]) {
    mlir::Value rest = node.nn.sliceDim(value, 3, rotated, x[3] - rotated);
    result = node.nn.concat({result, rest}, 3);
  }
  node.set(0, node.rank(0) == 3 ? mergeHeads(node, result) : result);
}

void emitDropout(NodeContext &node) {
  const Constant *ratio = node.constant(1), *training = node.constant(2);
  if ((node.has(1) && (!ratio || !ratio->isUniform())) ||
      (node.has(2) && (!training || !training->isUniform())))
    return node.unsupported("a ratio or mode that depends on data");
  double rate = ratio ? ratio->firstAsDouble() : 0.5;
  if (rate < 0 || rate >= 1)
    return node.fail("ratio " + std::to_string(rate) + " is not in [0, 1)");
  bool drops = training && training->first().i != 0 && rate > 0;
  if (!drops) {
    node.set(0, ImportedValue(node.in(0)));
    node.set(1, std::move(*expandConstant(Constant::scalarInt(1, Dtype::Bool),
                                          node.shape(0))));
    return;
  }
  if (!isFloating(node.dtype(0)))
    return node.fail("expects floating-point numbers");
  // Streams are told apart by name; a name may occur twice in a file.
  std::string stream =
      node.node.name + "#" + std::to_string(node.state.randomStreams++);
  mlir::Value noise =
      node.nn.randomUniform(node.state.rng, node.shape(0), stream);
  mlir::Value keep =
      node.nn.map(noise, node.shape(0), node.state.builder.getI1Type(),
                  [&](ScalarBuilder &s, mlir::ValueRange x) {
                    return s.compare(ScalarBuilder::Compare::GreaterOrEqual,
                                     x[0], s.constantLike(rate, x[0]));
                  });
  node.set(1, keep);
  node.set(0, node.nn.map({node.value(0), keep}, node.shape(0), node.element(0),
                          [&](ScalarBuilder &s, mlir::ValueRange x) {
                            mlir::Value scale =
                                s.constantLike(1 / (1 - rate), x[0]);
                            return s.select(x[1], s.mul(x[0], scale),
                                            s.constantLike(0, x[0]));
                          }));
}

} // namespace espalier::onnx
