//===- Product.cpp - A contraction as products of matrices ----------------===//

#include "Product.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace espalier;
using namespace espalier::cpu;

namespace {

enum Class { Batch, M, N, K };
constexpr int64_t mostCalls = 128;

} // namespace

/// Which tensors of left, right, result a class of letters occurs in.
static constexpr std::array<bool, 3> occursIn[4] = {{true, true, true},
                                                    {true, false, true},
                                                    {false, true, true},
                                                    {true, true, false}};

static Class classOf(std::array<StringRef, 3> letters, char letter) {
  for (Class kind : {Batch, M, N, K})
    if (letters[0].contains(letter) == occursIn[kind][0] &&
        letters[1].contains(letter) == occursIn[kind][1] &&
        letters[2].contains(letter) == occursIn[kind][2])
      return kind;
  llvm_unreachable("a letter of one operand alone is in the result");
}

int64_t Product::calls() const {
  int64_t count = 1;
  for (const ProductDim &factor : outer)
    count *= factor.size;
  for (const ProductDim &factor : outerSum)
    count *= factor.size;
  return count;
}

/// Merges factors that lie behind one another in all tensors of their class.
static SmallVector<ProductDim> mergeFactors(SmallVector<ProductDim> factors,
                                            Class kind) {
  llvm::erase_if(factors, [](const ProductDim &f) { return f.size == 1; });
  unsigned leader = kind == K ? 0 : 2;
  llvm::stable_sort(factors, [&](const ProductDim &a, const ProductDim &b) {
    return a.strides[leader] > b.strides[leader];
  });
  SmallVector<ProductDim> merged;
  for (const ProductDim &factor : factors) {
    bool behind = !merged.empty();
    for (unsigned t = 0; behind && t < 3; ++t)
      behind = !occursIn[kind][t] ||
               merged.back().strides[t] == factor.strides[t] * factor.size;
    if (!behind) {
      merged.push_back(factor);
      continue;
    }
    merged.back().size *= factor.size;
    merged.back().strides = factor.strides;
  }
  return merged;
}

/// Whether rows and columns are a matrix, in one order or the other.
static bool isMatrix(const ProductDim &rows, const ProductDim &columns,
                     unsigned tensor) {
  auto isUnit = [&](const ProductDim &f) {
    return f.size == 1 || f.strides[tensor] == 1;
  };
  auto leads = [&](const ProductDim &major, const ProductDim &minor) {
    return isUnit(minor) &&
           (major.size == 1 || major.strides[tensor] >= minor.size);
  };
  return leads(rows, columns) || leads(columns, rows);
}

/// Chooses the factors of the call: a matrix in each tensor, with most work.
static bool chooseCall(std::array<SmallVector<ProductDim>, 4> &factors,
                       Product &product) {
  for (Class kind : {M, N, K})
    if (factors[kind].empty())
      factors[kind].push_back({});
  double most = 0;
  std::array<size_t, 4> chosen;
  for (auto [i, m] : llvm::enumerate(factors[M]))
    for (auto [j, n] : llvm::enumerate(factors[N]))
      for (auto [l, k] : llvm::enumerate(factors[K])) {
        double work = double(m.size) * n.size * k.size;
        if (work <= most || !isMatrix(m, k, 0) || !isMatrix(k, n, 1) ||
            !isMatrix(m, n, 2))
          continue;
        most = work;
        chosen = {0, i, j, l};
      }
  if (most == 0)
    return false;
  auto take = [&](Class kind, ProductDim &into, SmallVector<ProductDim> &rest) {
    into = factors[kind][chosen[kind]];
    for (auto [i, factor] : llvm::enumerate(factors[kind]))
      if (i != chosen[kind])
        rest.push_back(factor);
  };
  take(M, product.m, product.outer);
  take(N, product.n, product.outer);
  take(K, product.k, product.outerSum);
  if (factors[Batch].empty())
    return true;
  auto largest = llvm::max_element(
      factors[Batch],
      [](const ProductDim &a, const ProductDim &b) { return a.size < b.size; });
  chosen[Batch] = largest - factors[Batch].begin();
  take(Batch, product.batch, product.outer);
  return true;
}

std::optional<Product> cpu::planProduct(std::array<StringRef, 3> letters,
                                        const std::array<View, 3> &views) {
  std::array<SmallVector<ProductDim>, 4> factors;
  SmallVector<char> seen;
  for (unsigned tensor = 0; tensor < 3; ++tensor)
    for (auto [dim, letter] : llvm::enumerate(letters[tensor])) {
      if (views[tensor].shape[dim] != 1 && views[tensor].strides[dim] == 0)
        return std::nullopt; // a repeated dimension is no matrix
      if (llvm::is_contained(seen, letter))
        continue;
      seen.push_back(letter);
      ProductDim factor;
      factor.size = views[tensor].shape[dim];
      for (unsigned t = 0; t < 3; ++t)
        if (size_t at = letters[t].find(letter); at != StringRef::npos)
          factor.strides[t] = views[t].strides[at];
      factors[classOf(letters, letter)].push_back(factor);
    }
  for (Class kind : {Batch, M, N, K})
    factors[kind] = mergeFactors(std::move(factors[kind]), kind);
  Product product;
  product.views = views;
  if (!chooseCall(factors, product) || product.calls() > mostCalls)
    return std::nullopt;
  return product;
}

SmallVector<char> cpu::matrixOrder(std::array<StringRef, 3> letters,
                                   unsigned tensor) {
  // Left: batch m k; right: batch k n; result: batch m n.
  static constexpr Class orders[3][3] = {
      {Batch, M, K}, {Batch, K, N}, {Batch, M, N}};
  SmallVector<char> order;
  for (Class kind : orders[tensor])
    // Letters of a class in the order of one tensor, so that they merge in
    // both.
    for (char letter : letters[kind == K ? 0 : 2])
      if (classOf(letters, letter) == kind)
        order.push_back(letter);
  return order;
}
