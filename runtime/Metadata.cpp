//===- Metadata.cpp - What a program says about itself --------------------===//

#include "runtime/Metadata.h"

#include "runtime/Json.h"
#include "runtime/Reduce.h"
#include "runtime/Shard.h"
#include "runtime/Support.h"

#include <cstring>
#include <set>

namespace espalier::runtime {
namespace {

constexpr int64_t mostElements = int64_t{1} << 48;

template <typename Value>
struct Named {
  const char *name;
  Value value;
};

constexpr Named<Role> roles[] = {
    {"parameter", Role::Parameter}, {"frozen", Role::Frozen},
    {"buffer", Role::Buffer},       {"state", Role::State},
    {"input", Role::Input},         {"label", Role::Label},
    {"valid", Role::Valid},         {"rng", Role::Rng},
    {"step", Role::Step},           {"loss", Role::Loss},
    {"grad_norm", Role::GradNorm},  {"lr", Role::Lr},
    {"weight_sum", Role::WeightSum}};

constexpr Named<EspalierDtype> dtypes[] = {
    {"f32", EspalierF32}, {"f64", EspalierF64}, {"bf16", EspalierBf16},
    {"i64", EspalierI64}, {"i32", EspalierI32}, {"i1", EspalierI1}};

constexpr Named<TensorInit::Kind> initKinds[] = {
    {"file", TensorInit::Kind::File},
    {"zeros", TensorInit::Kind::Zeros},
    {"ones", TensorInit::Kind::Ones},
    {"normal", TensorInit::Kind::Normal},
    {"constant", TensorInit::Kind::Constant}};

constexpr Named<FillInfo::With> fills[] = {
    {"positions", FillInfo::With::Positions},
    {"ones", FillInfo::With::Ones},
    {"zeros", FillInfo::With::Zeros}};

constexpr Named<DataInfo::Kind> dataKinds[] = {
    {"tokens", DataInfo::Kind::Tokens}, {"samples", DataInfo::Kind::Samples}};

constexpr Named<uint32_t> tokenDtypes[] = {{"uint16", 2}, {"uint32", 4}};

template <typename Value, size_t count>
Value oneOf(const JsonNode &node, const Named<Value> (&table)[count]) {
  std::string text = node.text();
  for (const Named<Value> &entry : table)
    if (text == entry.name)
      return entry.value;
  if (node.present())
    node.fail("unknown name '" + text + "'");
  return table[0].value;
}

bool isStored(Role role) {
  return role == Role::Parameter || role == Role::Frozen ||
         role == Role::Buffer || role == Role::State;
}

void readInit(const JsonNode &node, TensorInit &init) {
  node.onlyKeys({"kind", "path", "offset", "bytes", "std", "mean", "value"});
  init.kind = oneOf(node.at("kind"), initKinds);
  if (init.kind == TensorInit::Kind::File) {
    init.path = node.at("path").text();
    init.offset = static_cast<uint64_t>(node.at("offset").integer(0));
    init.bytes = static_cast<uint64_t>(node.at("bytes").integer(0));
  } else if (init.kind == TensorInit::Kind::Normal) {
    init.deviation = node.at("std").number();
    init.mean = node.get("mean").number();
  } else if (init.kind == TensorInit::Kind::Constant) {
    init.value = node.at("value").number();
  } else if (init.kind == TensorInit::Kind::Ones) {
    init.value = 1;
  }
}

void readSharding(const JsonNode &node, TensorInfo &tensor) {
  size_t rank = tensor.shape.size();
  tensor.granules.assign(rank, 1);
  tensor.sharding.resize(rank);
  JsonNode sharding = node.get("sharding");
  // An empty list says that no dimension is sharded.
  if (sharding.present() && sharding.size() != 0) {
    if (sharding.size() != rank)
      return sharding.fail("expects a list for each dimension");
    for (size_t dim = 0; dim < rank; ++dim)
      for (size_t i = 0; i < sharding[dim].size(); ++i) {
        JsonNode axis = sharding[dim][i];
        axis.onlyKeys({"axis", "size", "stride"});
        tensor.sharding[dim].push_back({axis.at("axis").text(),
                                        axis.at("size").integer(1, 1 << 20),
                                        axis.at("stride").integer(1, 1 << 20)});
      }
  }
  JsonNode granules = node.get("granules");
  if (!granules.present())
    return;
  if (granules.size() != rank)
    return granules.fail("expects a number for each dimension");
  for (size_t dim = 0; dim < rank; ++dim)
    tensor.granules[dim] = granules[dim].integer(1, mostElements);
}

void readShape(const JsonNode &shape, TensorInfo &tensor) {
  int64_t elements = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t extent = shape[dim].integer(0, mostElements);
    if (extent > 0 && elements > mostElements / extent)
      return shape.fail("is too large");
    elements *= extent;
    tensor.shape.push_back(extent);
  }
}

void readOffsets(const JsonNode &node, int32_t classes, TensorInfo &tensor) {
  auto offset = [](const JsonNode &entry) { return entry.integer(-1); };
  if (!node.isArray()) {
    tensor.offsets.assign(static_cast<size_t>(classes), offset(node));
    return;
  }
  if (node.size() != static_cast<size_t>(classes))
    return node.fail("expects an offset for each class of ranks");
  for (size_t i = 0; i < node.size(); ++i)
    tensor.offsets.push_back(offset(node[i]));
}

void readTensor(const JsonNode &node, int32_t classes, TensorInfo &tensor) {
  node.onlyKeys({"name", "role", "dtype", "shape", "offset", "sharding",
                 "granules", "init", "checkpoint", "alias", "alias_transposed",
                 "range", "ignore"});
  tensor.name = node.at("name").text();
  tensor.role = oneOf(node.at("role"), roles);
  tensor.dtype = oneOf(node.at("dtype"), dtypes);
  readShape(node.at("shape"), tensor);
  readOffsets(node.at("offset"), classes, tensor);
  readSharding(node, tensor);
  if (isStored(tensor.role))
    readInit(node.at("init"), tensor.init);
  else if (node.get("init").present())
    node.fail("only stored tensors have an init");
  tensor.checkpoint = node.get("checkpoint").boolean();
  tensor.alias = node.get("alias").text();
  tensor.aliasTransposed = node.get("alias_transposed").boolean();
  if (tensor.aliasTransposed && tensor.shape.size() != 2)
    node.fail("a transposed alias needs a matrix");
  if (tensor.checkpoint && !isStored(tensor.role))
    node.fail("only stored tensors are in checkpoints");
  if (JsonNode range = node.get("range"); range.present()) {
    if (range.size() != 2)
      return range.fail("expects two numbers");
    tensor.range = {range[0].integer(), range[1].integer()};
  }
  if (JsonNode ignore = node.get("ignore"); ignore.present())
    tensor.ignore = ignore.integer();
}

void readData(const JsonNode &node, DataInfo &data) {
  if (!node.present())
    return;
  data.kind = oneOf(node.at("kind"), dataKinds);
  data.file = node.get("file").text();
  if (data.kind == DataInfo::Kind::Tokens) {
    node.onlyKeys({"kind", "file", "dtype", "input", "labels", "sequence"});
    data.tokenBytes = oneOf(node.at("dtype"), tokenDtypes);
    data.input = node.at("input").text();
    data.labels = node.at("labels").text();
    data.sequence = node.at("sequence").integer(1, mostElements);
  } else {
    node.onlyKeys({"kind", "file", "shuffle"});
    data.shuffle = node.get("shuffle").boolean();
  }
}

/// "/h.0/attn/MatMul_3" is of the kind "MatMul".
std::string kindOf(const std::string &op) {
  std::string kind = op.substr(op.rfind('/') + 1);
  kind = kind.substr(0, kind.find(' '));
  size_t end = kind.find_last_not_of("0123456789_");
  return end == std::string::npos ? op : kind.substr(0, end + 1);
}

void readOps(const JsonNode &ops, Metadata &metadata) {
  for (size_t i = 0; i < ops.size(); ++i) {
    OpInfo op;
    if (ops[i].isString()) {
      op.name = ops[i].text();
      op.kind = kindOf(op.name);
    } else {
      ops[i].onlyKeys({"name", "class"});
      op.name = ops[i].at("name").text();
      op.kind = ops[i].at("class").text();
    }
    metadata.ops.push_back(std::move(op));
  }
}

void readGroups(const JsonNode &groups, int32_t ranks, Metadata &metadata) {
  for (size_t i = 0; i < groups.size(); ++i) {
    std::vector<int32_t> group;
    std::set<int32_t> members;
    for (size_t j = 0; j < groups[i].size(); ++j) {
      group.push_back(static_cast<int32_t>(groups[i][j].integer(0, ranks - 1)));
      members.insert(group.back());
    }
    if (group.empty() || members.size() != group.size())
      groups[i].fail("expects ranks, each of them once");
    metadata.groups.push_back(std::move(group));
  }
}

void readJob(const JsonNode &job, Metadata &metadata) {
  job.onlyKeys({"name", "steps", "global_batch", "micro_batch", "micro_batches",
                "seed", "precision"});
  metadata.jobName = job.at("name").text();
  if (JsonNode steps = job.get("steps"); steps.present())
    metadata.steps = steps.integer(0);
  metadata.globalBatch = job.at("global_batch").integer(1, mostElements);
  metadata.microBatch = job.at("micro_batch").integer(1, mostElements);
  metadata.microBatches = job.at("micro_batches").integer(1, mostElements);
  metadata.seed = job.at("seed").integer();
  metadata.precision = job.get("precision").text();
}

void readLists(const JsonNode &root, Metadata &metadata) {
  JsonNode mesh = root.at("mesh");
  for (size_t i = 0; i < mesh.size(); ++i) {
    mesh[i].onlyKeys({"axis", "size"});
    metadata.mesh.emplace_back(mesh[i].at("axis").text(),
                               mesh[i].at("size").integer(1, 1 << 20));
  }
  JsonNode libraries = root.get("libraries");
  for (size_t i = 0; i < libraries.size(); ++i) {
    libraries[i].onlyKeys({"name", "file", "why"});
    metadata.libraries.push_back({libraries[i].at("name").text(),
                                  libraries[i].at("file").text(),
                                  libraries[i].at("why").text()});
  }
  JsonNode fill = root.get("fill");
  for (size_t i = 0; i < fill.size(); ++i) {
    fill[i].onlyKeys({"input", "with"});
    metadata.fill.push_back(
        {fill[i].at("input").text(), oneOf(fill[i].at("with"), fills)});
  }
}

void readRoot(const JsonNode &root, const EspalierProgram &program,
              Metadata &metadata) {
  root.onlyKeys({"version", "tool", "job", "mesh", "groups", "ops", "libraries",
                 "fingerprints", "tensors", "data", "job_directory",
                 "model_directory", "fill", "predicted", "optimizer"});
  if (root.at("version").integer() != 1)
    root.fail("expects version 1");
  metadata.tool = root.at("tool").text();
  readJob(root.at("job"), metadata);
  readLists(root, metadata);
  readGroups(root.at("groups"), program.ranks, metadata);
  readOps(root.at("ops"), metadata);
  JsonNode fingerprints = root.at("fingerprints");
  fingerprints.onlyKeys({"model", "plan"});
  metadata.modelFingerprint = fingerprints.at("model").text();
  metadata.planFingerprint = fingerprints.get("plan").text();
  JsonNode tensors = root.at("tensors");
  metadata.tensors.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    readTensor(tensors[i], program.classCount, metadata.tensors[i]);
  readData(root.get("data"), metadata.data);
  metadata.jobDirectory = root.get("job_directory").text();
  metadata.modelDirectory = root.get("model_directory").text();
  JsonNode predicted = root.get("predicted");
  predicted.onlyKeys({"step_seconds", "flops_per_step"});
  if (JsonNode seconds = predicted.get("step_seconds"); seconds.present())
    metadata.predictedStepSeconds = seconds.number();
  if (JsonNode flops = predicted.get("flops_per_step"); flops.present())
    metadata.flopsPerStep = flops.number();
}

Status tensorError(const TensorInfo &tensor, const std::string &message) {
  return Status::error("metadata: tensor '" + tensor.name + "': " + message);
}

Status checkPlaces(const EspalierProgram &program, const TensorInfo &tensor) {
  for (int32_t rank = 0; rank < program.ranks; ++rank) {
    int32_t kind = program.classOfRank[rank];
    int64_t offset = tensor.offsets[static_cast<size_t>(kind)];
    if (offset < 0)
      continue;
    uint64_t size = dtypeBytes(tensor.dtype);
    uint64_t bytes =
        static_cast<uint64_t>(shardOf(tensor, rank).localElements) * size;
    uint64_t arena = program.classes[kind].arenaBytes;
    auto begin = static_cast<uint64_t>(offset);
    if (begin % size != 0 || begin > arena || bytes > arena - begin)
      return tensorError(
          tensor, format("%llu bytes at offset %llu do not fit the arena of "
                         "%llu bytes",
                         static_cast<unsigned long long>(bytes),
                         static_cast<unsigned long long>(begin),
                         static_cast<unsigned long long>(arena)));
  }
  return Status::success();
}

bool isScalar(Role role) {
  return role == Role::Step || role == Role::Loss || role == Role::GradNorm ||
         role == Role::Lr || role == Role::WeightSum;
}

Status checkForm(const Metadata &metadata, const TensorInfo &tensor) {
  bool scalar = tensor.elements() == 1;
  bool floating = tensor.dtype == EspalierF32 || tensor.dtype == EspalierF64;
  if (isScalar(tensor.role) && !scalar)
    return tensorError(tensor, "expects a scalar");
  if (tensor.role == Role::Step && tensor.dtype != EspalierI64)
    return tensorError(tensor, "expects i64");
  if (isScalar(tensor.role) && tensor.role != Role::Step && !floating)
    return tensorError(tensor, "expects f32 or f64");
  if (tensor.role == Role::Rng &&
      (tensor.dtype != EspalierI64 || tensor.elements() != 3))
    return tensorError(tensor, "expects [3] of i64");
  bool batched = tensor.role == Role::Input || tensor.role == Role::Label ||
                 tensor.role == Role::Valid;
  if (batched && (tensor.shape.empty() || tensor.shape[0] != metadata.batch))
    return tensorError(
        tensor, "dimension 0 is not the microbatch of all replicas, which is " +
                    std::to_string(metadata.batch));
  if (tensor.role == Role::Valid &&
      (tensor.dtype != EspalierI1 || tensor.shape.size() != 1))
    return tensorError(tensor, "expects one dimension of i1");
  if (tensor.init.kind == TensorInit::Kind::File &&
      tensor.init.bytes != tensor.bytes())
    return tensorError(tensor, "its init has another size than its shape");
  return Status::success();
}

Status checkTensors(const EspalierProgram &program, const Metadata &metadata) {
  std::set<std::string> names;
  for (const TensorInfo &tensor : metadata.tensors) {
    if (isStored(tensor.role) && !names.insert(tensor.name).second)
      return tensorError(tensor, "its name occurs twice");
    if (!tensor.alias.empty() && !names.insert(tensor.alias).second)
      return tensorError(tensor, "its alias occurs twice");
    ESPALIER_TRY(checkForm(metadata, tensor));
    ESPALIER_TRY(checkPlaces(program, tensor));
  }
  if (!metadata.find(Role::Loss))
    return Status::error("metadata: no tensor has the role 'loss'");
  return Status::success();
}

Status checkProgram(const EspalierProgram &program) {
  if (program.abiVersion != ESPALIER_ABI_VERSION)
    return Status::error(
        format("the program was compiled for version %u of the runtime's "
               "interface, but this runtime has version %d",
               program.abiVersion, ESPALIER_ABI_VERSION));
  if (program.ranks < 1 || program.classCount < 1)
    return Status::error("the program has no ranks");
  if (program.ranks > static_cast<int32_t>(maxGroup))
    return Status::error(format("not supported: %d ranks on one host; at most "
                                "%zu",
                                program.ranks, maxGroup));
  for (int32_t rank = 0; rank < program.ranks; ++rank)
    if (program.classOfRank[rank] < 0 ||
        program.classOfRank[rank] >= program.classCount)
      return Status::error("the program has a rank without a class");
  return Status::success();
}

} // namespace

int64_t TensorInfo::elements() const {
  int64_t product = 1;
  for (int64_t extent : shape)
    product *= extent;
  return product;
}

uint64_t TensorInfo::bytes() const {
  return static_cast<uint64_t>(elements()) * dtypeBytes(dtype);
}

const TensorInfo *Metadata::find(Role role) const {
  for (const TensorInfo &tensor : tensors)
    if (tensor.role == role)
      return &tensor;
  return nullptr;
}

uint64_t dtypeBytes(EspalierDtype dtype) {
  switch (dtype) {
  case EspalierF64:
  case EspalierI64:
    return 8;
  case EspalierBf16:
    return 2;
  case EspalierI1:
    return 1;
  case EspalierF32:
  case EspalierI32:
    return 4;
  }
  return 0;
}

const char *dtypeName(EspalierDtype dtype) {
  for (const Named<EspalierDtype> &entry : dtypes)
    if (entry.value == dtype)
      return entry.name;
  return "?";
}

Status parseMetadata(const EspalierProgram &program, Metadata &metadata) {
  ESPALIER_TRY(checkProgram(program));
  JsonDocument document("metadata", program.metadata);
  readRoot(document.root(), program, metadata);
  ESPALIER_TRY(document.status());
  for (const TensorInfo &tensor : metadata.tensors)
    if (metadata.batch == 0 && !tensor.shape.empty() &&
        (tensor.role == Role::Valid || tensor.role == Role::Input))
      metadata.batch = tensor.shape[0];
  if (metadata.batch == 0)
    return Status::error("metadata: the program has no inputs");
  int64_t covering =
      (metadata.globalBatch + metadata.batch - 1) / metadata.batch;
  if (covering != metadata.microBatches)
    return Status::error(
        format("metadata: %lld microbatches of %lld samples do not make a "
               "global batch of %lld",
               static_cast<long long>(metadata.microBatches),
               static_cast<long long>(metadata.batch),
               static_cast<long long>(metadata.globalBatch)));
  return checkTensors(program, metadata);
}

} // namespace espalier::runtime
