//===- ShardingRule.cpp - How an op's dimensions correspond ---------------===//

#include "dialects/Interfaces/ShardingRule.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace espalier;

#include "dialects/Interfaces/ReductionKind.cpp.inc"

/// Returns i, j, ... z, a, ... h, then i1, j1 and so on.
static std::string nameOf(unsigned factor) {
  std::string name(1, 'a' + (factor + 8) % 26);
  return factor < 26 ? name : name + std::to_string(factor / 26);
}

static void printTensors(llvm::raw_ostream &os,
                         llvm::ArrayRef<TensorFactors> tensors) {
  llvm::interleave(
      tensors, os,
      [&](const TensorFactors &dims) {
        for (const DimFactors &dim : dims) {
          if (dim.size() != 1)
            os << (dim.empty() ? "1" : "(");
          for (unsigned factor : dim)
            os << nameOf(factor);
          if (dim.size() > 1)
            os << ")";
        }
      },
      ",");
}

static void printKind(llvm::raw_ostream &os, const ShardingRule &rule,
                      FactorKind kind, llvm::StringRef title) {
  llvm::SmallVector<std::string> names;
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    if (factor.kind != kind)
      continue;
    names.push_back(nameOf(number));
    if (kind == FactorKind::Reduced)
      names.back() += ":" + stringifyReductionKind(factor.reduction).str();
  }
  if (!names.empty())
    os << " " << title << "={" << llvm::join(names, ",") << "}";
}

std::string ShardingRule::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTensors(os, operands);
  os << "->";
  printTensors(os, results);
  printKind(os, *this, FactorKind::Reduced, "reduced");
  printKind(os, *this, FactorKind::Whole, "whole");
  return text;
}
