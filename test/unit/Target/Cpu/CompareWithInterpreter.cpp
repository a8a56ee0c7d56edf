//===- CompareWithInterpreter.cpp - Compiled against interpreted ----------===//

#include "CompareWithInterpreter.h"

#include "dialects/Dist/Dist.h"
#include "espalier/Interpreter/Interpreter.h"
#include "espalier/Verify/DistInterpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <bit>
#include <cmath>
#include <random>

using namespace espalier;
using namespace espalier::test;

namespace {

using Attributes = mlir::DictionaryAttr;

std::string text(Attributes attributes, const char *key) {
  return attributes.getAs<mlir::StringAttr>(key).str();
}

/// Elements between the program's memory and the interpreter's tensors.
class Exchange {
public:
  Exchange(CompiledProgram &program, Attributes attributes, mlir::Type type,
           int32_t rank = 0)
      : name(text(attributes, "espalier.name")),
        role(text(attributes, "espalier.role")), program(program), type(type),
        rank(rank) {}

  void write(const Tensor &tensor) {
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (tensor.isFloat())
        writeFloat(i, tensor.floats[i]);
      else
        writeInteger(i, tensor.integers[i]);
  }

  double read(int64_t i) {
    if (type.isF32())
      return program.data<float>(name, role, rank)[i];
    if (type.isF64())
      return program.data<double>(name, role, rank)[i];
    if (type.isBF16())
      return std::bit_cast<float>(
          uint32_t(program.data<uint16_t>(name, role, rank)[i]) << 16);
    if (type.isInteger(64))
      return double(program.data<int64_t>(name, role, rank)[i]);
    if (type.isInteger(32))
      return program.data<int32_t>(name, role, rank)[i];
    return program.data<uint8_t>(name, role, rank)[i];
  }

  std::string name, role;

private:
  void writeFloat(int64_t i, double value) {
    if (type.isF32())
      program.data<float>(name, role, rank)[i] = float(value);
    else if (type.isF64())
      program.data<double>(name, role, rank)[i] = value;
    else
      program.data<uint16_t>(name, role, rank)[i] =
          uint16_t(std::bit_cast<uint32_t>(float(value)) >> 16);
  }
  void writeInteger(int64_t i, int64_t value) {
    if (type.isInteger(64))
      program.data<int64_t>(name, role, rank)[i] = value;
    else if (type.isInteger(32))
      program.data<int32_t>(name, role, rank)[i] = int32_t(value);
    else
      program.data<uint8_t>(name, role, rank)[i] = uint8_t(value);
  }

  CompiledProgram &program;
  mlir::Type type;
  int32_t rank;
};

Tensor randomTensor(mlir::RankedTensorType type, std::mt19937 &random,
                    const Comparison &comparison) {
  Tensor tensor(type);
  std::uniform_real_distribution<double> uniform(-comparison.scale,
                                                 comparison.scale);
  int64_t range =
      type.getElementType().isInteger(1) ? 2 : comparison.indexRange;
  std::uniform_int_distribution<int64_t> index(0, range - 1);
  for (double &element : tensor.floats)
    element = uniform(random);
  for (int64_t &element : tensor.integers)
    element = index(random);
  tensor.round();
  return tensor;
}

void expectNear(Exchange &actual, const Tensor &expected, double tolerance) {
  double most = 1;
  for (double value : expected.floats)
    if (std::isfinite(value))
      most = std::max(most, std::abs(value));
  if (llvm::cast<mlir::Type>(expected.elementType).isBF16())
    tolerance = std::max(tolerance, 1.0 / 128);
  for (int64_t i = 0; i < expected.size(); ++i) {
    double wanted =
        expected.isFloat() ? expected.floats[i] : double(expected.integers[i]);
    double got = actual.read(i);
    bool same = wanted == got || (std::isnan(wanted) && std::isnan(got)) ||
                std::abs(wanted - got) <= tolerance * most;
    ASSERT_TRUE(same) << actual.name << "[" << i << "] is " << got
                      << ", but expected " << wanted;
  }
}

/// The arguments of each rank, the same in the program and for the interpreter.
std::vector<Tensors> makeArguments(CompiledProgram &program,
                                   mlir::func::FuncOp function,
                                   const Comparison &comparison) {
  std::mt19937 random(7);
  std::vector<Tensors> arguments(program.rankCount());
  for (int32_t rank = 0; rank < program.rankCount(); ++rank)
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto type =
          llvm::cast<mlir::RankedTensorType>(function.getArgumentTypes()[i]);
      arguments[rank].push_back(randomTensor(type, random, comparison));
      Exchange(program, function.getArgAttrDict(i), type.getElementType(), rank)
          .write(arguments[rank].back());
    }
  return arguments;
}

mlir::FailureOr<std::vector<Tensors>>
interpretAll(CompiledProgram &program, mlir::func::FuncOp function,
             std::vector<Tensors> arguments) {
  if (dist::MeshOp mesh = dist::meshOf(program.module()))
    return DistInterpreter(Mesh::from(mesh), Precision::AsTyped)
        .run(function, std::move(arguments));
  return RankedInterpreter(1, Precision::AsTyped)
      .run(function, std::move(arguments));
}

void runBoth(CompiledProgram &program, const std::string &name,
             const Comparison &comparison) {
  ASSERT_TRUE(program.ok());
  auto function = program.module().lookupSymbol<mlir::func::FuncOp>(name);
  std::vector<Tensors> arguments = makeArguments(program, function, comparison);
  auto expected = interpretAll(program, function, arguments);
  ASSERT_TRUE(mlir::succeeded(expected));
  program.run(name);
  for (int32_t rank = 0; rank < program.rankCount(); ++rank)
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      Exchange actual(
          program, function.getResultAttrDict(i),
          llvm::cast<mlir::RankedTensorType>(function.getResultTypes()[i])
              .getElementType(),
          rank);
      expectNear(actual, (*expected)[rank][i], comparison.tolerance);
    }
}

} // namespace

CompiledProgram test::compare(const std::vector<std::string> &arguments,
                              const std::vector<std::string> &results,
                              const std::string &body, Comparison comparison) {
  CompiledProgram program = CompiledProgram::ofBody(arguments, results, body);
  SCOPED_TRACE(body);
  runBoth(program, "first", comparison);
  return program;
}

void test::compareProgram(const std::string &text, const std::string &function,
                          Comparison comparison) {
  CompiledProgram program(text);
  runBoth(program, function, comparison);
}
