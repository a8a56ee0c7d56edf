//===- TensorBoard.cpp - Event files --------------------------------------===//
//
// A TFRecord is: u64 length | masked CRC-32C of it | bytes | masked CRC-32C of
// these. The bytes are an Event protobuf:
//
//   Event   { 1: double wall_time, 2: int64 step, 3: string file_version,
//             5: Summary summary, 7: SessionLog session_log }
//   Summary { 1: repeated Value { 1: string tag, 2: float simple_value } }
//   SessionLog { 1: status (1: START) }
//
//===----------------------------------------------------------------------===//

#include "runtime/Crc32c.h"
#include "runtime/Log.h"
#include "runtime/Support.h"

#include <cmath>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace espalier::runtime {
namespace {

/// A protobuf message in a buffer of its own, large enough for ours.
class Message {
public:
  void varint(uint64_t value) {
    while (value >= 128) {
      bytes[size++] = static_cast<uint8_t>(value | 128);
      value >>= 7;
    }
    bytes[size++] = static_cast<uint8_t>(value);
  }
  void tag(uint32_t field, uint32_t wireType) { varint(field << 3 | wireType); }
  void number(uint32_t field, uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void fixed(uint32_t field, double value) {
    tag(field, 1);
    raw(&value, 8);
  }
  void fixed(uint32_t field, float value) {
    tag(field, 5);
    raw(&value, 4);
  }
  void text(uint32_t field, const char *value) {
    block(field, value, std::strlen(value));
  }
  void message(uint32_t field, const Message &inner) {
    block(field, inner.bytes, inner.size);
  }
  const uint8_t *data() const { return bytes; }
  size_t length() const { return size; }

private:
  void block(uint32_t field, const void *from, size_t count) {
    tag(field, 2);
    varint(count);
    raw(from, count);
  }
  void raw(const void *from, size_t count) {
    std::memcpy(bytes + size, from, count);
    size += count;
  }

  uint8_t bytes[512];
  size_t size = 0;
};

Message beginEvent(int64_t step) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  Message event;
  event.fixed(1, static_cast<double>(now.tv_sec) + 1e-9 * now.tv_nsec);
  if (step > 0)
    event.number(2, static_cast<uint64_t>(step));
  return event;
}

void addScalar(Message &summary, const char *tag, double value) {
  if (std::isnan(value))
    return;
  Message scalar;
  scalar.text(1, tag);
  scalar.fixed(2, static_cast<float>(value));
  summary.message(1, scalar);
}

} // namespace

Status TensorBoardLog::open(const std::string &directory, int64_t doneSteps) {
  ESPALIER_TRY(makeDirectories(directory));
  // TensorBoard reads the files of a folder in the order of their names.
  name = directory + format("/events.out.tfevents.%010lld.espalier.%d",
                            static_cast<long long>(std::time(nullptr)),
                            static_cast<int>(getpid()));
  fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0)
    return systemError("cannot create " + name);
  Message version = beginEvent(0);
  version.text(3, "brain.Event:2");
  ESPALIER_TRY(writeEvent(version.data(), version.length()));
  if (doneSteps == 0)
    return Status::success();
  // A start makes TensorBoard forget what an earlier file has of later steps.
  Message start;
  start.number(1, 1);
  Message event = beginEvent(doneSteps + 1);
  event.message(7, start);
  return writeEvent(event.data(), event.length());
}

Status TensorBoardLog::append(const StepRecord &record) {
  if (fd < 0)
    return Status::success();
  Message summary;
  addScalar(summary, "loss", record.loss);
  addScalar(summary, "lr", record.lr);
  addScalar(summary, "grad_norm", record.gradNorm);
  addScalar(summary, "step_seconds", record.seconds);
  Message event = beginEvent(record.step);
  event.message(5, summary);
  return writeEvent(event.data(), event.length());
}

Status TensorBoardLog::writeEvent(const uint8_t *event, size_t size) {
  uint8_t record[1024];
  uint64_t length = size;
  uint32_t lengthCheck = maskedCrc32c(&length, 8);
  uint32_t check = maskedCrc32c(event, size);
  std::memcpy(record, &length, 8);
  std::memcpy(record + 8, &lengthCheck, 4);
  std::memcpy(record + 12, event, size);
  std::memcpy(record + 12 + size, &check, 4);
  return writeAll(fd, record, size + 16, name);
}

} // namespace espalier::runtime
