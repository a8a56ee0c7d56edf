//===- TrainingStepTest.cpp - Losses, optimizers and schedules in numbers -===//

#include "dialects/Nn/NnShapes.h"
#include "espalier/Autodiff/Autodiff.h"
#include "espalier/Support/FunctionForm.h"

#include "test/unit/TestProgram.h"

using namespace mlir;
using namespace espalier;

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

static double rateAt(int64_t step, double lr, const ScheduleOptions &options) {
  TestProgram program("module {}");
  OpBuilder builder = OpBuilder::atBlockEnd(program.module->getBody());
  Slot slot{RankedTensorType::get({}, builder.getI64Type()), "step", "step"};
  Slot rate{RankedTensorType::get({}, builder.getF64Type()), "lr", "lr"};
  auto loc = builder.getUnknownLoc();
  auto f = createFunction(builder, loc, "f", {slot}, {rate});
  builder.setInsertionPointToEnd(&f.getBody().front());
  Value value = buildLearningRate(builder, loc, f.getArgument(0), lr, options);
  func::ReturnOp::create(builder, loc, value);
  auto results = interpret(
      f, {Tensor(program.argumentType(f, 0), std::vector<int64_t>{step})});
  return succeeded(results) ? results->front().floats[0] : NAN;
}

TEST(Schedule, RisesOverTheWarmup) {
  using Kind = ScheduleOptions::Kind;
  for (Kind kind : {Kind::Constant, Kind::Linear, Kind::Cosine}) {
    ScheduleOptions options{kind, /*warmup=*/4, /*total=*/8, /*min=*/0};
    EXPECT_DOUBLE_EQ(rateAt(0, 8, options), 2);
    EXPECT_DOUBLE_EQ(rateAt(2, 8, options), 6);
    EXPECT_DOUBLE_EQ(rateAt(3, 8, options), 8);
    EXPECT_DOUBLE_EQ(rateAt(4, 8, options), 8);
  }
}

// u is 0 at 100, 1/3 at 400, 1/2 at 550, 1 from 1000 on; cos(pi/3) = 1/2.
TEST(Schedule, FallsToTheLeastRate) {
  using Kind = ScheduleOptions::Kind;
  ScheduleOptions cosine{Kind::Cosine, 100, 1000, 6e-5};
  EXPECT_DOUBLE_EQ(rateAt(100, 6e-4, cosine), 6e-4);
  EXPECT_NEAR(rateAt(400, 6e-4, cosine), 6e-5 + 5.4e-4 * 0.75, 1e-15);
  EXPECT_NEAR(rateAt(550, 6e-4, cosine), 3.3e-4, 1e-15);
  EXPECT_NEAR(rateAt(1000, 6e-4, cosine), 6e-5, 1e-18);
  EXPECT_NEAR(rateAt(5000, 6e-4, cosine), 6e-5, 1e-18);
  ScheduleOptions linear{Kind::Linear, 100, 1000, 6e-5};
  EXPECT_NEAR(rateAt(400, 6e-4, linear), 6e-5 + 5.4e-4 * 2 / 3, 1e-15);
  EXPECT_NEAR(rateAt(5000, 6e-4, linear), 6e-5, 1e-18);
}

TEST(Schedule, WithoutAWayIsAtItsEnd) {
  using Kind = ScheduleOptions::Kind;
  EXPECT_DOUBLE_EQ(rateAt(7, 1, {Kind::Constant, 0, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(rateAt(1, 1, {Kind::Linear, 2, 2, 0.25}), 1);
  EXPECT_DOUBLE_EQ(rateAt(2, 1, {Kind::Linear, 2, 2, 0.25}), 0.25);
}

//===----------------------------------------------------------------------===//
// Optimizers
//===----------------------------------------------------------------------===//

namespace {

/// A program that trains two parameters, of three elements and of one, and its
/// state from step to step.
class Trainer {
public:
  explicit Trainer(const TrainingOptions &options)
      : program(R"mlir(
    func.func @grad(%a: tensor<3xf64> {espalier.name = "a", espalier.role = "parameter"},
                    %b: tensor<f64> {espalier.name = "b", espalier.role = "parameter"})
        -> (tensor<f64> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
            tensor<f64> {espalier.name = "weight_sum", espalier.role = "weight_sum"},
            tensor<3xf64> {espalier.name = "a", espalier.role = "grad"},
            tensor<f64> {espalier.name = "b", espalier.role = "grad"}) {
      return %b, %b, %a, %b : tensor<f64>, tensor<f64>, tensor<3xf64>, tensor<f64>
    })mlir") {
    update = *buildUpdate(*program.module, options);
    for (unsigned i = 0; i < update.getNumArguments(); ++i)
      if (StringRef role = argumentSlots(update)[i].role;
          role == role::parameter || role == role::state)
        kept.emplace_back(program.argumentType(update, i));
    kept[0].floats = {1, -2, 3};
    kept[1].floats = {0.5};
  }

  /// Takes a step and returns loss, norm of gradients and learning rate.
  std::vector<double> step(std::vector<double> a, double b, double loss,
                           double weight) {
    Tensors arguments = kept;
    for (const std::vector<double> &values :
         {a, std::vector<double>{b}, {loss}, {weight}})
      arguments.emplace_back(program.argumentType(update, arguments.size()),
                             values);
    arguments.emplace_back(program.argumentType(update, arguments.size()),
                           std::vector<int64_t>{count++});
    auto results = interpret(update, arguments, Precision::Double);
    EXPECT_TRUE(succeeded(results)) << program.messages;
    std::vector<double> scalars;
    for (size_t i = 0; i < kept.size(); ++i)
      kept[i] = (*results)[i];
    for (size_t i = kept.size(); i < results->size(); ++i)
      scalars.push_back((*results)[i].floats[0]);
    return scalars;
  }

  TestProgram program;
  func::FuncOp update;
  Tensors kept; // a, b, then their state
  int64_t count = 0;
};

} // namespace

static TrainingOptions sgd(double lr) {
  TrainingOptions options;
  options.optimizer.kind = OptimizerOptions::Kind::Sgd;
  options.optimizer.learningRate = lr;
  return options;
}

// The gradient is 4 / 2 = 2. Decay leaves 0.99 of the parameter; the moments,
// corrected, are 2 and 4, so that the step is 0.1 * 2 / (2 + 2).
TEST(Update, FirstStepOfAdamW) {
  TrainingOptions options;
  options.optimizer.learningRate = 0.1;
  options.optimizer.weightDecay = 0.1;
  options.optimizer.epsilon = 2;
  Trainer trainer(options);
  auto scalars = trainer.step({4, 4, -4}, 0, /*loss=*/6, /*weight=*/2);
  expectNear(trainer.kept[0].floats, {0.94, -2.03, 3.02});
  expectNear(trainer.kept[1].floats, {0.495});
  expectNear(trainer.kept[2].floats, {0.2, 0.2, -0.2});
  expectNear(trainer.kept[3].floats, {0.004, 0.004, 0.004});
  expectNear(scalars, {3, std::sqrt(12), 0.1});
}

// torch.optim.AdamW's formulas, step after step.
TEST(Update, ManyStepsOfAdamW) {
  TrainingOptions options;
  options.optimizer.learningRate = 0.01;
  options.optimizer.weightDecay = 0.3;
  options.optimizer.beta1 = 0.8;
  options.optimizer.beta2 = 0.95;
  Trainer trainer(options);
  double p = -2, m = 0, v = 0;
  for (int t = 1; t <= 20; ++t) {
    double g = std::sin(t);
    trainer.step({1, 3 * g, 1}, 1, 1, 3);
    p *= 1 - 0.01 * 0.3;
    m = 0.8 * m + 0.2 * g;
    v = 0.95 * v + 0.05 * g * g;
    double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(0.95, t)) + 1e-8;
    p -= 0.01 / (1 - std::pow(0.8, t)) * m / denominator;
    ASSERT_NEAR(trainer.kept[0].floats[1], p, 1e-12) << "after step " << t;
  }
}

// torch.optim.SGD: the buffer of the first step is the gradient, undampened.
TEST(Update, ManyStepsOfSgd) {
  for (bool nesterov : {false, true})
    for (double dampening : {0.0, 0.4})
      for (double momentum : {0.0, 0.9}) {
        TrainingOptions options = sgd(0.1);
        options.optimizer.momentum = momentum;
        options.optimizer.dampening = dampening;
        options.optimizer.nesterov = nesterov && momentum != 0;
        options.optimizer.weightDecay = 0.2;
        Trainer trainer(options);
        double p = 3, buffer = 0;
        for (int t = 0; t < 5; ++t) {
          double g = std::cos(t);
          trainer.step({0, 0, 2 * g}, 0, 1, 2);
          g += 0.2 * p;
          if (momentum != 0) {
            buffer = t == 0 ? g : momentum * buffer + (1 - dampening) * g;
            g = nesterov ? g + momentum * buffer : buffer;
          }
          p -= 0.1 * g;
          ASSERT_NEAR(trainer.kept[0].floats[2], p, 1e-12)
              << "step " << t << ", momentum " << momentum << ", dampening "
              << dampening << ", nesterov " << nesterov;
        }
      }
}

// The mean gradient is (2, 0, 0) and 1.5: norm 2.5; clipped to 1 by 1 / (2.5 +
// 1e-6).
TEST(Update, ClipsByTheNormOfTheMeanGradient) {
  TrainingOptions options = sgd(1);
  options.gradientClip = 1;
  Trainer trainer(options);
  auto scalars = trainer.step({4, 0, 0}, 3, 0, 2);
  EXPECT_NEAR(scalars[1], 2.5, 1e-12);
  EXPECT_NEAR(trainer.kept[0].floats[0], 1 - 2 / 2.500001, 1e-12);
  EXPECT_NEAR(trainer.kept[1].floats[0], 0.5 - 1.5 / 2.500001, 1e-12);
  // A small one is left as it is.
  trainer.step({0, 0.5, 0}, 0, 0, 1);
  EXPECT_NEAR(trainer.kept[0].floats[1], -2.5, 1e-12);
}

TEST(Update, ChangesNothingWithoutWeight) {
  TrainingOptions options;
  options.optimizer.weightDecay = 0.1;
  options.gradientClip = 1;
  Trainer trainer(options);
  trainer.step({1, 2, 3}, 4, 5, 6);
  Tensors before = trainer.kept;
  auto scalars = trainer.step({NAN, INFINITY, 0}, 0, 0, 0);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(trainer.kept[i].floats, before[i].floats);
  EXPECT_EQ(scalars[0], 0);
}

// Such a norm shows as such, and does not hide behind clipping.
TEST(Update, KeepsANormThatIsNotANumber) {
  TrainingOptions options = sgd(1);
  options.gradientClip = 1;
  Trainer trainer(options);
  auto scalars = trainer.step({NAN, 0, 0}, 0, 0, 1);
  EXPECT_TRUE(std::isnan(scalars[1]));
  EXPECT_TRUE(std::isnan(trainer.kept[0].floats[0]));
}

//===----------------------------------------------------------------------===//
// Losses and their gradients
//===----------------------------------------------------------------------===//

/// @forward: %w scales the input; with the outputs "y" and "count".
static const char *scaling = R"mlir(
    func.func @forward(%w: tensor<2xf64> {espalier.name = "w", espalier.role = "parameter"},
        %x: tensor<3x2xf64> {espalier.name = "x", espalier.role = "input"},
        %n: tensor<3xi64> {espalier.name = "n", espalier.role = "input"},
        %valid: tensor<3xi1> {espalier.name = "valid", espalier.role = "valid"},
        %rng: tensor<3xi64> {espalier.name = "rng", espalier.role = "rng"})
        -> (tensor<3x2xf64> {espalier.name = "y", espalier.role = "output"},
            tensor<3xf64> {espalier.name = "own", espalier.role = "output"},
            tensor<3xi64> {espalier.name = "count", espalier.role = "output"}) {
      %y = nn.map %x, %w : (tensor<3x2xf64>, tensor<2xf64>) -> tensor<3x2xf64> {
      ^bb0(%a: f64, %b: f64):
        %p = arith.mulf %a, %b : f64
        nn.yield %p : f64
      }
      %s = nn.reduce sum %y dims = [1] : tensor<3x2xf64> -> tensor<3x1xf64>
      %own = nn.reshape %s : tensor<3x1xf64> -> tensor<3xf64>
      return %y, %own, %n : tensor<3x2xf64>, tensor<3xf64>, tensor<3xi64>
    })mlir";

/// Runs @grad of that model: loss_sum, weight_sum and w's gradient. `target` is
/// the extra argument, where the loss has one.
static std::vector<double> gradOf(const LossOptions &options,
                                  std::vector<double> w, std::vector<double> x,
                                  std::vector<int64_t> valid,
                                  std::vector<double> target = {}) {
  TestProgram program(scaling);
  EXPECT_TRUE(succeeded(buildLoss(*program.module, options)));
  auto built = buildGrad(*program.module);
  EXPECT_TRUE(succeeded(built)) << program.messages;
  func::FuncOp grad = *built;
  Tensors arguments;
  for (auto [i, slot] : llvm::enumerate(argumentSlots(grad))) {
    Tensor tensor(program.argumentType(grad, i));
    if (slot.name == "w")
      tensor.floats = w;
    else if (slot.name == "x")
      tensor.floats = x;
    else if (slot.name == "n")
      tensor.integers = {10, 20, 30};
    else if (slot.name == "valid")
      tensor.integers = valid;
    else if (slot.role == role::label && tensor.isFloat())
      tensor.floats = target;
    else if (slot.role == role::label)
      tensor.integers.assign(target.begin(), target.end());
    arguments.push_back(tensor);
  }
  auto results = interpret(grad, arguments, Precision::Double);
  EXPECT_TRUE(succeeded(results)) << program.messages;
  std::vector<double> numbers;
  for (Tensor &result : *results)
    llvm::append_range(numbers, result.floats);
  return numbers;
}

// Logits are (0, ln 3) and twice something: rows 1 and 2 do not count, one by
// its label, one since it is no sample; its logits are not even numbers.
TEST(Loss, CountsLabelsOfValidSamples) {
  LossOptions options{LossOptions::Kind::CrossEntropy, "y", "labels", -1, ""};
  double log3 = std::log(3.0);
  auto numbers = gradOf(options, {1, log3}, {0, 1, 5, 6, NAN, INFINITY},
                        {1, 1, 0}, {1, -1, 0});
  // -log(3/4); d/dlogits = (1/4, -1/4), times x = (0, 1).
  EXPECT_NEAR(numbers[0], std::log(4.0 / 3), 1e-12);
  EXPECT_EQ(numbers[1], 1);
}

TEST(Loss, GradientOfCrossEntropy) {
  LossOptions options{LossOptions::Kind::CrossEntropy, "y", "labels", -1, ""};
  auto numbers = gradOf(options, {1, std::log(3.0)}, {0, 1, 5, 6, 7, 8},
                        {1, 1, 0}, {1, -1, 0});
  expectNear({numbers[2], numbers[3]}, {0, -0.25});
}

// Errors (1, -1) and (2, 0): squares 1 + 1 + 4; four elements count.
TEST(Loss, SquaredErrorWeighsElements) {
  LossOptions options{LossOptions::Kind::MeanSquaredError, "y", "wanted", 0,
                      ""};
  auto numbers = gradOf(options, {1, 1}, {1, 2, 9, 9, 3, 4}, {1, 0, 1},
                        {0, 3, NAN, NAN, 1, 4});
  // 2 * (1 * 1 + 2 * 3) and 2 * (-1 * 2 + 0 * 4)
  expectNear(numbers, {6, 4, 14, -4});
}

// The sums of rows, of samples 0 and 2.
TEST(Loss, OwnLossIsSelected) {
  LossOptions options{LossOptions::Kind::Output, "own", "", 0, ""};
  EXPECT_EQ(gradOf(options, {1, 1}, {1, 2, NAN, 0, 3, 4}, {1, 0, 1}).front(),
            10);
  expectNear(gradOf(options, {1, 1}, {1, 2, 5, 6, 3, 4}, {1, 0, 1}),
             {10, 2, 4, 6});
  options.weight = "count";
  expectNear(gradOf(options, {1, 1}, {1, 2, 5, 6, 3, 4}, {1, 0, 1}),
             {10, 40, 4, 6});
}

TEST(TrainingStep, IsOneModuleOfTwoFunctions) {
  TestProgram program(scaling);
  TrainingOptions options;
  options.loss = {LossOptions::Kind::CrossEntropy, "y", "labels", -100, ""};
  ASSERT_TRUE(succeeded(buildTrainingStep(*program.module, options)));
  std::string names;
  for (auto function : program.module->getOps<func::FuncOp>())
    names += function.getName().str() + " ";
  EXPECT_EQ(names, "grad update ");
}
