//===- ProgramTest.cpp - Whole small programs -----------------------------===//

#include <cmath>

#include "CompiledProgram.h"

using namespace espalier::test;

namespace {

/// One layer with a cross-entropy loss, and plain gradient descent.
const char *const mlp = R"mlir(
func.func @first(
    %w: tensor<5x7xf32> {espalier.name = "w", espalier.role = "parameter"},
    %b: tensor<7xf32> {espalier.name = "b", espalier.role = "parameter"},
    %x: tensor<3x5xf32> {espalier.name = "x", espalier.role = "input"},
    %y: tensor<3xi64> {espalier.name = "y", espalier.role = "label"})
    -> (tensor<f32> {espalier.name = "loss_sum", espalier.role = "loss_sum"},
        tensor<5x7xf32> {espalier.name = "w", espalier.role = "grad"},
        tensor<7xf32> {espalier.name = "b", espalier.role = "grad"}) {
  %h = nn.contract "bi,io->bo" %x, %w : tensor<3x5xf32>, tensor<5x7xf32> -> tensor<3x7xf32>
  %z = nn.map %h, %b : (tensor<3x7xf32>, tensor<7xf32>) -> tensor<3x7xf32> {
  ^bb0(%u: f32, %v: f32):
    %s = arith.addf %u, %v : f32
    nn.yield %s : f32
  }
  %loss, %lse = nn.cross_entropy %z, %y ignore_index = -100
      : tensor<3x7xf32>, tensor<3xi64> -> tensor<3xf32>, tensor<3xf32>
  %r = nn.reduce sum %loss dims = [0] : tensor<3xf32> -> tensor<1xf32>
  %sum = nn.reshape %r : tensor<1xf32> -> tensor<f32>
  %one = nn.constant dense<1.0> : tensor<3xf32> -> tensor<3xf32>
  %dz = nn.cross_entropy_grad %z, %y, %lse, %one ignore_index = -100
      : (tensor<3x7xf32>, tensor<3xi64>, tensor<3xf32>, tensor<3xf32>) -> tensor<3x7xf32>
  %dw = nn.contract "bi,bo->io" %x, %dz : tensor<3x5xf32>, tensor<3x7xf32> -> tensor<5x7xf32>
  %db1 = nn.reduce sum %dz dims = [0] : tensor<3x7xf32> -> tensor<1x7xf32>
  %db = nn.reshape %db1 : tensor<1x7xf32> -> tensor<7xf32>
  return %sum, %dw, %db : tensor<f32>, tensor<5x7xf32>, tensor<7xf32>
}
func.func @next(
    %w: tensor<5x7xf32> {espalier.name = "w", espalier.role = "parameter"},
    %x: tensor<3x5xf32> {espalier.name = "x", espalier.role = "input"},
    %dz: tensor<3x7xf32> {espalier.name = "dz", espalier.role = "input"},
    %dw: tensor<5x7xf32> {espalier.name = "w", espalier.role = "grad"})
    -> (tensor<5x7xf32> {espalier.name = "w", espalier.role = "grad"}) {
  %own = nn.contract "bi,bo->io" %x, %dz : tensor<3x5xf32>, tensor<3x7xf32> -> tensor<5x7xf32>
  %sum = nn.map %dw, %own : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x7xf32> {
  ^bb0(%u: f32, %v: f32):
    %s = arith.addf %u, %v : f32
    nn.yield %s : f32
  }
  return %sum : tensor<5x7xf32>
}
func.func @update(
    %w: tensor<5x7xf32> {espalier.name = "w", espalier.role = "parameter"},
    %b: tensor<7xf32> {espalier.name = "b", espalier.role = "parameter"},
    %dw: tensor<5x7xf32> {espalier.name = "w", espalier.role = "grad"},
    %db: tensor<7xf32> {espalier.name = "b", espalier.role = "grad"},
    %step: tensor<i64> {espalier.name = "step", espalier.role = "step"})
    -> (tensor<5x7xf32> {espalier.name = "w", espalier.role = "parameter"},
        tensor<7xf32> {espalier.name = "b", espalier.role = "parameter"},
        tensor<f32> {espalier.name = "lr", espalier.role = "lr"}) {
  %lr = nn.map %step : (tensor<i64>) -> tensor<f32> {
  ^bb0(%t: i64):
    %f = arith.sitofp %t : i64 to f32
    %half = arith.constant 5.0e-01 : f32
    %p = math.powf %half, %f : f32
    nn.yield %p : f32
  }
  %w2 = nn.map %w, %dw, %lr : (tensor<5x7xf32>, tensor<5x7xf32>, tensor<f32>) -> tensor<5x7xf32> {
  ^bb0(%p: f32, %g: f32, %l: f32):
    %m = arith.mulf %g, %l : f32
    %s = arith.subf %p, %m : f32
    nn.yield %s : f32
  }
  %b2 = nn.map %b, %db, %lr : (tensor<7xf32>, tensor<7xf32>, tensor<f32>) -> tensor<7xf32> {
  ^bb0(%p: f32, %g: f32, %l: f32):
    %m = arith.mulf %g, %l : f32
    %s = arith.subf %p, %m : f32
    nn.yield %s : f32
  }
  return %w2, %b2, %lr : tensor<5x7xf32>, tensor<7xf32>, tensor<f32>
}
)mlir";

} // namespace

TEST(Program, TrainsALayer) {
  espalier::cpu::CompileOptions options;
  options.keepRt = true;
  CompiledProgram program(mlp, options);
  ASSERT_TRUE(program.ok());
  float *w = program.data<float>("w", "parameter");
  float *b = program.data<float>("b", "parameter");
  float *x = program.data<float>("x", "input");
  int64_t *y = program.data<int64_t>("y", "label");
  fillRandom(w, 35, 1);
  fillRandom(b, 7, 2);
  fillRandom(x, 15, 3);
  y[0] = 6, y[1] = -100, y[2] = 0;
  *program.data<int64_t>("step", "step") = 1;

  double loss = 0, dw[35] = {}, db[7] = {};
  for (int row = 0; row < 3; ++row) {
    if (y[row] == -100)
      continue;
    double z[7], sum = 0;
    for (int j = 0; j < 7; ++j) {
      z[j] = b[j];
      for (int i = 0; i < 5; ++i)
        z[j] += double(x[row * 5 + i]) * w[i * 7 + j];
      sum += std::exp(z[j]);
    }
    loss += std::log(sum) - z[y[row]];
    for (int j = 0; j < 7; ++j) {
      double dz = std::exp(z[j]) / sum - (j == y[row]);
      db[j] += dz;
      for (int i = 0; i < 5; ++i)
        dw[i * 7 + j] += x[row * 5 + i] * dz;
    }
  }
  program.run("first");
  EXPECT_NEAR(*program.data<float>("loss_sum", "loss_sum"), loss, 1e-5);
  float *gradW = program.data<float>("w", "grad");
  float *gradB = program.data<float>("b", "grad");
  for (int i = 0; i < 35; ++i)
    EXPECT_NEAR(gradW[i], dw[i], 1e-5);
  for (int i = 0; i < 7; ++i)
    EXPECT_NEAR(gradB[i], db[i], 1e-5);

  fillRandom(program.data<float>("dz", "input"), 21, 4);
  program.run("next");
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 7; ++j) {
      for (int row = 0; row < 3; ++row)
        dw[i * 7 + j] += double(x[row * 5 + i]) *
                         program.data<float>("dz", "input")[row * 7 + j];
      EXPECT_NEAR(gradW[i * 7 + j], dw[i * 7 + j], 1e-5);
    }
  // The product adds to the gradient where it is.
  std::string next = program.object.rt.substr(
      program.object.rt.find("@next"),
      program.object.rt.find("@update") - program.object.rt.find("@next"));
  EXPECT_NE(next.find("beta = 1.000000e+00"), std::string::npos) << next;
  EXPECT_EQ(next.find("rt.loops"), std::string::npos) << next;

  float before = w[9];
  program.run("update");
  EXPECT_EQ(*program.data<float>("lr", "lr"), 0.5f);
  EXPECT_NEAR(w[9], before - 0.5 * dw[9], 1e-5);
}
