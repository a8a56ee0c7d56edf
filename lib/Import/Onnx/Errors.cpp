//===- Errors.cpp - Messages about a model -*- C++ -*-===//

#include "Errors.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

using namespace llvm;

namespace espalier::onnx {

/// Length of the valid UTF-8 sequence that starts at `text`, or 0.
static unsigned utf8Length(StringRef text) {
  auto *begin = reinterpret_cast<const UTF8 *>(text.begin());
  unsigned length = getNumBytesForUTF8(*begin);
  if (length > text.size() || !isLegalUTF8Sequence(begin, begin + length))
    return 0;
  return length;
}

std::string quoted(StringRef name) {
  constexpr size_t limit = 200;
  std::string result = "'";
  while (!name.empty() && result.size() < limit) {
    unsigned char c = name.front();
    unsigned length = c < 0x80 ? 1 : utf8Length(name);
    // U+0080..U+009F are control characters that terminals obey, and the
    // bidirectional controls reorder what is read.
    bool hidden = length == 2 && c == 0xC2 && uint8_t(name[1]) < 0xA0;
    hidden |= length == 3 && c == 0xE2 &&
              (uint8_t(name[1]) == 0x80 || uint8_t(name[1]) == 0x81);
    if (length == 0 || hidden || c < 0x20 || c == 0x7F) {
      result += "\\x" + toHex(name.take_front(1));
      length = 1;
    } else if (c == '\'' || c == '\\') {
      result += {'\\', char(c)};
    } else {
      result += name.take_front(length);
    }
    name = name.drop_front(length);
  }
  return result + (name.empty() ? "'" : "...'");
}

std::string shapeText(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

void ErrorList::add(const Twine &message) {
  if (messages.size() < limit)
    messages.push_back(message.str());
  else
    ++dropped;
}

Error ErrorList::take(StringRef file) {
  if (messages.empty())
    return Error::success();
  std::string text;
  for (const std::string &message : messages)
    text += (text.empty() ? "" : "\n") + file.str() + ": " + message;
  if (dropped)
    text += "\n" + file.str() + ": and " + std::to_string(dropped) + " more";
  messages.clear();
  return createStringError(std::errc::invalid_argument, "%s", text.c_str());
}

} // namespace espalier::onnx
