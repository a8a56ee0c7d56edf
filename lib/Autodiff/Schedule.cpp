//===- Schedule.cpp - The learning rate of a step -------------------------===//
//
// lr * (t + 1) / warmup while t < warmup, then from lr down to min over
// u = min(1, (t - warmup) / (total - warmup)).
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/NnBuilders.h"
#include "espalier/Autodiff/Autodiff.h"

#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace espalier;

/// The part of the way from lr to min that is left at `u`, in [0, 1].
static Value buildRest(OpBuilder &b, Location l, Value u,
                       ScheduleOptions::Kind kind) {
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, l, b.getF64FloatAttr(value));
  };
  if (kind == ScheduleOptions::Kind::Linear)
    return arith::SubFOp::create(b, l, number(1), u);
  Value angle = arith::MulFOp::create(b, l, number(llvm::numbers::pi), u);
  Value cos = math::CosOp::create(b, l, angle);
  Value twice = arith::AddFOp::create(b, l, number(1), cos);
  return arith::MulFOp::create(b, l, number(0.5), twice);
}

Value espalier::buildLearningRate(OpBuilder &builder, Location loc, Value step,
                                  double learningRate,
                                  const ScheduleOptions &options) {
  return nn::buildMap(
      builder, loc, {step}, [&](OpBuilder &b, Location l, ValueRange args) {
        auto number = [&](double value) -> Value {
          return arith::ConstantOp::create(b, l, b.getF64FloatAttr(value));
        };
        Value t = arith::SIToFPOp::create(b, l, b.getF64Type(), args[0]);
        Value warmup = number(options.warmupSteps), peak = number(learningRate);
        Value rate = peak;
        if (options.kind != ScheduleOptions::Kind::Constant) {
          Value u = number(1); // where there is no way from warmup to total
          if (options.totalSteps > options.warmupSteps) {
            Value since = arith::SubFOp::create(b, l, t, warmup);
            Value way = number(options.totalSteps - options.warmupSteps);
            Value ratio = arith::DivFOp::create(b, l, since, way);
            u = arith::MinimumFOp::create(b, l, u, ratio);
          }
          Value rest = buildRest(b, l, u, options.kind);
          Value span = number(learningRate - options.minLearningRate);
          rate = arith::AddFOp::create(b, l, number(options.minLearningRate),
                                       arith::MulFOp::create(b, l, span, rest));
        }
        if (options.warmupSteps <= 0)
          return rate;
        Value isWarming =
            arith::CmpFOp::create(b, l, arith::CmpFPredicate::OLT, t, warmup);
        Value next = arith::AddFOp::create(b, l, t, number(1));
        Value rising = arith::DivFOp::create(
            b, l, arith::MulFOp::create(b, l, peak, next), warmup);
        return Value(arith::SelectOp::create(b, l, isWarming, rising, rate));
      });
}
