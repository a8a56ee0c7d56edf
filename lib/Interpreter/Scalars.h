//===- Scalars.h - Scalar ops on runs of elements ---------------*- C++ -*-===//

#ifndef ESPALIER_LIB_INTERPRETER_SCALARS_H
#define ESPALIER_LIB_INTERPRETER_SCALARS_H

#include "espalier/Interpreter/Tensor.h"

#include "mlir/IR/Operation.h"

#include <functional>

namespace espalier::interpreter {

/// As many elements of one scalar value as a chunk has: numbers of a
/// floating-point type, else integers.
struct Lane {
  mlir::Type type;
  std::vector<double> floats;
  std::vector<int64_t> integers;

  Lane(mlir::Type type, int64_t length) : type(type) {
    if (llvm::isa<mlir::FloatType>(type))
      floats.resize(length);
    else
      integers.resize(length);
  }
};

/// Computes the first n elements of a result's lane from those of the operands.
using Step = std::function<void(int64_t n)>;

/// The step of an arith or math op that is no constant, without rounding to the
/// result's type. Fails, with an error on the op, where there is none.
mlir::FailureOr<Step> makeStep(mlir::Operation *op,
                               llvm::ArrayRef<const Lane *> operands,
                               Lane &result);

/// Brings `value` into the range of a signless type of `width` bits: i1 is 0 or
/// 1, others are signed.
inline int64_t wrapInteger(int64_t value, unsigned width) {
  if (width == 1)
    return value & 1;
  unsigned shift = 64 - width;
  return int64_t(uint64_t(value) << shift) >> shift;
}

} // namespace espalier::interpreter

#endif // ESPALIER_LIB_INTERPRETER_SCALARS_H
