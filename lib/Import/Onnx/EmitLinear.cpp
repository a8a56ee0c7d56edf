//===- EmitLinear.cpp - Matrix products -*- C++ -*-===//

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

#include "Elementwise.h"
#include "Handlers.h"

using namespace llvm;

namespace espalier::onnx {

static bool expectFloats(NodeContext &node) {
  for (unsigned i = 0; i < node.inputs(); ++i) {
    if (!node.has(i))
      continue;
    if (!isFloating(node.dtype(i))) {
      node.unsupported("operands of " + dtypeName(node.dtype(i)));
      return false;
    }
    if (node.dtype(i) != node.dtype(0)) {
      node.fail("operands are of " + dtypeName(node.dtype(0)) + " and " +
                dtypeName(node.dtype(i)));
      return false;
    }
    if (*elementCount(node.shape(i)) == 0) {
      node.unsupported("an empty operand");
      return false;
    }
  }
  return true;
}

/// The product of small constants, as angles of rotary positions are written.
static bool foldMatMul(NodeContext &node, ArrayRef<int64_t> a,
                       ArrayRef<int64_t> b, ArrayRef<int64_t> batch,
                       ArrayRef<int64_t> result) {
  if (!node.allConstant())
    return false;
  int64_t inner = a.back();
  Shape shape(batch);
  shape.append({a[a.size() - 2], b.back()});
  std::optional<int64_t> count = elementCount(shape);
  if (!count || *count * inner > (1 << 22) || !node.mayFold(*count))
    return false;
  auto stridesOf = [&](const Constant &value, ArrayRef<int64_t> seen) {
    Constant full = value.expanded();
    full.shape = full.stored = Shape(seen);
    Shape strides = full.strides();
    strides.insert(strides.begin(), shape.size() - strides.size(), 0);
    return strides;
  };
  Constant left = node.constant(0)->expanded();
  Constant right = node.constant(1)->expanded();
  Shape leftAt = stridesOf(left, a), rightAt = stridesOf(right, b);
  int64_t leftStep = leftAt.back(), rightStep = rightAt[rightAt.size() - 2];
  leftAt.back() = 0;
  rightAt[rightAt.size() - 2] = 0;
  std::vector<Scalar> data;
  walk(shape, {leftAt, rightAt}, [&](ArrayRef<int64_t> at) {
    Scalar sum;
    sum.f = 0;
    for (int64_t k = 0; k < inner; ++k)
      sum.f += (*left.data)[at[0] + k * leftStep].f *
               (*right.data)[at[1] + k * rightStep].f;
    data.push_back(roundTo(left.dtype, sum));
  });
  Constant folded = Constant::make(left.dtype, result, std::move(data));
  folded.compress();
  node.set(0, std::move(folded));
  return true;
}

/// Drops the batch dimensions of size 1 that the other operand repeats, and
/// names those that stay.
static mlir::Value batchOperand(NodeContext &node, mlir::Value value,
                                ArrayRef<int64_t> shape,
                                ArrayRef<int64_t> batch, std::string &letters) {
  Shape kept;
  size_t own = shape.size() - 2, skip = batch.size() - own;
  for (size_t i = 0; i < own; ++i) {
    if (shape[i] == 1 && batch[skip + i] != 1)
      continue;
    kept.push_back(shape[i]);
    letters += char('a' + skip + i);
  }
  llvm::append_range(kept, shape.take_back(2));
  return node.nn.reshape(value, kept);
}

void emitMatMul(NodeContext &node) {
  if (!expectFloats(node))
    return;
  Shape a = node.shape(0), b = node.shape(1);
  if (a.empty() || b.empty())
    return node.fail("expects rank 1 or more");
  bool isRow = a.size() == 1, isColumn = b.size() == 1;
  if (isRow)
    a.insert(a.begin(), 1);
  if (isColumn)
    b.push_back(1);
  std::optional<Shape> batch = broadcastShapes(
      {Shape(ArrayRef(a).drop_back(2)), Shape(ArrayRef(b).drop_back(2))});
  if (!batch || a.back() != b[b.size() - 2])
    return node.fail("shapes " + shapeText(node.shape(0)) + " and " +
                     shapeText(node.shape(1)) + " do not fit a product");
  if (batch->size() > 20)
    return node.unsupported("rank " + Twine(batch->size() + 2));
  Shape result = *batch;
  if (!isRow)
    result.push_back(a[a.size() - 2]);
  if (!isColumn)
    result.push_back(b.back());
  if (foldMatMul(node, a, b, *batch, result))
    return;
  std::string lhs, rhs, out;
  mlir::Value left =
      batchOperand(node, node.nn.reshape(node.value(0), a), a, *batch, lhs);
  mlir::Value right =
      batchOperand(node, node.nn.reshape(node.value(1), b), b, *batch, rhs);
  for (size_t i = 0; i < batch->size(); ++i)
    out += char('a' + i);
  std::string equation = lhs + "xy," + rhs + "yz->" + out + "xz";
  node.set(0, node.nn.reshape(node.nn.contract(equation, left, right), result));
}

static mlir::Value scaled(NodeContext &node, mlir::Value value, double factor) {
  if (factor == 1)
    return value;
  return node.nn.map(value, NnBuilder::shapeOf(value),
                     NnBuilder::elementOf(value),
                     [&](ScalarBuilder &s, mlir::ValueRange x) {
                       return s.mul(x[0], s.constantLike(factor, x[0]));
                     });
}

void emitGemm(NodeContext &node) {
  if (!expectFloats(node))
    return;
  if (node.rank(0) != 2 || node.rank(1) != 2)
    return node.fail("expects matrices, but got ranks " + Twine(node.rank(0)) +
                     " and " + Twine(node.rank(1)));
  bool transA = node.attr("transA", int64_t(0));
  bool transB = node.attr("transB", int64_t(0));
  const Shape &a = node.shape(0), &b = node.shape(1);
  if (a[!transA] != b[transB])
    return node.fail("shapes " + shapeText(a) + " and " + shapeText(b) +
                     " do not fit a product");
  std::string equation =
      std::string(transA ? "yx" : "xy") + "," + (transB ? "zy" : "yz") + "->xz";
  mlir::Value product =
      node.nn.contract(equation, node.value(0), node.value(1));
  product = scaled(node, product, node.attr("alpha", 1.0));
  double beta = node.attr("beta", 1.0);
  if (!node.has(2) || beta == 0)
    return node.set(0, product);
  ImportedValue bias = node.in(2);
  Shape shape(NnBuilder::shapeOf(product));
  if (broadcastShapes({bias.shape, shape}) != shape)
    return node.fail("bias of shape " + shapeText(bias.shape) +
                     " does not broadcast to " + shapeText(shape));
  if (bias.constant && bias.constant->isUniform() &&
      bias.constant->first().f == 0)
    return node.set(0, product);
  mlir::Value addend = scaled(node, node.compact(bias), beta);
  node.set(0, node.nn.map({product, addend}, shape, node.element(0),
                          [](ScalarBuilder &s, mlir::ValueRange x) {
                            return s.add(x[0], x[1]);
                          }));
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

/// The result's letters where the equation does not give them: those that occur
/// once, sorted.
static std::string impliedResult(StringRef operands) {
  std::string result;
  for (char c = 'A'; c <= 'z'; ++c)
    if (operands.count(c) == 1)
      result += c;
  return result;
}

static bool isPlain(StringRef letters, int64_t rank) {
  std::set<char> seen;
  for (char c : letters)
    if (!isAlpha(c) || !seen.insert(c).second)
      return false;
  return int64_t(letters.size()) == rank;
}

/// Sums over letters that only this operand has.
static mlir::Value sumAlone(NodeContext &node, mlir::Value value,
                            std::string &letters, StringRef elsewhere) {
  Shape dims, kept;
  std::string left;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (elsewhere.contains(letters[i])) {
      left += letters[i];
      kept.push_back(NnBuilder::shapeOf(value)[i]);
    } else {
      dims.push_back(i);
    }
  }
  letters = left;
  return node.nn.reshape(node.nn.reduce(NnBuilder::Reduce::Sum, value, dims),
                         kept);
}

/// nn's equations have lower-case letters.
static std::string renamed(StringRef equation) {
  std::string seen, result;
  for (char c : equation) {
    if (isAlpha(c) && !StringRef(seen).contains(c))
      seen += c;
    result += isAlpha(c) ? char('a' + seen.find(c)) : c;
  }
  return result;
}

void emitEinsum(NodeContext &node) {
  if (!expectFloats(node))
    return;
  std::string equation;
  for (char c : node.attr("equation", StringRef("")))
    if (c != ' ')
      equation += c;
  auto [operands, result] = StringRef(equation).split("->");
  SmallVector<StringRef> parts;
  operands.split(parts, ',');
  std::string out = StringRef(equation).contains("->")
                        ? result.str()
                        : impliedResult(operands);
  if (parts.size() != node.inputs() || parts.size() > 2)
    return node.unsupported("equation " + quoted(equation) + " of " +
                            Twine(node.inputs()) + " operands");
  for (unsigned i = 0; i < parts.size(); ++i)
    if (!isPlain(parts[i], node.rank(i)))
      return node.unsupported("equation " + quoted(equation));
  if (!isPlain(out, out.size()) ||
      out.find_first_not_of(operands.str()) != std::string::npos)
    return node.unsupported("equation " + quoted(equation));
  DenseMap<char, int64_t> sizes;
  for (unsigned i = 0; i < parts.size(); ++i)
    for (size_t k = 0; k < parts[i].size(); ++k)
      if (sizes.try_emplace(parts[i][k], node.shape(i)[k]).first->second !=
          node.shape(i)[k])
        return node.fail("letter '" + Twine(parts[i][k]) + "' has two sizes");
  if (operands.size() > 25)
    return node.unsupported("an equation of so many letters");
  std::string a = parts[0].str(), b = parts.size() > 1 ? parts[1].str() : "";
  mlir::Value left = sumAlone(node, node.value(0), a, b + out);
  if (parts.size() == 1) {
    Shape perm;
    for (char c : out)
      perm.push_back(a.find(c));
    return node.set(0, node.nn.transpose(left, perm));
  }
  mlir::Value right = sumAlone(node, node.value(1), b, a + out);
  node.set(0, node.nn.contract(renamed(a + "," + b + "->" + out), left, right));
}

} // namespace espalier::onnx
