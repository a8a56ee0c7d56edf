//===- DistAttrs.cpp - Text and verifiers of meshes and shardings ---------===//

#include "dialects/Dist/Dist.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::dist;

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttrs.cpp.inc"

void DistDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Dist/DistAttrs.cpp.inc"
      >();
}

LogicalResult MeshAxisAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StringRef name, int64_t size,
                                   StringRef link) {
  if (name.empty() || size < 1)
    return emitError()
           << "expects an axis with a name and a positive size, but "
              "got '"
           << name << "' = " << size;
  return success();
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<ArrayAttr> dims,
                                   ArrayRef<StringAttr> partialAxes,
                                   ArrayRef<ReductionKind> partialKinds) {
  if (partialAxes.size() != partialKinds.size())
    return emitError() << "expects a reduction for each partial axis";
  llvm::StringSet<> seen;
  auto isNew = [&](Attribute axis) {
    auto name = dyn_cast<StringAttr>(axis);
    return name && seen.insert(name.getValue()).second;
  };
  for (ArrayAttr dim : dims)
    if (!llvm::all_of(dim, isNew)) // (C1)
      return emitError() << "expects each axis once, by its name, but got "
                         << dim;
  if (!llvm::all_of(partialAxes, isNew)) // (C1)
    return emitError() << "expects no partial axis to occur twice";
  return success();
}

/// `["dp", "tp"]`.
static ParseResult parseAxes(AsmParser &parser,
                             SmallVectorImpl<Attribute> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    std::string name;
    if (failed(parser.parseString(&name)))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  });
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SmallVector<ArrayAttr> dims;
  SmallVector<StringAttr> partialAxes;
  SmallVector<ReductionKind> partialKinds;
  auto parseDim = [&]() -> ParseResult {
    SmallVector<Attribute> axes;
    if (failed(parseAxes(parser, axes)))
      return failure();
    dims.push_back(ArrayAttr::get(parser.getContext(), axes));
    return success();
  };
  auto parsePartial = [&]() -> ParseResult {
    std::string name;
    StringRef kindName;
    if (failed(parser.parseString(&name)) || failed(parser.parseColon()) ||
        failed(parser.parseKeyword(&kindName)))
      return failure();
    std::optional<ReductionKind> kind = symbolizeReductionKind(kindName);
    if (!kind)
      return parser.emitError(parser.getCurrentLocation(),
                              "expects sum, max, min or prod");
    partialAxes.push_back(StringAttr::get(parser.getContext(), name));
    partialKinds.push_back(*kind);
    return success();
  };
  if (failed(parser.parseLess()) ||
      failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                            parseDim)))
    return {};
  if (succeeded(parser.parseOptionalKeyword("partial")) &&
      failed(parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                            parsePartial)))
    return {};
  if (failed(parser.parseGreater()))
    return {};
  return parser.getChecked<ShardingAttr>(parser.getContext(), dims, partialAxes,
                                         partialKinds);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  auto &os = printer.getStream();
  os << "<[";
  llvm::interleaveComma(getDims(), os, [&](ArrayAttr dim) {
    os << "[";
    llvm::interleaveComma(dim, os);
    os << "]";
  });
  os << "]";
  if (!getPartialAxes().empty()) {
    os << " partial {";
    llvm::interleaveComma(llvm::zip(getPartialAxes(), getPartialKinds()), os,
                          [&](auto entry) {
                            os << std::get<0>(entry) << ": "
                               << stringifyReductionKind(std::get<1>(entry));
                          });
    os << "}";
  }
  os << ">";
}
