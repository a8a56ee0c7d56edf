//===- ShardingRule.h - How an op's dimensions correspond -------*- C++ -*-===//
//
// A sharding rule says, in the manner of einsum, how the dimensions of an op's
// operands and results correspond. Each independent loop of the op is a factor.
// A tensor's dimension is a list of factors, major to minor: one for most
// dimensions, several where a reshape merges or splits them, none where the
// dimension has size 1 and is repeated. A matrix product is
//
//   ik,kj->ij    i, j parallel, k reduced by a sum
//
// and a reshape of [2, 6] to [2, 3, 2] is  i(jk)->ijk.
//
// What may be done with a factor is its kind:
//
//   Parallel  cutting it needs no communication
//   Reduced   cutting it leaves each result a partial value of the factor's
//             reduction
//   Whole     it must not be cut (the last dimension of a softmax)
//
// From this one description come propagation, partitioning, the enumeration of
// strategies and what the checker checks.
//
// Partial values (sums that ranks have not added up yet) pass through an op
// that is linear. `linearIn` lists the sets of operands in which it is: all of
// a set must be partial together while the other operands are not. A product is
// {0}, {1}; a sum {0, 1}; a reshape {0}.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_DIALECTS_INTERFACES_SHARDINGRULE_H
#define ESPALIER_DIALECTS_INTERFACES_SHARDINGRULE_H

#include "dialects/Interfaces/ReductionKind.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <string>

namespace espalier {

enum class FactorKind { Parallel, Reduced, Whole };

/// One independent loop of an op.
struct Factor {
  int64_t size; // elements
  FactorKind kind = FactorKind::Parallel;
  ReductionKind reduction = ReductionKind::Sum; // of a Reduced factor
};

/// The factors that a dimension is made of, major to minor.
using DimFactors = llvm::SmallVector<unsigned, 2>;
/// One entry for each dimension of a tensor.
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

/// How an op's dimensions correspond. See the top of the file.
struct ShardingRule {
  llvm::SmallVector<Factor, 8> factors;
  llvm::SmallVector<TensorFactors, 4> operands;
  llvm::SmallVector<TensorFactors, 2> results;
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>, 2> linearIn;

  /// Adds a factor and returns its number.
  unsigned addFactor(int64_t size, FactorKind kind = FactorKind::Parallel,
                     ReductionKind reduction = ReductionKind::Sum) {
    factors.push_back({size, kind, reduction});
    return factors.size() - 1;
  }

  /// As text: "ik,kj->ij reduced={k:sum} whole={}"; letters start at i.
  std::string str() const;
};

} // namespace espalier

#endif // ESPALIER_DIALECTS_INTERFACES_SHARDINGRULE_H
