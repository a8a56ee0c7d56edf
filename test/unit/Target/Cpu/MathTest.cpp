//===- MathTest.cpp - The kernels' functions against libm -----------------===//

#include "lib/Target/Cpu/Kernels/Math.h"

#include "gtest/gtest.h"

#include <cmath>
#include <vector>

namespace kernels = espalier::kernels;

namespace {

/// Floats over the whole range, by their bits, and special ones.
std::vector<float> samples() {
  std::vector<float> all = {0.0f,    -0.0f,         INFINITY,      -INFINITY,
                            NAN,     1.0f,          -1.0f,         1e-45f,
                            -1e-45f, 3.4028235e38f, -3.4028235e38f};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 9973)
    all.push_back(kernels::asFloat(uint32_t(bits)));
  for (double x = -20; x < 20; x += 0.000437)
    all.push_back(float(x));
  return all;
}

/// The distance in units in the last place of the exact value.
double error(double exact, float value) {
  if (std::isnan(exact))
    return std::isnan(value) ? 0 : INFINITY;
  float rounded = float(exact);
  if (rounded == value)
    return 0;
  if (std::isinf(rounded) || std::isinf(value) || std::isnan(value))
    return INFINITY;
  int exponent = std::max(std::ilogb(exact == 0 ? 1e-45 : exact), -126);
  return std::abs(exact - double(value)) / std::ldexp(1.0, exponent - 23);
}

struct Function {
  const char *name;
  float (*ours)(float);
  double (*exact)(double);
  double limit = INFINITY; // of the argument's magnitude
  double bound = 2;
};

} // namespace

TEST(Math, IsExactToTwoUnits) {
  const Function functions[] = {
      {"exp", kernels::exp, std::exp},
      {"exp2", kernels::exp2, std::exp2},
      {"expm1", kernels::expm1, std::expm1},
      {"log", kernels::log, std::log},
      {"log2", kernels::log2, std::log2},
      {"log1p", kernels::log1p, std::log1p},
      {"tanh", kernels::tanh, std::tanh},
      {"erf", kernels::erf, std::erf},
      {"sin", kernels::sin, std::sin, 1e9},
      {"cos", kernels::cos, std::cos, 1e9},
  };
  std::vector<float> all = samples();
  for (const Function &function : functions) {
    double most = 0;
    float at = 0;
    for (float x : all) {
      if (std::isfinite(x) && std::abs(x) > function.limit)
        continue;
      double e = error(function.exact(x), function.ours(x));
      if (e > most)
        most = e, at = x;
    }
    EXPECT_LE(most, function.bound) << function.name << " at " << at;
  }
}
