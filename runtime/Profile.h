//===- Profile.h - Seconds per op -------------------------------*- C++ -*-===//

#ifndef ESPALIER_RUNTIME_PROFILE_H
#define ESPALIER_RUNTIME_PROFILE_H

#include "runtime/Segment.h"
#include "runtime/Support.h"

#include <cstddef>

namespace espalier::runtime {

struct Metadata;

enum class CollectiveKind { AllReduce, AllGather, ReduceScatter, AllToAll };

/// The clock of one rank. An op's time lasts from its mark to the next one.
/// Entries of a rank's row in the segment:
///   0 outside of ops | 1.. ops | loading | waiting for the others |
///   (seconds, calls) of each kind of collective
class Profile {
public:
  static size_t entries(size_t ops) { return ops + 3 + 8; }

  Profile() = default;
  Profile(double *row, size_t ops)
      : row(row), ops(ops), since(monotonicSeconds()) {}

  bool enabled() const { return row != nullptr; }

  void op(int32_t index) {
    if (row)
      advance(static_cast<size_t>(index) + 1);
  }
  void outside() {
    if (row)
      advance(0);
  }
  void loading() {
    if (row)
      advance(ops + 1);
  }
  void waiting() {
    if (row)
      advance(ops + 2);
  }
  void collective(CollectiveKind kind, double seconds) {
    double *entry = row + ops + 3 + 2 * static_cast<size_t>(kind);
    entry[0] += seconds;
    entry[1] += 1;
  }

private:
  void advance(size_t next) {
    double now = monotonicSeconds();
    row[current] += now - since;
    since = now;
    current = next;
  }

  double *row = nullptr;
  size_t ops = 0;
  size_t current = 0;
  double since = 0;
};

/// Writes the rows of all ranks as JSON, after `steps` steps.
Status writeProfile(const std::string &path, const Segment &segment,
                    const Metadata &metadata, int64_t steps);

} // namespace espalier::runtime

#endif // ESPALIER_RUNTIME_PROFILE_H
