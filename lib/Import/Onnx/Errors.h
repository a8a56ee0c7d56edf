//===- Errors.h - Messages about a model -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_ERRORS_H
#define ESPALIER_LIB_IMPORT_ONNX_ERRORS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace espalier::onnx {

/// The name in single quotes, safe to print: control characters and quotes are
/// escaped, a name that is not UTF-8 has its odd bytes as \xNN, and what
/// exceeds 200 characters is cut.
std::string quoted(llvm::StringRef name);

/// "AxBxC", or "scalar".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// Collects what is wrong with a model, so that the user sees it all at once.
/// Keeps the first 100 messages and counts the rest.
class ErrorList {
public:
  void add(const llvm::Twine &message);
  bool empty() const { return messages.empty(); }
  const std::vector<std::string> &all() const { return messages; }

  /// One error with a line per message, each behind `file`; success if empty.
  llvm::Error take(llvm::StringRef file);

private:
  static constexpr size_t limit = 100;
  std::vector<std::string> messages;
  size_t dropped = 0;
};

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_ERRORS_H
