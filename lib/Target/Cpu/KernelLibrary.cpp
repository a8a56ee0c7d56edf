//===- KernelLibrary.cpp - The kernels' bitcode in this library -----------===//

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBufferRef.h"

#include "CodeGen.h"

using namespace espalier;

// The file that the build made of Kernels/.
__asm__(".section .rodata.espalierKernels, \"a\", @progbits\n"
        ".balign 16\n"
        "espalierKernelsBegin:\n"
        ".incbin \"" ESPALIER_KERNEL_BITCODE "\"\n"
        "espalierKernelsEnd:\n"
        ".previous\n");
extern "C" const char espalierKernelsBegin[], espalierKernelsEnd[];

llvm::Error cpu::linkKernels(llvm::Module &module) {
  llvm::StringRef bitcode(espalierKernelsBegin,
                          espalierKernelsEnd - espalierKernelsBegin);
  auto library = llvm::getLazyBitcodeModule(
      llvm::MemoryBufferRef(bitcode, "kernels"), module.getContext());
  if (!library)
    return library.takeError();
  llvm::StringSet<> ours;
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      ours.insert(function.getName());
  module.setDataLayout((*library)->getDataLayout());
  module.setTargetTriple((*library)->getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(*library),
                                llvm::Linker::Flags::LinkOnlyNeeded))
    return llvm::createStringError("the kernel library does not link");
  for (llvm::Function &function : module) {
    if (function.isDeclaration() || ours.contains(function.getName()))
      continue;
    // The CPU is chosen anew for all functions.
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
    function.removeFnAttr("tune-cpu");
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.setComdat(nullptr);
  }
  for (llvm::Function &function : module)
    if (function.isDeclaration() &&
        function.getName().starts_with("espalierKernel_"))
      return llvm::createStringError("the kernel library has no " +
                                     function.getName());
  return llvm::Error::success();
}
