//===- CompareWithInterpreter.h - Compiled against interpreted --*- C++ -*-===//

#ifndef ESPALIER_TEST_UNIT_TARGET_CPU_COMPAREWITHINTERPRETER_H
#define ESPALIER_TEST_UNIT_TARGET_CPU_COMPAREWITHINTERPRETER_H

#include "CompiledProgram.h"

namespace espalier::test {

struct Comparison {
  /// Integer arguments are drawn from 0 .. indexRange-1.
  int64_t indexRange = 2;
  /// Largest difference, as a part of the largest element of the result, or
  /// of 1.
  double tolerance = 1e-5;
  /// Floats are uniform in [-scale, scale).
  double scale = 1.0;
};

/// Compiles a function of these arguments and results and runs it, and the
/// interpreter, on the same random tensors. Arguments are %a0, %a1, ...
CompiledProgram compare(const std::vector<std::string> &arguments,
                        const std::vector<std::string> &results,
                        const std::string &body, Comparison comparison = {});

/// The same for `function` of a program's text, which may be several. Returns
/// nothing; every result of that function is compared.
void compareProgram(const std::string &text, const std::string &function,
                    Comparison comparison = {});

} // namespace espalier::test

#endif // ESPALIER_TEST_UNIT_TARGET_CPU_COMPAREWITHINTERPRETER_H
