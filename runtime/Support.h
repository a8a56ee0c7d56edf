//===- Support.h - Small things that the whole runtime uses -----*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_SUPPORT_H
#define ESPALIER_RUNTIME_SUPPORT_H

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::runtime {

/// printf into a string.
std::string format(const char *pattern, ...)
    __attribute__((format(printf, 1, 2)));

/// "1.5 GiB".
std::string humanBytes(uint64_t bytes);

/// "[4, 1024]".
std::string shapeText(const std::vector<int64_t> &shape);

/// Seconds of a clock that never jumps.
double monotonicSeconds();

/// Smallest multiple of `unit` that is at least `value`.
constexpr uint64_t roundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Makes this thread's arithmetic treat denormal numbers as zero, so that
/// results and speed do not depend on which thread computed them.
void setFlushToZero();

/// Prints "espalier: <text>" on standard output and on standard error.
void printRemark(const std::string &text);
void printError(const std::string &text);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_SUPPORT_H
