//===- Tensors.cpp - Data types and tensors of a file -*- C++ -*-===//

#include "Tensors.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Errc.h"
#include "mlir/IR/BuiltinTypes.h"

#include "Errors.h"

using namespace llvm;

namespace espalier::onnx {

namespace {
struct DtypeRow {
  Dtype dtype;
  const char *name;
  unsigned bytes;
};
} // namespace

static const DtypeRow dtypeRows[] = {
    {Dtype::Undefined, "undefined", 0}, {Dtype::Float, "float", 4},
    {Dtype::Uint8, "uint8", 1},         {Dtype::Int8, "int8", 1},
    {Dtype::Uint16, "uint16", 2},       {Dtype::Int16, "int16", 2},
    {Dtype::Int32, "int32", 4},         {Dtype::Int64, "int64", 8},
    {Dtype::String, "string", 0},       {Dtype::Bool, "bool", 1},
    {Dtype::Float16, "float16", 2},     {Dtype::Double, "double", 8},
    {Dtype::Uint32, "uint32", 4},       {Dtype::Uint64, "uint64", 8},
    {Dtype::Bfloat16, "bfloat16", 2},
};

static const DtypeRow &rowOf(int32_t number) {
  for (const DtypeRow &row : dtypeRows)
    if (int32_t(row.dtype) == number)
      return row;
  return dtypeRows[0];
}

Dtype toDtype(int32_t number) { return rowOf(number).dtype; }
StringRef dtypeName(Dtype dtype) { return rowOf(int32_t(dtype)).name; }
unsigned dtypeBytes(Dtype dtype) { return rowOf(int32_t(dtype)).bytes; }

bool isFloating(Dtype dtype) {
  return dtype == Dtype::Float || dtype == Dtype::Double ||
         dtype == Dtype::Float16 || dtype == Dtype::Bfloat16;
}

mlir::Type elementType(mlir::MLIRContext *context, Dtype dtype) {
  using mlir::IntegerType;
  switch (dtype) {
  case Dtype::Float:
    return mlir::Float32Type::get(context);
  case Dtype::Double:
    return mlir::Float64Type::get(context);
  case Dtype::Float16:
    return mlir::Float16Type::get(context);
  case Dtype::Bfloat16:
    return mlir::BFloat16Type::get(context);
  case Dtype::Bool:
    return IntegerType::get(context, 1);
  case Dtype::Uint8:
  case Dtype::Uint16:
  case Dtype::Uint32:
  case Dtype::Uint64:
  case Dtype::Int8:
  case Dtype::Int16:
  case Dtype::Int32:
  case Dtype::Int64:
    return IntegerType::get(context, 8 * dtypeBytes(dtype));
  case Dtype::String:
  case Dtype::Undefined:
    return {};
  }
  return {};
}

Dtype dtypeOf(mlir::Type type) {
  if (type.isF32())
    return Dtype::Float;
  if (type.isF64())
    return Dtype::Double;
  if (type.isF16())
    return Dtype::Float16;
  if (type.isBF16())
    return Dtype::Bfloat16;
  auto integer = dyn_cast<mlir::IntegerType>(type);
  if (!integer)
    return Dtype::Undefined;
  switch (integer.getWidth()) {
  case 1:
    return Dtype::Bool;
  case 8:
    return Dtype::Int8;
  case 16:
    return Dtype::Int16;
  case 32:
    return Dtype::Int32;
  case 64:
    return Dtype::Int64;
  }
  return Dtype::Undefined;
}

std::optional<int64_t> elementCount(ArrayRef<int64_t> shape) {
  constexpr int64_t limit = int64_t(1) << 62;
  int64_t count = 1;
  bool isEmpty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    if (size == 0) {
      isEmpty = true;
      continue;
    }
    if (count > limit / size)
      return std::nullopt;
    count *= size;
  }
  return isEmpty ? 0 : count;
}

static Error invalid(const Twine &message) {
  return createStringError(errc::invalid_argument, "%s", message.str().c_str());
}

namespace {
/// What external_data says.
struct ExternalKeys {
  ExternalRange range;
  std::optional<uint64_t> length;
  std::string checksum;
};
} // namespace

static Error readExternalKeys(const proto::TensorProto &tensor,
                              ExternalKeys &keys) {
  ExternalRange &range = keys.range;
  for (const auto &entry : tensor.external_data()) {
    StringRef key = entry.key(), value = entry.value();
    uint64_t number = 0;
    if (key == "location") {
      range.location = value.str();
    } else if (key == "offset" || key == "length") {
      if (value.getAsInteger(10, number) || number > uint64_t(INT64_MAX))
        return invalid("has external data whose " + key + " is " +
                       quoted(value) + ", no size");
      if (key == "offset")
        range.offset = number;
      else
        keys.length = number;
    } else if (key == "checksum") {
      keys.checksum = value.lower();
    } else {
      return invalid("has external data with the unknown key " + quoted(key));
    }
  }
  std::string problem = checkLocation(range.location);
  if (!problem.empty())
    return invalid("has external data whose location " +
                   quoted(range.location) + " " + problem);
  return Error::success();
}

static Error checkRange(const TensorInfo &info, const ExternalKeys &keys,
                        uint64_t fileSize) {
  const ExternalRange &range = keys.range;
  if (range.offset > fileSize || info.bytes > fileSize - range.offset)
    return invalid("needs bytes " + Twine(range.offset) + " to " +
                   Twine(range.offset + info.bytes) + " of external file " +
                   quoted(range.location) + ", which has " + Twine(fileSize));
  if (!keys.length && fileSize - range.offset != info.bytes)
    return invalid("has external data without a length, and the rest of file " +
                   quoted(range.location) + " is not of its size");
  return Error::success();
}

static Error checkExternal(TensorInfo &info, ExternalFiles &files) {
  ExternalKeys keys;
  if (Error error = readExternalKeys(*info.proto, keys))
    return error;
  if (keys.length && *keys.length != info.bytes)
    return invalid("has external data of " + Twine(*keys.length) +
                   " bytes, but its shape " + shapeText(info.shape) +
                   " needs " + Twine(info.bytes));
  info.external = keys.range;
  info.external.bytes = info.bytes;
  Expected<std::optional<uint64_t>> size = files.size(info.external.location);
  if (!size)
    return size.takeError();
  info.carrier =
      *size ? TensorInfo::Carrier::External : TensorInfo::Carrier::Absent;
  if (!*size)
    return Error::success();
  if (Error error = checkRange(info, keys, **size))
    return error;
  if (keys.checksum.empty())
    return Error::success();
  Expected<std::string> found = files.checksum(info.external.location);
  if (!found)
    return found.takeError();
  if (*found != keys.checksum)
    return invalid("has external file " + quoted(info.external.location) +
                   " with SHA-1 " + *found + ", but the model says " +
                   quoted(keys.checksum));
  return Error::success();
}

/// Number of elements in the typed field that belongs to the data type.
static int64_t typedCount(const proto::TensorProto &tensor, Dtype dtype) {
  switch (dtype) {
  case Dtype::Float:
    return tensor.float_data_size();
  case Dtype::Double:
    return tensor.double_data_size();
  case Dtype::Int64:
    return tensor.int64_data_size();
  case Dtype::Uint32:
  case Dtype::Uint64:
    return tensor.uint64_data_size();
  case Dtype::String:
    return tensor.string_data_size();
  default:
    return tensor.int32_data_size();
  }
}

static int64_t allTypedCounts(const proto::TensorProto &tensor) {
  return int64_t(tensor.float_data_size()) + tensor.double_data_size() +
         tensor.int64_data_size() + tensor.uint64_data_size() +
         tensor.string_data_size() + tensor.int32_data_size();
}

Expected<TensorInfo> checkTensor(const proto::TensorProto &tensor,
                                 ExternalFiles &files) {
  TensorInfo info;
  info.proto = &tensor;
  info.dtype = toDtype(tensor.data_type());
  if (info.dtype == Dtype::Undefined)
    return invalid("has data type " + Twine(tensor.data_type()) +
                   ", which is not supported");
  if (tensor.has_segment())
    return invalid("is a segment of a tensor, which is not supported");
  if (tensor.dims_size() > 64)
    return invalid("has " + Twine(tensor.dims_size()) + " dimensions");
  info.shape.assign(tensor.dims().begin(), tensor.dims().end());
  std::optional<int64_t> count = elementCount(info.shape);
  if (!count || *count > (int64_t(1) << 58))
    return invalid("has shape " + shapeText(info.shape) +
                   ", which is negative or too large");
  info.elements = *count;
  info.bytes = info.elements * dtypeBytes(info.dtype);

  int64_t typed = allTypedCounts(tensor);
  if (tensor.data_location() != 0 && tensor.data_location() != 1)
    return invalid("has data location " + Twine(tensor.data_location()) +
                   ", which is not known");
  bool isExternal = tensor.data_location() == 1;
  bool hasRaw = tensor.has_raw_data() && !tensor.raw_data().empty();
  if (int(isExternal) + int(hasRaw) + int(typed > 0) > 1 ||
      (!isExternal && tensor.external_data_size()))
    return invalid("has its data in two places");
  if (isExternal) {
    if (info.dtype == Dtype::String)
      return invalid("has strings as external data");
    if (Error error = checkExternal(info, files))
      return std::move(error);
    return info;
  }
  uint64_t supplied = typed;
  if (hasRaw || tensor.has_raw_data()) {
    info.carrier = TensorInfo::Carrier::Raw;
    supplied = tensor.raw_data().size();
    if (info.dtype == Dtype::String)
      return invalid("has strings as raw data");
    if (supplied != info.bytes)
      return invalid("has " + Twine(supplied) + " bytes, but its shape " +
                     shapeText(info.shape) + " needs " + Twine(info.bytes));
    return info;
  }
  if (typed != info.elements || typedCount(tensor, info.dtype) != typed)
    return invalid("has " + Twine(typedCount(tensor, info.dtype)) +
                   " elements of its type, but its shape " +
                   shapeText(info.shape) + " needs " + Twine(info.elements));
  return info;
}

/// Appends each value, narrowed to T, as little-endian bytes (the only byte
/// order this compiler runs on).
template <typename T, typename Values>
static std::string packed(const Values &values) {
  std::string result;
  result.reserve(values.size() * sizeof(T));
  for (auto value : values) {
    T narrow = static_cast<T>(value);
    result.append(reinterpret_cast<const char *>(&narrow), sizeof(T));
  }
  return result;
}

static std::string typedBytes(const proto::TensorProto &tensor, Dtype dtype) {
  switch (dtype) {
  case Dtype::Float:
    return packed<float>(tensor.float_data());
  case Dtype::Double:
    return packed<double>(tensor.double_data());
  case Dtype::Int64:
    return packed<int64_t>(tensor.int64_data());
  case Dtype::Uint64:
    return packed<uint64_t>(tensor.uint64_data());
  case Dtype::Uint32:
    return packed<uint32_t>(tensor.uint64_data());
  case Dtype::Int32:
    return packed<int32_t>(tensor.int32_data());
  case Dtype::Uint16:
  case Dtype::Int16:
  case Dtype::Float16:
  case Dtype::Bfloat16:
    return packed<uint16_t>(tensor.int32_data());
  default:
    return packed<uint8_t>(tensor.int32_data());
  }
}

Expected<std::string> tensorBytes(const TensorInfo &tensor,
                                  ExternalFiles &files) {
  switch (tensor.carrier) {
  case TensorInfo::Carrier::Raw:
    return tensor.proto->raw_data();
  case TensorInfo::Carrier::Typed:
    return typedBytes(*tensor.proto, tensor.dtype);
  case TensorInfo::Carrier::External: {
    std::string bytes(tensor.bytes, '\0');
    MutableArrayRef<uint8_t> into(reinterpret_cast<uint8_t *>(bytes.data()),
                                  bytes.size());
    if (Error error = files.read(tensor.external, into))
      return std::move(error);
    return bytes;
  }
  case TensorInfo::Carrier::Absent:
    break;
  }
  return invalid("has no data");
}

} // namespace espalier::onnx
