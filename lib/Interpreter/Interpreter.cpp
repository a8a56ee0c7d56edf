//===- Interpreter.cpp - Runs functions op by op --------------------------===//

#include "espalier/Interpreter/Interpreter.h"

#include "dialects/Nn/Nn.h"

using namespace mlir;
using namespace espalier;

//===----------------------------------------------------------------------===//
// Environment
//===----------------------------------------------------------------------===//

const Tensor &Environment::get(Value value) const {
  auto it = values.find(value);
  assert(it != values.end() && "values are computed before they are used");
  return *it->second;
}

void Environment::set(Value value, Tensor tensor) {
  values[value] = std::make_unique<Tensor>(std::move(tensor));
}

//===----------------------------------------------------------------------===//
// RankedInterpreter
//===----------------------------------------------------------------------===//

RankedInterpreter::~RankedInterpreter() = default;

/// The values of a block that no op after each of its ops uses.
static llvm::DenseMap<Operation *, SmallVector<Value>>
findLastUses(Block &block) {
  llvm::DenseMap<Operation *, SmallVector<Value>> lastUses;
  llvm::DenseSet<Value> seen;
  for (Operation &op : llvm::reverse(block)) {
    for (Value operand : op.getOperands())
      if (seen.insert(operand).second)
        lastUses[&op].push_back(operand);
    for (Value result : op.getResults())
      if (seen.insert(result).second)
        lastUses[&op].push_back(result);
  }
  return lastUses;
}

static LogicalResult checkArguments(func::FuncOp function,
                                    const Tensors &arguments) {
  if (arguments.size() != function.getNumArguments())
    return function.emitError("expects ")
           << function.getNumArguments() << " arguments, but got "
           << arguments.size();
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensorType = dyn_cast<RankedTensorType>(type);
    if (!tensorType || arguments[i].shape != tensorType.getShape() ||
        arguments[i].elementType != tensorType.getElementType())
      return function.emitError("expects argument ")
             << i << " of type " << type << ", but got a tensor of "
             << arguments[i].elementType << " with shape ["
             << ArrayRef<int64_t>(arguments[i].shape) << "]";
  }
  return success();
}

void RankedInterpreter::report(Value value, ArrayRef<Environment> ranks) const {
  if (!onValue)
    return;
  for (auto [rank, environment] : llvm::enumerate(ranks))
    onValue(value, rank, environment.get(value));
}

FailureOr<std::vector<Tensors>>
RankedInterpreter::run(func::FuncOp function, std::vector<Tensors> arguments) {
  assert(arguments.size() == numRanks && "each rank has arguments");
  if (function.isExternal())
    return function.emitError("expects a function with a body");
  std::vector<Environment> ranks(numRanks);
  for (unsigned rank = 0; rank < numRanks; ++rank) {
    if (failed(checkArguments(function, arguments[rank])))
      return failure();
    for (auto [value, tensor] :
         llvm::zip(function.getArguments(), arguments[rank]))
      ranks[rank].set(value, std::move(tensor));
  }
  for (Value argument : function.getArguments())
    report(argument, ranks);
  Block &block = function.getBody().front();
  auto lastUses = findLastUses(block);
  for (Operation &op : block.without_terminator()) {
    if (failed(evaluate(&op, ranks)))
      return failure();
    for (Value result : op.getResults())
      report(result, ranks);
    for (Value value : lastUses[&op])
      for (Environment &environment : ranks)
        environment.erase(value);
  }
  std::vector<Tensors> results(numRanks);
  for (unsigned rank = 0; rank < numRanks; ++rank)
    for (Value value : block.getTerminator()->getOperands())
      results[rank].push_back(ranks[rank].get(value));
  return results;
}

LogicalResult RankedInterpreter::evaluate(Operation *op,
                                          MutableArrayRef<Environment> ranks) {
  if (isa<nn::NnDialect>(op->getDialect()))
    return evaluateApart(op, ranks);
  if (auto call = dyn_cast<func::CallOp>(op))
    return evaluateCall(call, ranks);
  return evaluateTogether(op, ranks);
}

LogicalResult
RankedInterpreter::evaluateApart(Operation *op,
                                 MutableArrayRef<Environment> ranks) {
  for (Environment &environment : ranks) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op->getOperands())
      operands.push_back(&environment.get(operand));
    FailureOr<Tensors> results = evaluateOp(op, operands, precision);
    if (failed(results))
      return failure();
    for (auto [value, tensor] : llvm::zip(op->getResults(), *results))
      environment.set(value, std::move(tensor));
  }
  return success();
}

LogicalResult
RankedInterpreter::evaluateCall(func::CallOp call,
                                MutableArrayRef<Environment> ranks) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      call, call.getCalleeAttr());
  if (!callee)
    return call.emitOpError("calls a function that is not there: ")
           << call.getCallee();
  std::vector<Tensors> arguments(numRanks);
  for (unsigned rank = 0; rank < numRanks; ++rank)
    for (Value operand : call.getOperands())
      arguments[rank].push_back(ranks[rank].get(operand));
  auto results = run(callee, std::move(arguments));
  if (failed(results))
    return failure();
  for (unsigned rank = 0; rank < numRanks; ++rank)
    for (auto [value, tensor] : llvm::zip(call.getResults(), (*results)[rank]))
      ranks[rank].set(value, std::move(tensor));
  return success();
}

LogicalResult
RankedInterpreter::evaluateTogether(Operation *op,
                                    MutableArrayRef<Environment> ranks) {
  return op->emitOpError("is no op that the interpreter knows");
}

FailureOr<Tensors> espalier::interpret(func::FuncOp function, Tensors arguments,
                                       Precision precision) {
  RankedInterpreter interpreter(/*numRanks=*/1, precision);
  auto results = interpreter.run(function, {std::move(arguments)});
  if (failed(results))
    return failure();
  return std::move(results->front());
}
