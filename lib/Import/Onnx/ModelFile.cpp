//===- ModelFile.cpp - Reading the protobuf file -*- C++ -*-===//

#include "ModelFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

using namespace llvm;
using google::protobuf::io::CodedInputStream;

namespace espalier::onnx {

static Error fileError(StringRef path, const Twine &message) {
  return createStringError(errc::invalid_argument, "%s: %s", path.str().c_str(),
                           message.str().c_str());
}

static Expected<std::unique_ptr<MemoryBuffer>>
readBytes(StringRef path, const ImportLimits &limits) {
  sys::fs::file_status status;
  if (std::error_code code = sys::fs::status(path, status))
    return fileError(path, "cannot be read: " + code.message());
  if (status.type() != sys::fs::file_type::regular_file)
    return fileError(path, "expects a regular file");
  if (status.getSize() > limits.fileBytes)
    return fileError(
        path, "has " + Twine(status.getSize()) + " bytes, the limit is " +
                  Twine(limits.fileBytes) +
                  "; save the weights as external data, beside the model");
  // Volatile: read rather than mapped, so that a file which shrinks meanwhile
  // is a parse error and no signal.
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false,
                                      /*IsVolatile=*/true);
  if (std::error_code code = buffer.getError())
    return fileError(path, "cannot be read: " + code.message());
  return std::move(*buffer);
}

/// Reads the tag of the next field of a message; a length-delimited field's
/// length goes to `length`, others are skipped with length -1. False at the
/// end of the message or where the bytes are no protobuf.
static bool nextField(CodedInputStream &stream, int &number, int &length) {
  uint32_t tag = stream.ReadTag();
  if (tag == 0)
    return false;
  number = tag >> 3;
  length = -1;
  uint64_t ignored;
  uint32_t ignored32;
  switch (tag & 7) {
  case 0:
    return stream.ReadVarint64(&ignored);
  case 1:
    return stream.ReadLittleEndian64(&ignored);
  case 2:
    return stream.ReadVarintSizeAsInt(&length);
  case 5:
    return stream.ReadLittleEndian32(&ignored32);
  }
  return false;
}

/// Calls `visit` with the length of each field `wanted` of the message that
/// ends `size` bytes from here; the field's content is skipped afterwards.
template <typename Visit>
static void forEachField(CodedInputStream &stream, int size, int wanted,
                         Visit visit) {
  CodedInputStream::Limit limit = stream.PushLimit(size);
  int number, length;
  while (nextField(stream, number, length)) {
    if (length < 0)
      continue;
    int end = stream.CurrentPosition() + length;
    if (number == wanted)
      visit(length);
    if (!stream.Skip(end - stream.CurrentPosition()))
      break;
  }
  stream.PopLimit(limit);
}

/// Offsets of initializers' raw_data. Protobuf does not tell them, hence this
/// second walk: ModelProto.graph, GraphProto.initializer, TensorProto.raw_data.
static std::vector<int64_t> findRawOffsets(const MemoryBuffer &buffer) {
  std::vector<int64_t> offsets;
  CodedInputStream stream(
      reinterpret_cast<const uint8_t *>(buffer.getBufferStart()),
      buffer.getBufferSize());
  stream.SetTotalBytesLimit(INT32_MAX);
  forEachField(stream, buffer.getBufferSize(), 7, [&](int graphSize) {
    forEachField(stream, graphSize, 5, [&](int tensorSize) {
      offsets.push_back(-1);
      forEachField(stream, tensorSize, 9,
                   [&](int) { offsets.back() = stream.CurrentPosition(); });
    });
  });
  return offsets;
}

Expected<ModelFile> readModelFile(StringRef path, const ImportLimits &limits) {
  Expected<std::unique_ptr<MemoryBuffer>> buffer = readBytes(path, limits);
  if (!buffer)
    return buffer.takeError();
  ModelFile file;
  file.path = path.str();
  file.directory = sys::path::parent_path(path).str();
  if (file.directory.empty())
    file.directory = ".";
  file.name = sys::path::filename(path).str();
  file.model = std::make_unique<proto::ModelProto>();

  const MemoryBuffer &bytes = **buffer;
  CodedInputStream stream(
      reinterpret_cast<const uint8_t *>(bytes.getBufferStart()),
      bytes.getBufferSize());
  stream.SetTotalBytesLimit(INT32_MAX);
  stream.SetRecursionLimit(limits.messageDepth);
  // Protobuf would print to stderr beside our own error.
  google::protobuf::LogSilencer silencer;
  bool parsed = file.model->ParsePartialFromCodedStream(&stream) &&
                stream.ConsumedEntireMessage();
  if (!parsed)
    return fileError(path, "is no ONNX file: parsing stopped at byte " +
                               Twine(stream.CurrentPosition()) + " of " +
                               Twine(bytes.getBufferSize()));
  if (!file.model->has_graph())
    return fileError(path, "is no ONNX file: it has no graph");
  file.rawOffsets = findRawOffsets(bytes);
  file.rawOffsets.resize(file.model->graph().initializer_size(), -1);
  file.hash = xxh3_64bits(arrayRefFromStringRef(bytes.getBuffer()));
  return file;
}

} // namespace espalier::onnx
