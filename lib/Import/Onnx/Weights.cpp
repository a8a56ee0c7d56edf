//===- Weights.cpp - Bytes of initializers -*- C++ -*-===//

#include "Weights.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

#include <cstring>
#include <map>

using namespace llvm;

namespace espalier::onnx {

/// Sums the bits of elements of type T and finds whether all are `first`.
template <typename T>
static void addElements(ArrayRef<uint8_t> bytes, Digest &digest, T &first,
                        bool isStart) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T element;
    std::memcpy(&element, bytes.data() + at, sizeof(T));
    if (isStart && at == 0)
      first = element;
    digest.isUniform &= element == first;
    // Mixed, so that sums of different elements differ.
    uint64_t mixed = element * 0x9E3779B97F4A7C15ull;
    digest.sum += mixed ^ (mixed >> 29);
  }
}

/// Adds a block of whole elements.
static void addBlock(ArrayRef<uint8_t> bytes, unsigned elementBytes,
                     Digest &digest, uint64_t &first, bool isStart) {
  digest.hash = digest.hash * 0x9E3779B97F4A7C15ull + xxh3_64bits(bytes);
  auto add = [&](auto kind) {
    auto typed = static_cast<decltype(kind)>(first);
    addElements(bytes, digest, typed, isStart);
    first = typed;
  };
  switch (elementBytes) {
  case 8:
    return add(uint64_t());
  case 4:
    return add(uint32_t());
  case 2:
    return add(uint16_t());
  default:
    return add(uint8_t());
  }
}

static Expected<Digest> digestTensor(const TensorInfo &tensor,
                                     ExternalFiles &files) {
  Digest digest;
  if (tensor.carrier == TensorInfo::Carrier::Absent ||
      tensor.dtype == Dtype::String)
    return digest;
  digest.isKnown = true;
  digest.isUniform = true;
  uint64_t first = 0;
  unsigned size = dtypeBytes(tensor.dtype);
  if (tensor.carrier != TensorInfo::Carrier::External) {
    std::string typed;
    StringRef bytes = tensor.proto->raw_data();
    if (tensor.carrier == TensorInfo::Carrier::Typed) {
      Expected<std::string> content = tensorBytes(tensor, files);
      if (!content)
        return content.takeError();
      typed = std::move(*content);
      bytes = typed;
    }
    addBlock(arrayRefFromStringRef(bytes), size, digest, first, true);
    return digest;
  }
  constexpr uint64_t block = 4 << 20;
  std::vector<uint8_t> buffer(std::min(block, tensor.bytes));
  for (uint64_t done = 0; done < tensor.bytes;) {
    uint64_t count = std::min(block, tensor.bytes - done);
    MutableArrayRef<uint8_t> part(buffer.data(), count);
    ExternalRange range{tensor.external.location, tensor.external.offset + done,
                        count};
    if (Error error = files.read(range, part))
      return std::move(error);
    addBlock(part, size, digest, first, done == 0);
    done += count;
  }
  return digest;
}

Expected<std::vector<Digest>> digestWeights(const Graph &graph,
                                            ExternalFiles &files) {
  std::vector<Digest> digests;
  for (const Initializer &initializer : graph.initializers) {
    Expected<Digest> digest = digestTensor(initializer.tensor, files);
    if (!digest)
      return digest.takeError();
    digests.push_back(*digest);
  }
  return digests;
}

std::string fingerprint(const ModelFile &file, ArrayRef<Digest> digests) {
  std::vector<uint64_t> numbers{file.hash};
  for (const Digest &digest : digests) {
    numbers.push_back(digest.isKnown);
    numbers.push_back(digest.hash);
  }
  XXH128_hash_t hash = xxh3_128bits(
      {reinterpret_cast<const uint8_t *>(numbers.data()), numbers.size() * 8});
  return utohexstr(hash.high64, /*LowerCase=*/true, 16) +
         utohexstr(hash.low64, /*LowerCase=*/true, 16);
}

WeightSource weightSource(const ModelFile &file, const Initializer &initializer,
                          ExternalFiles &files) {
  const TensorInfo &tensor = initializer.tensor;
  WeightSource source;
  source.bytes = tensor.bytes;
  switch (tensor.carrier) {
  case TensorInfo::Carrier::External:
    source.kind = WeightSource::Kind::File;
    source.file = tensor.external.location;
    source.offset = tensor.external.offset;
    break;
  case TensorInfo::Carrier::Raw:
    source.kind = WeightSource::Kind::File;
    source.file = file.name;
    source.offset = file.rawOffsets[initializer.index];
    break;
  case TensorInfo::Carrier::Typed:
    source.kind = WeightSource::Kind::Bytes;
    if (Expected<std::string> bytes = tensorBytes(tensor, files))
      source.content = std::move(*bytes);
    else
      consumeError(bytes.takeError());
    break;
  case TensorInfo::Carrier::Absent:
    source.file = tensor.external.location;
    source.offset = tensor.external.offset;
    break;
  }
  return source;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static bool isTransposeOf(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == 2 && b.size() == 2 && a[0] == b[1] && a[1] == b[0];
}

static std::optional<size_t> findInitializer(const Graph &graph,
                                             StringRef name) {
  for (size_t i = 0; i < graph.initializers.size(); ++i)
    if (graph.initializers[i].name == name)
      return i;
  return std::nullopt;
}

static std::optional<TiedPair> checkPair(const Graph &graph,
                                         ArrayRef<Digest> digests, size_t a,
                                         size_t b, ErrorList &errors) {
  const Initializer &left = graph.initializers[a],
                    &right = graph.initializers[b];
  std::string text = "tied: " + quoted(left.name) + " of shape " +
                     shapeText(left.tensor.shape) + " and " +
                     quoted(right.name) + " of shape " +
                     shapeText(right.tensor.shape);
  bool isSame = left.tensor.shape == right.tensor.shape;
  bool isTransposed = isTransposeOf(left.tensor.shape, right.tensor.shape);
  if (a == b || left.tensor.dtype != right.tensor.dtype ||
      (!isSame && !isTransposed)) {
    errors.add(text + " cannot be one parameter");
    return std::nullopt;
  }
  bool isKnown = digests[a].isKnown && digests[b].isKnown;
  bool isEqual = digests[a].hash == digests[b].hash;
  if (isKnown && digests[a].sum != digests[b].sum) {
    errors.add(text + " hold different values");
    return std::nullopt;
  }
  // A square pair is transposed if only the order of the elements differs.
  return TiedPair{a, b, isSame ? isTransposed && isKnown && !isEqual : true};
}

std::vector<TiedPair> findTiedPairs(const Graph &graph,
                                    ArrayRef<Digest> digests,
                                    const ImportOptions &options,
                                    ErrorList &errors) {
  std::vector<TiedPair> pairs;
  for (const auto &[first, second] : options.tied) {
    auto a = findInitializer(graph, first), b = findInitializer(graph, second);
    for (auto [name, found] : {std::pair(first, a), std::pair(second, b)})
      if (!found)
        errors.add("tied: there is no initializer " + quoted(name));
    if (!a || !b)
      continue;
    if (auto pair = checkPair(graph, digests, *a, *b, errors))
      pairs.push_back(*pair);
  }
  return pairs;
}

void remarkCopies(const Graph &graph, ArrayRef<Digest> digests,
                  ArrayRef<InitializerPlan> plans,
                  std::vector<std::string> &remarks) {
  std::map<std::pair<uint64_t, int64_t>, size_t> seen;
  for (size_t i = 0; i < plans.size(); ++i) {
    const Initializer &initializer = graph.initializers[i];
    if (plans[i].role != InitializerPlan::Role::Parameter ||
        !digests[i].isKnown || digests[i].isUniform)
      continue;
    auto [first, isNew] =
        seen.try_emplace({digests[i].sum, initializer.tensor.elements}, i);
    if (isNew)
      continue;
    const Initializer &other = graph.initializers[first->second];
    bool isSame = digests[i].hash == digests[first->second].hash;
    if (!isSame && !isTransposeOf(initializer.tensor.shape, other.tensor.shape))
      continue;
    remarks.push_back("initializers " + quoted(other.name) + " and " +
                      quoted(initializer.name) +
                      " hold the same values and are trained apart; if they "
                      "are one parameter, say so with 'tied'");
  }
}

} // namespace espalier::onnx
