//===- RandomArguments.h - Numbers to run a program on ----------*- C++ -*-===//

#ifndef ESPALIER_LIB_VERIFY_RANDOMARGUMENTS_H
#define ESPALIER_LIB_VERIFY_RANDOMARGUMENTS_H

#include "espalier/Interpreter/Interpreter.h"
#include "espalier/Verify/Equivalence.h"

namespace espalier {

/// Arguments for a function of a training program, by their roles: parameters
/// and inputs are normal, squares and variances positive, indices lie in the
/// tables and classes that they index, some labels are ignored, the last
/// samples are padding.
Tensors randomArguments(mlir::func::FuncOp function,
                        const EquivalenceOptions &options);

} // namespace espalier

#endif // ESPALIER_LIB_VERIFY_RANDOMARGUMENTS_H
