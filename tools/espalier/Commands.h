//===- Commands.h - What `espalier` can be asked to do ----------*- C++ -*-===//
//
// Each takes the words after its name and returns the tool's exit status.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_TOOLS_ESPALIER_COMMANDS_H
#define ESPALIER_TOOLS_ESPALIER_COMMANDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace espalier {

int runImport(llvm::ArrayRef<llvm::StringRef> words);
int runPlan(llvm::ArrayRef<llvm::StringRef> words);
int runVerify(llvm::ArrayRef<llvm::StringRef> words);
int runCompile(llvm::ArrayRef<llvm::StringRef> words);
int runTokenize(llvm::ArrayRef<llvm::StringRef> words);

} // namespace espalier

#endif // ESPALIER_TOOLS_ESPALIER_COMMANDS_H
