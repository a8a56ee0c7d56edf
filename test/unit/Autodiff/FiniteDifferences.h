//===- FiniteDifferences.h - Derivatives against differences ----*- C++ -*-===//

#ifndef ESPALIER_TEST_UNIT_AUTODIFF_FINITEDIFFERENCES_H
#define ESPALIER_TEST_UNIT_AUTODIFF_FINITEDIFFERENCES_H

#include <map>
#include <set>
#include <string>
#include <vector>

namespace espalier {

/// A function @f on f64 tensors, and the arguments at which it is
/// differentiated.
struct DerivativeCase {
  std::string text;
  /// Floating-point arguments are drawn from this range, integers from [0,
  /// count).
  double low = -2, high = 2;
  int64_t count = 3;
  /// Arguments that are given instead.
  std::map<unsigned, std::vector<double>> given;
  /// Arguments whose gradient is not asked for.
  std::set<unsigned> constant;
  /// What is reported instead of a derivative.
  std::string error;
};

/// Compares the gradients of @f's floating-point arguments, through random
/// gradients of its results, with central differences. Elements that are not
/// finite are left out. Returns the names of the ops in @f.
std::set<std::string> checkDerivative(const DerivativeCase &row);

} // namespace espalier

#endif // ESPALIER_TEST_UNIT_AUTODIFF_FINITEDIFFERENCES_H
