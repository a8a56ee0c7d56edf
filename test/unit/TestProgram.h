//===- TestProgram.h - Programs as text, for unit tests ---------*- C++ -*-===//

#ifndef ESPALIER_TEST_UNIT_TESTPROGRAM_H
#define ESPALIER_TEST_UNIT_TESTPROGRAM_H

#include "dialects/Nn/Nn.h"
#include "espalier/Interpreter/Interpreter.h"

#include "gtest/gtest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

#include <cmath>

namespace espalier {

/// A module parsed from text, with what it reports.
class TestProgram {
public:
  explicit TestProgram(llvm::StringRef text)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          messages += diagnostic.str() + "\n";
          return mlir::success();
        }) {
    context.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                        mlir::math::MathDialect, nn::NnDialect>();
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      ADD_FAILURE() << messages << "in\n" << text.str();
  }

  mlir::func::FuncOp function(llvm::StringRef name) {
    return module->lookupSymbol<mlir::func::FuncOp>(name);
  }
  mlir::RankedTensorType argumentType(mlir::func::FuncOp function, unsigned i) {
    return llvm::cast<mlir::RankedTensorType>(function.getArgumentTypes()[i]);
  }

  mlir::MLIRContext context;
  std::string messages;
  mlir::OwningOpRef<mlir::ModuleOp> module;

private:
  mlir::ScopedDiagnosticHandler handler;
};

/// Runs the only function of `text`, whose arguments are given as numbers, and
/// returns its results as numbers.
inline std::vector<std::vector<double>>
runText(llvm::StringRef text, std::vector<std::vector<double>> arguments,
        Precision precision = Precision::Double) {
  TestProgram program(text);
  auto function = *program.module->getOps<mlir::func::FuncOp>().begin();
  Tensors tensors;
  for (auto [i, numbers] : llvm::enumerate(arguments)) {
    mlir::RankedTensorType type = program.argumentType(function, i);
    if (llvm::isa<mlir::FloatType>(type.getElementType()))
      tensors.emplace_back(type, numbers);
    else
      tensors.emplace_back(
          type, std::vector<int64_t>(numbers.begin(), numbers.end()));
  }
  auto results = interpret(function, std::move(tensors), precision);
  if (mlir::failed(results)) {
    ADD_FAILURE() << program.messages << "in\n" << text.str();
    return {};
  }
  std::vector<std::vector<double>> numbers;
  for (Tensor &result : *results)
    numbers.push_back(result.isFloat()
                          ? result.floats
                          : std::vector<double>(result.integers.begin(),
                                                result.integers.end()));
  return numbers;
}

inline void expectNear(const std::vector<double> &actual,
                       const std::vector<double> &expected,
                       double tolerance = 1e-12) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << "at " << i;
      if (std::isinf(expected[i]))
        EXPECT_EQ(actual[i], expected[i]) << "at " << i;
      continue;
    }
    EXPECT_NEAR(actual[i], expected[i],
                tolerance * (1 + std::fabs(expected[i])))
        << "at " << i;
  }
}

} // namespace espalier

#endif // ESPALIER_TEST_UNIT_TESTPROGRAM_H
