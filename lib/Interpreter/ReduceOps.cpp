//===- ReduceOps.cpp - Evaluates nn.reduce and nn.contract ----------------===//

#include <cmath>
#include <limits>

#include "Evaluators.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::interpreter;

//===----------------------------------------------------------------------===//
// nn.reduce
//===----------------------------------------------------------------------===//

/// The larger, NaN where one is.
static double larger(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}
static int64_t larger(int64_t a, int64_t b) { return std::max(a, b); }

template <typename T>
static T combine(ReductionKind kind, T a, T b) {
  switch (kind) {
  case ReductionKind::Sum:
    return a + b;
  case ReductionKind::Prod:
    return a * b;
  case ReductionKind::Max:
    return larger(a, b);
  case ReductionKind::Min:
    return -larger(T(-a), T(-b));
  }
  llvm_unreachable("all kinds are above");
}

/// What a reduction of nothing gives.
template <typename T>
static T neutral(ReductionKind kind) {
  using Limits = std::numeric_limits<T>;
  T largest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  switch (kind) {
  case ReductionKind::Sum:
    return 0;
  case ReductionKind::Prod:
    return 1;
  case ReductionKind::Max:
    return -largest;
  case ReductionKind::Min:
    return largest;
  }
  llvm_unreachable("all kinds are above");
}

template <typename T>
static void reduce(ReductionKind kind, const Tensor &input,
                   ArrayRef<int64_t> strides, const std::vector<T> &from,
                   std::vector<T> &to) {
  llvm::fill(to, neutral<T>(kind));
  forEachElement(input.shape, strides, /*base=*/0,
                 [&](int64_t position, int64_t offset) {
                   to[offset] = combine<T>(kind, to[offset], from[position]);
                 });
}

LogicalResult interpreter::evaluate(nn::ReduceOp op, const Evaluation &e) {
  // The result broadcasts to the input: its strides are 0 where it is reduced.
  SmallVector<int64_t> strides = broadcastStrides(e.out().shape, e.in(0).shape);
  if (e.out().isFloat())
    reduce(op.getKind(), e.in(0), strides, e.in(0).floats, e.out().floats);
  else
    reduce(op.getKind(), e.in(0), strides, e.in(0).integers, e.out().integers);
  return success();
}

//===----------------------------------------------------------------------===//
// nn.contract, as a batch of matrix products
//===----------------------------------------------------------------------===//

/// The dimensions of `names`, in that order, of a tensor whose letters are
/// given.
static Tensor permuted(const Tensor &tensor, StringRef letters,
                       StringRef names) {
  SmallVector<int64_t> own = rowMajorStrides(tensor.shape), strides;
  Tensor result;
  result.elementType = tensor.elementType;
  for (char name : names) {
    strides.push_back(own[letters.find(name)]);
    result.shape.push_back(tensor.shape[letters.find(name)]);
  }
  if (letters == names) {
    result.floats = tensor.floats;
    return result;
  }
  result.floats.resize(tensor.size());
  forEachElement(result.shape, strides, /*base=*/0,
                 [&](int64_t position, int64_t offset) {
                   result.floats[position] = tensor.floats[offset];
                 });
  return result;
}

/// c[m, n] += a[m, k] * b[k, n], for four rows of c at a time.
static void multiply(const double *a, const double *b, double *c, int64_t m,
                     int64_t n, int64_t k) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4)
    for (int64_t p = 0; p < k; ++p) {
      const double *row = b + p * n;
      double a0 = a[i * k + p], a1 = a[(i + 1) * k + p];
      double a2 = a[(i + 2) * k + p], a3 = a[(i + 3) * k + p];
      double *__restrict c0 = c + i * n, *__restrict c1 = c0 + n;
      double *__restrict c2 = c1 + n, *__restrict c3 = c2 + n;
      for (int64_t j = 0; j < n; ++j) {
        c0[j] += a0 * row[j];
        c1[j] += a1 * row[j];
        c2[j] += a2 * row[j];
        c3[j] += a3 * row[j];
      }
    }
  for (; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        c[i * n + j] += a[i * k + p] * b[p * n + j];
}

LogicalResult interpreter::evaluate(nn::ContractOp op, const Evaluation &e) {
  auto [lhs, rhs, result] = op.getLetters();
  std::string batch, rows, columns, summed;
  for (char name : lhs) {
    bool isShared = rhs.contains(name), isKept = result.contains(name);
    (isShared ? (isKept ? batch : summed) : rows) += name;
  }
  for (char name : rhs)
    if (!lhs.contains(name))
      columns += name;
  Tensor a = permuted(e.in(0), lhs, batch + rows + summed);
  Tensor b = permuted(e.in(1), rhs, batch + summed + columns);
  auto sizeOf = [&](StringRef names) {
    int64_t size = 1;
    for (char name : names)
      size *= lhs.contains(name) ? e.in(0).shape[lhs.find(name)]
                                 : e.in(1).shape[rhs.find(name)];
    return size;
  };
  int64_t m = sizeOf(rows), n = sizeOf(columns), k = sizeOf(summed);
  std::string order = batch + rows + columns;
  Tensor c = e.out();
  c.shape.clear();
  for (char name : order)
    c.shape.push_back(e.out().shape[result.find(name)]);
  for (int64_t i = 0, count = sizeOf(batch); i < count; ++i)
    multiply(a.floats.data() + i * m * k, b.floats.data() + i * k * n,
             c.floats.data() + i * m * n, m, n, k);
  e.out() = permuted(c, order, result);
  return success();
}
