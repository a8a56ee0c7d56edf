//===- Loss.cpp - Builds @loss --------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"
#include "espalier/Autodiff/Autodiff.h"
#include "espalier/Support/FunctionForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace espalier;

namespace {

/// What a microbatch contributes to the loss.
struct Sums {
  Value loss, weight; // tensors without dimensions
};

/// Builds @loss from @forward.
class LossBuilder {
public:
  LossBuilder(func::FuncOp forward, const LossOptions &options)
      : forward(forward), options(options), builder(forward.getContext()),
        loc(forward.getLoc()), arguments(argumentSlots(forward)),
        outputs(resultSlots(forward)) {}

  FailureOr<func::FuncOp> build();

private:
  LogicalResult findOutputs();
  FailureOr<unsigned> findOutput(StringRef name, StringRef what);
  std::optional<Slot> targetSlot();
  SmallVector<Value> cloneForward(const std::optional<Slot> &added,
                                  unsigned validIndex);
  FailureOr<Sums> buildSums(Value valid);
  Sums buildCrossEntropy(Value valid);
  Sums buildSquaredError(Value valid);
  FailureOr<Sums> buildOwnLoss(Value valid);

  /// Whether each sample of `value` is valid, of a shape that broadcasts to it.
  Value validFor(Value value, Value valid);
  /// The sum of all elements, a tensor without dimensions.
  Value sumAll(Value value);

  func::FuncOp forward;
  const LossOptions &options;
  OpBuilder builder;
  Location loc;
  SmallVector<Slot> arguments, outputs;
  unsigned output = 0, weightOutput = 0; // indices of @forward's results
  func::FuncOp function;                 // @loss
  Value predicted, weight, target; // values in it; the last two may be null
};

} // namespace

//===----------------------------------------------------------------------===//
// Parts of the model
//===----------------------------------------------------------------------===//

FailureOr<unsigned> LossBuilder::findOutput(StringRef name, StringRef what) {
  std::string known;
  for (auto [i, slot] : llvm::enumerate(outputs)) {
    if (slot.role != role::output)
      continue;
    if (slot.name == name)
      return unsigned(i);
    known += (known.empty() ? "'" : ", '") + slot.name + "'";
  }
  return forward.emitError("train.loss: ")
         << what << " '" << name << "' is no output of the model; it has "
         << known;
}

/// f64 models have f64 losses, all others f32.
static Type lossType(Value predicted) {
  Type type = getElementTypeOrSelf(predicted);
  return type.isF64() ? type : Float32Type::get(type.getContext());
}

/// Checks that the outputs fit the kind of loss.
LogicalResult LossBuilder::findOutputs() {
  StringRef what = options.kind == LossOptions::Kind::CrossEntropy ? "logits"
                   : options.kind == LossOptions::Kind::MeanSquaredError
                       ? "prediction"
                       : "name";
  FailureOr<unsigned> found = findOutput(options.output, what);
  if (failed(found))
    return failure();
  output = *found;
  auto type = cast<RankedTensorType>(outputs[output].type);
  if (!isa<FloatType>(type.getElementType()))
    return forward.emitError("train.loss: output '")
           << options.output << "' has type " << type
           << ", but expects floating-point elements";
  unsigned leastRank = options.kind == LossOptions::Kind::CrossEntropy ? 2
                       : options.kind == LossOptions::Kind::MeanSquaredError
                           ? 1
                           : 0;
  if (type.getRank() < leastRank)
    return forward.emitError("train.loss: output '")
           << options.output << "' has type " << type
           << ", but expects at least " << leastRank
           << " dimensions, the first being the batch";
  if (options.weight.empty())
    return success();
  found = findOutput(options.weight, "weight");
  if (failed(found))
    return failure();
  weightOutput = *found;
  return success();
}

/// The new argument: labels of the logits' shape without the classes, or a
/// target of the prediction's.
std::optional<Slot> LossBuilder::targetSlot() {
  auto type = cast<RankedTensorType>(outputs[output].type);
  switch (options.kind) {
  case LossOptions::Kind::CrossEntropy:
    return Slot{RankedTensorType::get(type.getShape().drop_back(),
                                      builder.getI64Type()),
                options.target, role::label.str()};
  case LossOptions::Kind::MeanSquaredError:
    return Slot{RankedTensorType::get(type.getShape(), type.getElementType()),
                options.target, role::label.str()};
  case LossOptions::Kind::Output:
    return std::nullopt;
  }
  llvm_unreachable("all kinds are above");
}

//===----------------------------------------------------------------------===//
// The kinds of loss
//===----------------------------------------------------------------------===//

Value LossBuilder::validFor(Value value, Value valid) {
  SmallVector<int64_t> shape(nn::rankOf(value), 1);
  shape[0] = nn::shapeOf(valid)[0];
  return nn::buildReshape(builder, loc, valid, shape);
}

Value LossBuilder::sumAll(Value value) {
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq<int64_t>(0, nn::rankOf(value)));
  Value sum = nn::buildReduce(builder, loc, ReductionKind::Sum, value, dims);
  return nn::buildReshape(builder, loc, sum, {});
}

static Value zeroOf(OpBuilder &b, Location l, Type type) {
  return arith::ConstantOp::create(b, l, b.getZeroAttr(type));
}

/// 1 where a condition holds, else 0.
static Value countOf(OpBuilder &b, Location l, Value condition, Type type) {
  Value one = arith::ConstantOp::create(b, l, b.getFloatAttr(type, 1.0));
  return arith::SelectOp::create(b, l, condition, one, zeroOf(b, l, type));
}

/// Rows of samples that are not valid are given the label that is ignored, so
/// that they count neither in the loss nor, whatever the logits, in the
/// gradient.
Sums LossBuilder::buildCrossEntropy(Value valid) {
  auto ignored = [&](OpBuilder &b, Location l) -> Value {
    return arith::ConstantOp::create(b, l,
                                     b.getI64IntegerAttr(options.ignoreIndex));
  };
  Value labels = nn::buildMap(builder, loc, {target, validFor(target, valid)},
                              [&](OpBuilder &b, Location l, ValueRange args) {
                                return arith::SelectOp::create(
                                    b, l, args[1], args[0], ignored(b, l));
                              });
  Type type = lossType(predicted);
  auto rows = RankedTensorType::get(nn::shapeOf(labels), type);
  auto loss = nn::CrossEntropyOp::create(
      builder, loc, rows, rows, predicted, labels,
      builder.getI64IntegerAttr(options.ignoreIndex));
  Value counted = nn::buildMap(
      builder, loc, {labels}, [&](OpBuilder &b, Location l, ValueRange args) {
        Value counts = arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne,
                                             args[0], ignored(b, l));
        return countOf(b, l, counts, type);
      });
  return {sumAll(loss.getLoss()), sumAll(counted)};
}

/// The difference is selected before it is squared, so that its gradient is
/// too.
Sums LossBuilder::buildSquaredError(Value valid) {
  Type type = lossType(predicted);
  Value prediction = nn::buildCast(builder, loc, predicted, type);
  Value wanted = nn::buildCast(builder, loc, target, type);
  Value isValid = validFor(predicted, valid);
  Value squared = nn::buildMap(
      builder, loc, {prediction, wanted, isValid},
      [&](OpBuilder &b, Location l, ValueRange args) {
        Value error = arith::SubFOp::create(b, l, args[0], args[1]);
        error =
            arith::SelectOp::create(b, l, args[2], error, zeroOf(b, l, type));
        return arith::MulFOp::create(b, l, error, error);
      });
  int64_t samples = nn::shapeOf(predicted)[0];
  double perSample =
      samples == 0 ? 0 : double(nn::elementCount(predicted)) / samples;
  Value counted = nn::buildMap(builder, loc, {valid},
                               [&](OpBuilder &b, Location l, ValueRange args) {
                                 return countOf(b, l, args[0], type);
                               });
  return {sumAll(squared),
          nn::buildScale(builder, loc, sumAll(counted), perSample)};
}

/// Zeros in the samples of `value` that are not valid.
static Value selectValid(OpBuilder &builder, Location loc, Value value,
                         Value valid) {
  return nn::buildMap(builder, loc, {value, valid},
                      [](OpBuilder &b, Location l, ValueRange args) {
                        return arith::SelectOp::create(
                            b, l, args[1], args[0],
                            zeroOf(b, l, args[0].getType()));
                      });
}

FailureOr<Sums> LossBuilder::buildOwnLoss(Value valid) {
  Type type = lossType(predicted);
  int64_t batch = nn::shapeOf(valid)[0];
  auto hasSamples = [&](Value value) {
    return nn::rankOf(value) > 0 && nn::shapeOf(value)[0] == batch;
  };
  Value own = nn::buildCast(builder, loc, predicted, type);
  if (weight)
    weight = nn::buildCast(builder, loc, weight, type);
  if (hasSamples(predicted) && (!weight || hasSamples(weight))) {
    if (!weight)
      weight = nn::buildSplat(
          builder, loc, RankedTensorType::get(nn::shapeOf(own), type), 1.0);
    own = selectValid(builder, loc, own, validFor(own, valid));
    weight = selectValid(builder, loc, weight, validFor(weight, valid));
    return Sums{sumAll(own), sumAll(weight)};
  }
  if (!weight)
    return forward.emitError("train.loss: output '")
           << options.output << "' has type " << predicted.getType()
           << ", one number for the microbatch; a mean cannot be combined "
              "exactly over microbatches and replicas: give a value for each "
              "sample, or a sum with its 'weight'";
  if (nn::elementCount(predicted) != 1 || nn::elementCount(weight) != 1)
    return forward.emitError("train.loss: outputs '")
           << options.output << "' and '" << options.weight << "' have types "
           << predicted.getType() << " and " << outputs[weightOutput].type
           << ", but expects one number each, or a value for each sample";
  function->setAttr(countsInvalidAttribute, builder.getUnitAttr());
  return Sums{sumAll(own), sumAll(weight)};
}

FailureOr<Sums> LossBuilder::buildSums(Value valid) {
  switch (options.kind) {
  case LossOptions::Kind::CrossEntropy:
    return buildCrossEntropy(valid);
  case LossOptions::Kind::MeanSquaredError:
    return buildSquaredError(valid);
  case LossOptions::Kind::Output:
    return buildOwnLoss(valid);
  }
  llvm_unreachable("all kinds are above");
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

static bool hasRole(const Slot &slot, StringRef role) {
  return slot.role == role;
}

/// Makes @loss, with the argument `added` before number `validIndex`, and
/// copies the body of @forward into it. Returns what @forward returned.
SmallVector<Value> LossBuilder::cloneForward(const std::optional<Slot> &added,
                                             unsigned validIndex) {
  SmallVector<Slot> slots = arguments;
  if (added)
    slots.insert(slots.begin() + validIndex, *added);
  Operation *end = forward.getBody().front().getTerminator();
  auto scalar = RankedTensorType::get({}, lossType(end->getOperand(output)));
  SmallVector<Slot> results = {
      {scalar, role::lossSum.str(), role::lossSum.str()},
      {scalar, role::weightSum.str(), role::weightSum.str()}};
  for (const Slot &slot : outputs)
    if (hasRole(slot, role::buffer))
      results.push_back(slot);
  builder.setInsertionPointAfter(forward);
  function = createFunction(builder, loc, "loss", slots, results);
  builder.setInsertionPointToEnd(&function.getBody().front());
  IRMapping mapping;
  for (auto [i, argument] : llvm::enumerate(forward.getArguments())) {
    Value copy = function.getArgument(i + (added && i >= validIndex));
    copy.setLoc(argument.getLoc());
    mapping.map(argument, copy);
  }
  for (Operation &op : forward.getBody().front().without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(
      end->getOperands(), [&](Value value) { return mapping.lookup(value); });
}

FailureOr<func::FuncOp> LossBuilder::build() {
  if (failed(findOutputs()))
    return failure();
  auto *validAt = llvm::find_if(
      arguments, [](const Slot &slot) { return hasRole(slot, role::valid); });
  if (validAt == arguments.end())
    return forward.emitError("expects an argument with role 'valid'");
  unsigned validIndex = validAt - arguments.begin();
  std::optional<Slot> added = targetSlot();
  if (added && llvm::any_of(arguments, [&](const Slot &slot) {
        return slot.name == added->name;
      }))
    return forward.emitError("train.loss: the model already has an input or "
                             "initializer '")
           << added->name << "'; choose another name";
  SmallVector<Value> values = cloneForward(added, validIndex);
  predicted = values[output];
  loc = predicted.getLoc();
  if (added)
    target = function.getArgument(validIndex);
  if (!options.weight.empty())
    weight = values[weightOutput];
  FailureOr<Sums> sums =
      buildSums(function.getArgument(validIndex + added.has_value()));
  if (failed(sums)) {
    function.erase();
    return failure();
  }
  SmallVector<Value> returned = {sums->loss, sums->weight};
  for (auto [value, slot] : llvm::zip(values, outputs))
    if (hasRole(slot, role::buffer))
      returned.push_back(value);
  func::ReturnOp::create(builder, forward.getLoc(), returned);
  // Outputs that the loss does not use are no part of training.
  IRRewriter rewriter(builder.getContext());
  (void)runRegionDCE(rewriter, function->getRegions());
  return function;
}

FailureOr<func::FuncOp> espalier::buildLoss(ModuleOp module,
                                            const LossOptions &options) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return module.emitError("expects a function @forward");
  return LossBuilder(forward, options).build();
}
