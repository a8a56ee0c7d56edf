//===- Checks.h - Rules of form for parts of a file -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_CHECKS_H
#define ESPALIER_LIB_IMPORT_ONNX_CHECKS_H

#include <map>
#include <string>

#include "Errors.h"
#include "Graph.h"
#include "ModelFile.h"

namespace espalier::onnx {

/// Functions of a model by domain, name and overload.
using FunctionKey = std::tuple<std::string, std::string, std::string>;
using FunctionMap = std::map<FunctionKey, const proto::FunctionProto *>;

/// The default domain has two spellings.
llvm::StringRef canonicalDomain(llvm::StringRef domain);

/// Versions by domain; a domain given twice is an error.
using OpsetMap = std::map<std::string, int64_t>;
OpsetMap readOpsets(
    const google::protobuf::RepeatedPtrField<proto::OperatorSetIdProto> &list,
    const llvm::Twine &where, ErrorList &errors);

/// The key of the function that a node calls.
FunctionKey functionKey(const proto::NodeProto &node);

/// All functions, checked: no duplicates, no cycle of calls.
FunctionMap readFunctions(const proto::ModelProto &model, ErrorList &errors);

/// What is wrong with a name (too long, NUL), or "".
std::string checkName(llvm::StringRef name);

/// What is wrong with an attribute's payload, or "": its type is known and it
/// has this payload alone.
std::string checkAttribute(const proto::AttributeProto &attribute);

/// "node 'x' (Op)"
std::string nodeText(const Node &node);

/// Checks live nodes against the op table: known op in this version, number of
/// inputs and outputs, types of attributes.
void checkOps(const Graph &graph, const std::vector<bool> &live,
              ErrorList &errors);

/// Adds remarks on what the importer ignores, fields unknown to it included.
void remarkIgnored(const proto::ModelProto &model,
                   std::vector<std::string> &remarks);

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_CHECKS_H
