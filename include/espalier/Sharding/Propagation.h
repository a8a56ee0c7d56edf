//===- Propagation.h - Shardings of a program from those of a few -*- C++
//-*-===//
//
// Given the shardings of some tensors, finds those of all others, through the
// ops' rules, in both directions, to a fixed point:
//
//   Propagation propagation(mesh);
//   ValueId x = propagation.addValue({8, 4});
//   ValueId y = propagation.addValue({8, 4});
//   propagation.addOp(rule, {x}, {y});
//   propagation.seed(x, {{dp}, {}}, "the batch");
//   propagation.run();
//   propagation.dimsOf(y);           // {{dp}, {}}
//
// An op's factors take the axes that its tensors have, and give them to its
// other tensors. The first decision stands: what would cut a factor along two
// lists of axes, one factor and another along the same axis, or a factor that
// must be whole, is not done and is kept as a conflict; there the program
// reshards. Each decision keeps the op and tensor that it came from.
//
// Works on values, not on IR, in time linear in the ops.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_SHARDING_PROPAGATION_H
#define ESPALIER_SHARDING_PROPAGATION_H

#include "dialects/Interfaces/ShardingRule.h"
#include "espalier/Sharding/Sharding.h"

#include <deque>
#include <vector>

namespace espalier {

using ValueId = unsigned;
using OpId = unsigned;

/// The axes that cut each dimension of a tensor.
using DimAxes = llvm::SmallVector<AxisList, 4>;

/// Why a value is cut along an axis.
struct Origin {
  Axis axis;
  std::optional<OpId> op;      // nothing: a seed
  std::optional<ValueId> from; // the tensor of that op that it came from
  std::string reason;          // of a seed
};

/// A cut that was not made.
struct Conflict {
  OpId op;
  ValueId value; // the tensor that wanted it
  Axis axis;
  std::string reason;
};

class Propagation {
public:
  explicit Propagation(const Mesh &mesh) : mesh(mesh) {}

  ValueId addValue(llvm::ArrayRef<int64_t> shape);
  OpId addOp(ShardingRule rule, llvm::ArrayRef<ValueId> operands,
             llvm::ArrayRef<ValueId> results);

  /// Fixes how a value is cut. `closed`: no op may cut it further.
  void seed(ValueId value, const DimAxes &dims, std::string reason,
            bool closed = false);

  void run();

  const DimAxes &dimsOf(ValueId value) const { return values[value].dims; }
  llvm::ArrayRef<Origin> originsOf(ValueId value) const {
    return values[value].origins;
  }
  llvm::ArrayRef<Conflict> conflicts() const { return conflictList; }

  /// The axes along which an op's factors are cut.
  llvm::ArrayRef<AxisList> factorAxesOf(OpId op) const {
    return ops[op].factorAxes;
  }

private:
  struct ValueState {
    llvm::SmallVector<int64_t, 4> shape;
    DimAxes dims;
    bool closed = false;
    llvm::SmallVector<OpId, 4> users; // ops that have it as operand or result
    llvm::SmallVector<Origin, 2> origins;
  };
  struct OpState {
    ShardingRule rule;
    llvm::SmallVector<ValueId, 4> tensors; // operands, then results
    llvm::SmallVector<AxisList> factorAxes;
    bool queued = false;
  };

  const TensorFactors &factorsOf(const OpState &op, size_t tensor) const;
  void enqueue(OpId op);
  void visit(OpId op);
  void takeFrom(OpId op, size_t tensor);
  bool cutFactor(OpId op, ValueId from, unsigned factor, Axis axis,
                 size_t depth);
  void giveTo(OpId op, size_t tensor);
  void record(OpId op, ValueId value, Axis axis, std::string reason);

  Mesh mesh;
  std::vector<ValueState> values;
  std::vector<OpState> ops;
  std::deque<OpId> queue;
  std::vector<Conflict> conflictList;
};

/// The axes that cut each dimension of a tensor whose dimensions have
/// `factors`, where the factors are cut along `factorAxes`. Of a dimension made
/// of several factors a minor one counts only where the major ones are cut to
/// single elements: otherwise its blocks would not be contiguous.
DimAxes dimsFromFactors(const Mesh &mesh, const ShardingRule &rule,
                        const TensorFactors &factors,
                        llvm::ArrayRef<AxisList> factorAxes);

} // namespace espalier

#endif // ESPALIER_SHARDING_PROPAGATION_H
