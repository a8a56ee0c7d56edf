//===- Update.cpp - Builds @update ----------------------------------------===//
//
// All that depends on the step alone is computed in f64, once, as tensors
// without dimensions; each parameter is then one map, in which these are
// operands.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"
#include "dialects/Nn/NnShapes.h"
#include "espalier/Autodiff/Autodiff.h"
#include "espalier/Support/FunctionForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace espalier;

namespace {

/// A parameter and its optimizer state, old and new.
struct Trained {
  Slot slot;
  Value parameter, grad;
  SmallVector<Value> state;
  Value newParameter;
  SmallVector<Value> newState;
};

/// Builds @update from @grad.
class UpdateBuilder {
public:
  UpdateBuilder(func::FuncOp grad, const TrainingOptions &options)
      : options(options), optimizer(options.optimizer),
        builder(grad.getContext()), loc(grad.getLoc()), grad(grad) {}

  func::FuncOp build();

private:
  SmallVector<StringRef> statePrefixes() const;
  SmallVector<Slot> argumentsOf(const SmallVector<Slot> &parameters);
  void bindArguments(func::FuncOp update);
  void buildScalars();
  void buildGradNorm();
  void buildFactor();
  SmallVector<Value> stepScalars(OpBuilder &b, Location l, ValueRange args);
  void updateParameter(Trained &trained);
  bool needsFirst() const;
  SmallVector<Value> scalarsFor(Type type);

  const TrainingOptions &options;
  const OptimizerOptions &optimizer;
  OpBuilder builder;
  Location loc;
  func::FuncOp grad;
  Type lossType;
  SmallVector<Trained> trained;
  Value lossSum, weightSum, step; // arguments
  // Tensors without dimensions.
  Value learningRate;         // f64
  Value inverseWeight;        // f64: 1 / weight_sum, 0 for weight 0
  Value gradNorm;             // f64, before clipping
  Value factor;               // f64: of each gradient
  Value isCounted;            // i1: whether the weight is not 0
  SmallVector<Value> scalars; // f64: what the optimizer needs, see stepScalars
  llvm::SmallDenseMap<Type, SmallVector<Value>> scalarsByType;
};

/// Scalar arithmetic in the body of a map.
struct ScalarBuilder {
  OpBuilder &b;
  Location l;

  Value number(Type type, double value) const {
    return arith::ConstantOp::create(b, l, b.getFloatAttr(type, value));
  }
  Value add(Value x, Value y) const {
    return arith::AddFOp::create(b, l, x, y);
  }
  Value sub(Value x, Value y) const {
    return arith::SubFOp::create(b, l, x, y);
  }
  Value mul(Value x, Value y) const {
    return arith::MulFOp::create(b, l, x, y);
  }
  Value div(Value x, Value y) const {
    return arith::DivFOp::create(b, l, x, y);
  }
  Value mul(double x, Value y) const { return mul(number(y.getType(), x), y); }
  Value add(double x, Value y) const { return add(number(y.getType(), x), y); }
  Value select(Value c, Value x, Value y) const {
    return arith::SelectOp::create(b, l, c, x, y);
  }
};

} // namespace

SmallVector<StringRef> UpdateBuilder::statePrefixes() const {
  if (optimizer.kind == OptimizerOptions::Kind::AdamW)
    return {"exp_avg/", "exp_avg_sq/"};
  if (optimizer.momentum != 0)
    return {"momentum/"};
  return {};
}

//===----------------------------------------------------------------------===//
// Scalars of a step
//===----------------------------------------------------------------------===//

/// sqrt of the sum of squares of all gradients, each divided by the weight.
void UpdateBuilder::buildGradNorm() {
  SmallVector<Value> sums;
  for (Trained &t : trained) {
    Type type = getElementTypeOrSelf(t.grad);
    Value scale = nn::buildCast(builder, loc, inverseWeight, type);
    Value squares =
        nn::buildMap(builder, t.grad.getLoc(), {t.grad, scale},
                     [&](OpBuilder &b, Location l, ValueRange args) {
                       Value mean =
                           arith::MulFOp::create(b, l, args[0], args[1]);
                       return arith::MulFOp::create(b, l, mean, mean);
                     });
    SmallVector<int64_t> dims =
        llvm::to_vector(llvm::seq<int64_t>(0, nn::rankOf(squares)));
    Value sum =
        nn::buildReduce(builder, loc, ReductionKind::Sum, squares, dims);
    sum = nn::buildReshape(builder, loc, sum, {});
    sums.push_back(nn::buildCast(builder, loc, sum, builder.getF64Type()));
  }
  if (sums.empty())
    sums.push_back(nn::buildSplat(
        builder, loc, RankedTensorType::get({}, builder.getF64Type()), 0.0));
  gradNorm = nn::buildMap(builder, loc, sums,
                          [](OpBuilder &b, Location l, ValueRange args) {
                            Value total = args.front();
                            for (Value sum : args.drop_front())
                              total = arith::AddFOp::create(b, l, total, sum);
                            return math::SqrtOp::create(b, l, total);
                          });
}

/// 1 / weight and, as torch.nn.utils.clip_grad_norm_, min(1, max / (norm +
/// 1e-6)).
void UpdateBuilder::buildFactor() {
  if (options.gradientClip == 0) {
    factor = inverseWeight;
    return;
  }
  factor = nn::buildMap(
      builder, loc, {inverseWeight, gradNorm},
      [&](OpBuilder &b, Location l, ValueRange args) {
        ScalarBuilder s{b, l};
        Type type = args[0].getType();
        Value ratio =
            s.div(s.number(type, options.gradientClip), s.add(1e-6, args[1]));
        // A norm that is not a number stays one, as in PyTorch.
        Value coefficient =
            arith::MinimumFOp::create(b, l, s.number(type, 1), ratio);
        return s.mul(args[0], coefficient);
      });
}

/// From learning rate and step, for AdamW: the factor of weight decay, the size
/// of a step, the root of the second moment's correction. For SGD: the learning
/// rate.
SmallVector<Value> UpdateBuilder::stepScalars(OpBuilder &b, Location l,
                                              ValueRange args) {
  ScalarBuilder s{b, l};
  Value lr = args[0];
  if (optimizer.kind == OptimizerOptions::Kind::Sgd)
    return {lr};
  Type type = lr.getType();
  Value count = s.add(1, arith::SIToFPOp::create(b, l, type, args[1]));
  auto correction = [&](double beta) {
    Value power = math::PowFOp::create(b, l, s.number(type, beta), count);
    return s.sub(s.number(type, 1), power);
  };
  Value decay = s.sub(s.number(type, 1), s.mul(optimizer.weightDecay, lr));
  Value size = s.div(lr, correction(optimizer.beta1));
  Value root = math::SqrtOp::create(b, l, correction(optimizer.beta2));
  return {decay, size, root};
}

void UpdateBuilder::buildScalars() {
  Type f64 = builder.getF64Type();
  Value weight = nn::buildCast(builder, loc, weightSum, f64);
  SmallVector<Value> both = nn::buildMultiMap(
      builder, loc, {weight}, {},
      [&](OpBuilder &b, Location l, ValueRange args) {
        ScalarBuilder s{b, l};
        Value zero = s.number(f64, 0), one = s.number(f64, 1);
        Value counts = arith::CmpFOp::create(b, l, arith::CmpFPredicate::UNE,
                                             args[0], zero);
        Value inverse = s.div(one, s.select(counts, args[0], one));
        return SmallVector<Value>{counts, s.select(counts, inverse, zero)};
      });
  isCounted = both[0];
  inverseWeight = both[1];
  learningRate = buildLearningRate(builder, loc, step, optimizer.learningRate,
                                   options.schedule);
  buildGradNorm();
  buildFactor();
  scalars = nn::buildMultiMap(builder, loc, {learningRate, step}, {},
                              [&](OpBuilder &b, Location l, ValueRange args) {
                                return stepScalars(b, l, args);
                              });
}

/// Whether the first step's buffer is another function of the gradient than the
/// next ones'; without dampening it is the same, from zeros.
bool UpdateBuilder::needsFirst() const {
  return optimizer.kind == OptimizerOptions::Kind::Sgd &&
         optimizer.momentum != 0 && optimizer.dampening != 0;
}

/// What a parameter's map takes besides its tensors: whether the step counts,
/// the gradients' factor, the optimizer's scalars and, if needed, whether it is
/// the first; floats in the parameter's type.
SmallVector<Value> UpdateBuilder::scalarsFor(Type type) {
  SmallVector<Value> &values = scalarsByType[type];
  if (!values.empty())
    return values;
  values = {isCounted, nn::buildCast(builder, loc, factor, type)};
  for (Value value : scalars)
    values.push_back(nn::buildCast(builder, loc, value, type));
  if (needsFirst())
    values.push_back(nn::buildMap(
        builder, loc, {step}, [](OpBuilder &b, Location l, ValueRange args) {
          Value zero = arith::ConstantOp::create(b, l, b.getI64IntegerAttr(0));
          return arith::CmpIOp::create(b, l, arith::CmpIPredicate::eq, args[0],
                                       zero);
        }));
  return values;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// torch.optim.AdamW: new parameter, first moment and second moment.
static SmallVector<Value> buildAdamW(const OptimizerOptions &o, ScalarBuilder s,
                                     Value p, Value g, ValueRange state,
                                     ValueRange scalars) {
  Value decay = scalars[0], size = scalars[1], root = scalars[2];
  Value m = s.add(state[0], s.mul(1 - o.beta1, s.sub(g, state[0])));
  Value v = s.add(s.mul(o.beta2, state[1]), s.mul(1 - o.beta2, s.mul(g, g)));
  Value scaled = s.div(math::SqrtOp::create(s.b, s.l, v), root);
  Value denominator = s.add(o.epsilon, scaled);
  Value decayed = o.weightDecay == 0 ? p : s.mul(p, decay);
  Value moved = s.sub(decayed, s.mul(size, s.div(m, denominator)));
  return {moved, m, v};
}

/// torch.optim.SGD: new parameter and, with momentum, new buffer, which is the
/// gradient itself in the first step.
static SmallVector<Value> buildSgd(const OptimizerOptions &o, ScalarBuilder s,
                                   Value p, Value g, ValueRange state,
                                   ValueRange scalars) {
  Value lr = scalars[0];
  if (o.weightDecay != 0)
    g = s.add(g, s.mul(o.weightDecay, p));
  if (o.momentum == 0)
    return {s.sub(p, s.mul(lr, g))};
  Value buffer = s.add(s.mul(o.momentum, state[0]), s.mul(1 - o.dampening, g));
  if (o.dampening != 0)
    buffer = s.select(scalars[1], g, buffer);
  Value direction = o.nesterov ? s.add(g, s.mul(o.momentum, buffer)) : buffer;
  return {s.sub(p, s.mul(lr, direction)), buffer};
}

void UpdateBuilder::updateParameter(Trained &t) {
  Type type = getElementTypeOrSelf(t.parameter);
  SmallVector<Value> operands = {t.parameter, t.grad};
  llvm::append_range(operands, t.state);
  size_t shared = operands.size();
  llvm::append_range(operands, scalarsFor(type));
  SmallVector<Value> results = nn::buildMultiMap(
      builder, t.parameter.getLoc(), operands, nn::shapeOf(t.parameter),
      [&](OpBuilder &b, Location l, ValueRange args) {
        ScalarBuilder s{b, l};
        ValueRange old = args.take_front(shared),
                   rest = args.drop_front(shared);
        ValueRange state = old.drop_front(2);
        Value counts = rest[0], g = s.mul(old[1], rest[1]);
        ValueRange own = rest.drop_front(2);
        bool isAdamW = optimizer.kind == OptimizerOptions::Kind::AdamW;
        SmallVector<Value> updated =
            isAdamW ? buildAdamW(optimizer, s, old[0], g, state, own)
                    : buildSgd(optimizer, s, old[0], g, state, own);
        updated[0] = s.select(counts, updated[0], old[0]);
        for (auto [value, before] :
             llvm::zip(MutableArrayRef<Value>(updated).drop_front(), state))
          value = s.select(counts, value, before);
        return updated;
      });
  t.newParameter = results[0];
  t.newState.assign(results.begin() + 1, results.end());
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

SmallVector<Slot>
UpdateBuilder::argumentsOf(const SmallVector<Slot> &parameters) {
  SmallVector<Slot> slots = parameters;
  for (const Slot &parameter : parameters)
    for (StringRef prefix : statePrefixes())
      slots.push_back(
          {parameter.type, (prefix + parameter.name).str(), role::state.str()});
  for (const Slot &parameter : parameters)
    slots.push_back({parameter.type, parameter.name, role::grad.str()});
  auto scalar = RankedTensorType::get({}, lossType);
  slots.push_back({scalar, role::lossSum.str(), role::lossSum.str()});
  slots.push_back({scalar, role::weightSum.str(), role::weightSum.str()});
  slots.push_back({RankedTensorType::get({}, builder.getI64Type()),
                   role::step.str(), role::step.str()});
  return slots;
}

void UpdateBuilder::bindArguments(func::FuncOp update) {
  unsigned next = 0;
  for (Trained &t : trained)
    t.parameter = update.getArgument(next++);
  for (Trained &t : trained)
    for (size_t i = 0; i < statePrefixes().size(); ++i)
      t.state.push_back(update.getArgument(next++));
  for (Trained &t : trained)
    t.grad = update.getArgument(next++);
  lossSum = update.getArgument(next++);
  weightSum = update.getArgument(next++);
  step = update.getArgument(next++);
}

func::FuncOp UpdateBuilder::build() {
  SmallVector<Slot> parameters;
  for (const Slot &slot : argumentSlots(grad))
    if (slot.role == role::parameter)
      parameters.push_back(slot);
  for (const Slot &slot : parameters)
    trained.push_back({slot, {}, {}, {}, {}, {}});
  lossType = getElementTypeOrSelf(grad.getResultTypes()[0]);
  auto scalar = RankedTensorType::get({}, lossType);
  SmallVector<Slot> arguments = argumentsOf(parameters);
  SmallVector<Slot> results(ArrayRef<Slot>(arguments).take_front(
      parameters.size() * (1 + statePrefixes().size())));
  for (StringRef role : {role::loss, role::gradNorm, role::lr})
    results.push_back({scalar, role.str(), role.str()});
  builder.setInsertionPointAfter(grad);
  auto update = createFunction(builder, loc, "update", arguments, results);
  builder.setInsertionPointToEnd(&update.getBody().front());
  bindArguments(update);
  buildScalars();
  for (Trained &t : trained)
    updateParameter(t);

  SmallVector<Value> returned;
  for (Trained &t : trained)
    returned.push_back(t.newParameter);
  for (Trained &t : trained)
    llvm::append_range(returned, t.newState);
  Value mean = nn::buildMul(
      builder, loc, nn::buildCast(builder, loc, lossSum, builder.getF64Type()),
      inverseWeight);
  returned.push_back(nn::buildCast(builder, loc, mean, lossType));
  returned.push_back(nn::buildCast(builder, loc, gradNorm, lossType));
  returned.push_back(nn::buildCast(builder, loc, learningRate, lossType));
  func::ReturnOp::create(builder, loc, returned);
  return update;
}

FailureOr<func::FuncOp> espalier::buildUpdate(ModuleOp module,
                                              const TrainingOptions &options) {
  auto grad = module.lookupSymbol<func::FuncOp>("grad");
  if (!grad)
    return module.emitError("expects a function @grad");
  return UpdateBuilder(grad, options).build();
}

LogicalResult espalier::buildTrainingStep(ModuleOp module,
                                          const TrainingOptions &options) {
  auto loss = buildLoss(module, options.loss);
  if (failed(loss) || failed(buildGrad(module)) ||
      failed(buildUpdate(module, options)))
    return failure();
  loss->erase();
  module.lookupSymbol<func::FuncOp>("forward").erase();
  return success();
}
