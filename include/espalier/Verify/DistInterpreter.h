//===- DistInterpreter.h - Collectives among virtual ranks ------*- C++ -*-===//

#ifndef ESPALIER_VERIFY_DISTINTERPRETER_H
#define ESPALIER_VERIFY_DISTINTERPRETER_H

#include "espalier/Interpreter/Interpreter.h"
#include "espalier/Sharding/Sharding.h"

namespace espalier {

/// Runs a partitioned function on all devices of a mesh.
class DistInterpreter : public RankedInterpreter {
public:
  DistInterpreter(const Mesh &mesh, Precision precision)
      : RankedInterpreter(mesh.deviceCount(), precision), mesh(mesh) {}

protected:
  mlir::LogicalResult
  evaluateTogether(mlir::Operation *op,
                   llvm::MutableArrayRef<Environment> ranks) override;

private:
  Mesh mesh;
};

/// The block of `device` of a whole tensor. Over partial axes the first device
/// has the value and the others have zeros.
Tensor blockOfTensor(const Mesh &mesh, int64_t device, const Sharding &sharding,
                     const Tensor &whole);

/// The whole tensor that the blocks of all devices make. Where devices should
/// have the same block and do not, `disagreeing` is set to one that differs
/// from the first.
Tensor composeTensor(const Mesh &mesh, const Sharding &sharding,
                     llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<const Tensor *> blocks,
                     std::optional<int64_t> &disagreeing);

} // namespace espalier

#endif // ESPALIER_VERIFY_DISTINTERPRETER_H
