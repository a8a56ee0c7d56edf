//===- Log.cpp - What a run tells while it trains -------------------------===//

#include "runtime/Log.h"

#include "runtime/Json.h"
#include "runtime/Support.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace espalier::runtime {

Status JsonLog::open(const std::string &path, int64_t doneSteps) {
  name = path;
  if (doneSteps > 0 && exists(path))
    ESPALIER_TRY(dropAfter(path, doneSteps));
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  fd = ::open(path.c_str(), flags | (doneSteps > 0 ? 0 : O_TRUNC), 0666);
  return fd < 0 ? systemError("cannot open the log " + path)
                : Status::success();
}

Status JsonLog::dropAfter(const std::string &path, int64_t doneSteps) {
  uint64_t kept = 0;
  {
    MappedFile file;
    ESPALIER_TRY(file.open(path));
    const auto *text = reinterpret_cast<const char *>(file.data());
    while (kept < file.size()) {
      const void *end = std::memchr(text + kept, '\n', file.size() - kept);
      if (!end)
        break;
      auto next =
          static_cast<uint64_t>(static_cast<const char *>(end) - text) + 1;
      JsonDocument line(path, std::string(text + kept, next - kept - 1));
      int64_t step = line.root().at("step").integer(1);
      if (!line.status().ok())
        return Status::error(path + " is no log of a training run, so it is "
                                    "not continued");
      if (step > doneSteps)
        break;
      kept = next;
    }
    if (kept == file.size())
      return Status::success();
  }
  if (truncate(path.c_str(), static_cast<off_t>(kept)) != 0)
    return systemError("cannot shorten the log " + path);
  return Status::success();
}

Status JsonLog::append(const StepRecord &record) {
  if (fd < 0)
    return Status::success();
  char line[512];
  char *at = line;
  auto field = [&at](const char *key, double value, bool optional) {
    if (optional && std::isnan(value))
      return;
    at += std::sprintf(at, ", \"%s\": ", key);
    at = writeJsonNumber(at, value);
  };
  at +=
      std::sprintf(at, "{\"step\": %lld", static_cast<long long>(record.step));
  field("loss", record.loss, false);
  field("step_seconds", record.seconds, false);
  field("lr", record.lr, true);
  field("grad_norm", record.gradNorm, true);
  field("weight", record.weight, true);
  field("samples_per_second", record.samplesPerSecond, true);
  field("tokens_per_second", record.tokensPerSecond, true);
  *at++ = '}';
  *at++ = '\n';
  return writeAll(fd, line, static_cast<uint64_t>(at - line), name);
}

Progress::Progress(int64_t lastStep, double flopsPerStep)
    : lastStep(lastStep), flopsPerStep(flopsPerStep),
      terminal(isatty(STDOUT_FILENO)), begun(monotonicSeconds()) {}

namespace {

/// "2:03:05" or "3:05".
void durationText(char (&text)[32], double seconds) {
  auto whole = static_cast<long long>(std::min(seconds, 1e9) + 0.5);
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
}

} // namespace

void Progress::show(const StepRecord &record) {
  double now = monotonicSeconds();
  average =
      average == 0 ? record.seconds : 0.9 * average + 0.1 * record.seconds;
  // Seldom in a long run, so that its output stays readable.
  double interval = terminal ? 0.1 : std::clamp((now - begun) / 20, 1.0, 30.0);
  bool due = lastShown == 0 || now - lastShown >= interval;
  if (!due && record.step != lastStep)
    return;
  lastShown = now;
  char left[32], rate[64], flops[48] = "";
  durationText(left, average * static_cast<double>(lastStep - record.step));
  bool tokens = !std::isnan(record.tokensPerSecond);
  double perSecond = tokens ? record.tokensPerSecond : record.samplesPerSecond;
  std::snprintf(rate, sizeof rate, perSecond < 100 ? "%.1f %s/s" : "%.0f %s/s",
                perSecond, tokens ? "tokens" : "samples");
  if (flopsPerStep > 0)
    std::snprintf(flops, sizeof flops, "  %.1f GFLOP/s",
                  flopsPerStep / record.seconds * 1e-9);
  std::printf("%sstep %lld/%lld  loss %.6g  %.3g s/step  %s%s  %s left%s",
              terminal ? "\r" : "", static_cast<long long>(record.step),
              static_cast<long long>(lastStep), record.loss, record.seconds,
              rate, flops, left, terminal ? "\x1b[K" : "\n");
  pending = terminal;
  std::fflush(stdout);
}

void Progress::finish() {
  if (pending)
    std::printf("\n");
  pending = false;
  std::fflush(stdout);
}

} // namespace espalier::runtime
