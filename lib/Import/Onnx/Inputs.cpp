//===- Inputs.cpp - Types of values with sizes bound -*- C++ -*-===//

#include "Inputs.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace llvm;

namespace espalier::onnx {

namespace {

class Binder {
public:
  Binder(const Graph &graph, const ImportOptions &options, ErrorList &errors)
      : graph(graph), options(options), errors(errors) {}

  Binding run() {
    findNames();
    for (const GraphInput &input : graph.inputs)
      bindInput(input);
    checkKeys();
    checkBatch();
    return std::move(binding);
  }

private:
  void findNames();
  void bindInput(const GraphInput &input);
  int64_t sizeOf(const proto::TensorShapeProto::Dimension &dim,
                 const GraphInput &input, int position);
  void checkKeys();
  void checkBatch();

  const Graph &graph;
  const ImportOptions &options;
  ErrorList &errors;
  std::set<std::string> names; // of symbolic dimensions
  std::set<std::string> missing;
  bool batchIsFirst = false; // key "batch" names dimension 0, called otherwise
  Binding binding;
};

} // namespace

void Binder::findNames() {
  for (const GraphInput &input : graph.inputs)
    for (const auto &dim : input.info->type().tensor_type().shape().dim())
      if (!dim.dim_param().empty())
        names.insert(dim.dim_param());
  batchIsFirst = options.dims.count("batch") && !names.count("batch");
}

int64_t Binder::sizeOf(const proto::TensorShapeProto::Dimension &dim,
                       const GraphInput &input, int position) {
  std::string where = "dimension " + std::to_string(position) + " of input " +
                      quoted(input.name);
  int64_t size = dim.dim_value();
  if (!dim.dim_param().empty()) {
    auto given = options.dims.find(dim.dim_param());
    if (given == options.dims.end() && batchIsFirst && position == 0)
      given = options.dims.find("batch");
    if (given == options.dims.end()) {
      if (missing.insert(dim.dim_param()).second)
        errors.add(where + " is called " + quoted(dim.dim_param()) +
                   " and has no size; give one in 'dims', or with --dim " +
                   dim.dim_param() + "=N");
      return 1;
    }
    size = given->second;
    binding.sizes[dim.dim_param()] = size;
  } else if (!dim.has_dim_value()) {
    if (!batchIsFirst || position != 0) {
      errors.add(where + " has neither a size nor a name");
      return 1;
    }
    size = options.dims.at("batch");
  } else if (batchIsFirst && position == 0 &&
             size != options.dims.at("batch")) {
    errors.add(where + " is fixed to " + Twine(size) +
               " in the file, but 'dims' gives batch: " +
               Twine(options.dims.at("batch")) +
               "; export the model with a dynamic batch");
  }
  if (size < 1 || uint64_t(size) > options.limits.dimension) {
    errors.add(where + " has size " + Twine(size) + ", expects 1 to " +
               Twine(options.limits.dimension));
    return 1;
  }
  return size;
}

void Binder::bindInput(const GraphInput &input) {
  const proto::TypeProto &type = input.info->type();
  Shape shape;
  Dtype dtype = toDtype(type.tensor_type().elem_type());
  if (!type.has_tensor_type() || !type.tensor_type().has_shape())
    errors.add("input " + quoted(input.name) + " is no tensor with a shape");
  else if (dtype != Dtype::Bool && dtype != Dtype::Int32 &&
           dtype != Dtype::Int64 && !isFloating(dtype))
    errors.add("not supported: input " + quoted(input.name) + " of data type " +
               (dtype == Dtype::Undefined
                    ? std::to_string(type.tensor_type().elem_type())
                    : dtypeName(dtype).str()));
  const auto &dims = type.tensor_type().shape().dim();
  for (int i = 0; i < dims.size(); ++i)
    shape.push_back(sizeOf(dims[i], input, i));
  if (!elementCount(shape)) {
    errors.add("input " + quoted(input.name) + " of shape " + shapeText(shape) +
               " is too large");
    shape.assign(shape.size(), 1);
  }
  binding.shapes.push_back(shape);
  binding.dtypes.push_back(dtype);
}

void Binder::checkKeys() {
  for (const auto &[key, size] : options.dims) {
    if (names.count(key) || key == "batch")
      continue;
    std::string known;
    for (const std::string &name : names)
      known += (known.empty() ? "" : ", ") + quoted(name);
    errors.add("dims: no dimension of an input is called " + quoted(key) +
               "; there is " + (known.empty() ? "none" : known));
  }
}

void Binder::checkBatch() {
  const GraphInput *first = nullptr;
  for (size_t i = 0; i < binding.shapes.size(); ++i) {
    if (binding.shapes[i].empty())
      continue;
    if (!first) {
      first = &graph.inputs[i];
      binding.batch = binding.shapes[i][0];
    } else if (binding.shapes[i][0] != binding.batch) {
      errors.add("inputs " + quoted(first->name) + " and " +
                 quoted(graph.inputs[i].name) +
                 " differ in dimension 0, which is the batch: " +
                 Twine(binding.batch) + " and " + Twine(binding.shapes[i][0]));
    }
  }
}

Binding bindInputs(const Graph &graph, const ImportOptions &options,
                   ErrorList &errors) {
  return Binder(graph, options, errors).run();
}

std::string contradiction(const proto::ValueInfoProto &declared,
                          const ImportedValue &value, const Binding &binding) {
  if (!declared.type().has_tensor_type() ||
      value.kind != ImportedValue::Kind::Tensor)
    return "";
  const auto &type = declared.type().tensor_type();
  if (type.elem_type() != 0 && type.elem_type() != int32_t(value.dtype) &&
      toDtype(type.elem_type()) != Dtype::Undefined)
    return "is of " + dtypeName(value.dtype).str() + ", but the file says " +
           dtypeName(toDtype(type.elem_type())).str();
  if (!type.has_shape())
    return "";
  const auto &dims = type.shape().dim();
  std::string text;
  bool fits = dims.size() == int(value.shape.size());
  for (int i = 0; i < dims.size(); ++i) {
    int64_t size = -1;
    std::string part = "?";
    if (dims[i].has_dim_value()) {
      size = dims[i].dim_value();
      part = std::to_string(size);
    } else if (!dims[i].dim_param().empty()) {
      part = quoted(dims[i].dim_param());
      auto bound = binding.sizes.find(dims[i].dim_param());
      if (bound != binding.sizes.end()) {
        size = bound->second;
        part += "=" + std::to_string(size);
      }
    }
    text += (text.empty() ? "" : ", ") + part;
    fits &= i >= int(value.shape.size()) || size < 0 || size == value.shape[i];
  }
  if (fits)
    return "";
  return "has shape " + shapeText(value.shape) + ", but the file says [" +
         text + "]";
}

} // namespace espalier::onnx
