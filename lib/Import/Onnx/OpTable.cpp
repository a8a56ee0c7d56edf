//===- OpTable.cpp - Which ops are supported, by opset -*- C++ -*-===//
//
// A row holds while an op's form does: a new version of ONNX that only adds
// data types continues the row. lib/Import/README.md shows the table, which a
// test compares with this one.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include "Handlers.h"

using namespace llvm;

namespace espalier::onnx {

constexpr int64_t last = maxOpset;
constexpr uint32_t none = 0, first = 1, both = 3, all = ~0u;
constexpr const char *noAttributes = "";
constexpr const char *reduceAttributes = "keepdims:i noop_with_empty_axes:i";

// clang-format off
static const OpRow opRows[] = {
    // name, since, until, inputs, outputs, attributes, differentiable, handler
    // Elementwise, one operand.
    {"Abs", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Celu", 12, last, 1, 1, 1, "alpha:f", first, emitUnary},
    {"Ceil", 13, last, 1, 1, 1, noAttributes, none, emitUnary},
    {"Cos", 7, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Cosh", 9, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Elu", 6, last, 1, 1, 1, "alpha:f", first, emitUnary},
    {"Erf", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Exp", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Floor", 13, last, 1, 1, 1, noAttributes, none, emitUnary},
    {"Gelu", 20, last, 1, 1, 1, "approximate:s", first, emitUnary},
    {"HardSigmoid", 6, last, 1, 1, 1, "alpha:f beta:f", first, emitUnary},
    {"HardSwish", 14, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"LeakyRelu", 6, last, 1, 1, 1, "alpha:f", first, emitUnary},
    {"Log", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Mish", 18, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Neg", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Reciprocal", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Relu", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Round", 11, last, 1, 1, 1, noAttributes, none, emitUnary},
    {"Selu", 6, last, 1, 1, 1, "alpha:f gamma:f", first, emitUnary},
    {"Sigmoid", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Sign", 13, last, 1, 1, 1, noAttributes, none, emitUnary},
    {"Sin", 7, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Sinh", 9, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Softplus", 1, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Softsign", 1, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Sqrt", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Swish", 24, last, 1, 1, 1, "alpha:f", first, emitUnary},
    {"Tan", 7, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"Tanh", 13, last, 1, 1, 1, noAttributes, first, emitUnary},
    {"ThresholdedRelu", 10, last, 1, 1, 1, "alpha:f", first, emitUnary},
    {"Clip", 13, last, 1, 3, 1, noAttributes, first, emitClip},
    {"Cast", 13, last, 1, 1, 1, "to:i saturate:i round_mode:s", first, emitCast},
    {"CastLike", 15, last, 2, 2, 1, "saturate:i round_mode:s", first, emitCastLike},
    {"IsInf", 10, last, 1, 1, 1, "detect_negative:i detect_positive:i", none, emitIsInf},
    {"IsNaN", 13, last, 1, 1, 1, noAttributes, none, emitIsNan},
    {"Not", 1, last, 1, 1, 1, noAttributes, none, emitLogic},
    // Elementwise, several operands.
    {"Add", 13, last, 2, 2, 1, noAttributes, both, emitArithmetic},
    {"Div", 13, last, 2, 2, 1, noAttributes, both, emitArithmetic},
    {"Max", 13, last, 1, -1, 1, noAttributes, all, emitArithmetic},
    {"Mean", 13, last, 1, -1, 1, noAttributes, all, emitArithmetic},
    {"Min", 13, last, 1, -1, 1, noAttributes, all, emitArithmetic},
    {"Mul", 13, last, 2, 2, 1, noAttributes, both, emitArithmetic},
    {"Sub", 13, last, 2, 2, 1, noAttributes, both, emitArithmetic},
    {"Sum", 13, last, 1, -1, 1, noAttributes, all, emitArithmetic},
    {"Mod", 13, last, 2, 2, 1, "fmod:i", none, emitMod},
    {"Pow", 13, last, 2, 2, 1, noAttributes, both, emitPow},
    {"PRelu", 9, last, 2, 2, 1, noAttributes, both, emitPrelu},
    {"And", 7, last, 2, 2, 1, noAttributes, none, emitLogic},
    {"Or", 7, last, 2, 2, 1, noAttributes, none, emitLogic},
    {"Xor", 7, last, 2, 2, 1, noAttributes, none, emitLogic},
    {"Equal", 13, last, 2, 2, 1, noAttributes, none, emitCompare},
    {"Greater", 13, last, 2, 2, 1, noAttributes, none, emitCompare},
    {"GreaterOrEqual", 12, last, 2, 2, 1, noAttributes, none, emitCompare},
    {"Less", 13, last, 2, 2, 1, noAttributes, none, emitCompare},
    {"LessOrEqual", 12, last, 2, 2, 1, noAttributes, none, emitCompare},
    {"Where", 9, last, 3, 3, 1, noAttributes, 6, emitWhere},
    // Shape and order.
    {"DepthToSpace", 13, last, 1, 1, 1, "blocksize:i mode:s", first, emitDepthToSpace},
    {"Expand", 13, last, 2, 2, 1, noAttributes, first, emitExpand},
    {"Flatten", 13, last, 1, 1, 1, "axis:i", first, emitFlatten},
    {"Identity", 1, last, 1, 1, 1, noAttributes, first, emitIdentity},
    {"Reshape", 13, last, 2, 2, 1, "allowzero:i", first, emitReshape},
    {"Shape", 13, last, 1, 1, 1, "start:i end:i", none, emitShape},
    {"Size", 13, last, 1, 1, 1, noAttributes, none, emitSize},
    {"SpaceToDepth", 13, last, 1, 1, 1, "blocksize:i", first, emitSpaceToDepth},
    {"Squeeze", 13, last, 1, 2, 1, noAttributes, first, emitSqueeze},
    {"Tile", 13, last, 2, 2, 1, noAttributes, first, emitTile},
    {"Transpose", 13, last, 1, 1, 1, "perm:is", first, emitTranspose},
    {"Unsqueeze", 13, last, 2, 2, 1, noAttributes, first, emitUnsqueeze},
    // Parts.
    {"Concat", 13, last, 1, -1, 1, "axis:i", all, emitConcat},
    {"ConcatFromSequence", 11, last, 1, 1, 1, "axis:i new_axis:i", first, emitConcatFromSequence},
    {"Pad", 13, last, 2, 4, 1, "mode:s", first, emitPad},
    {"SequenceAt", 11, last, 2, 2, 1, noAttributes, first, emitSequenceAt},
    {"SequenceConstruct", 11, last, 1, -1, 1, noAttributes, all, emitSequenceConstruct},
    {"Slice", 13, last, 3, 5, 1, noAttributes, first, emitSlice},
    {"Split", 13, last, 1, 2, -1, "axis:i num_outputs:i", first, emitSplit},
    {"SplitToSequence", 11, last, 1, 2, 1, "axis:i keepdims:i", first, emitSplitToSequence},
    // Constants.
    {"Constant", 13, last, 0, 0, 1, "value:t value_float:f value_floats:fs value_int:i value_ints:is", none, emitConstant},
    {"ConstantOfShape", 9, last, 1, 1, 1, "value:t", none, emitConstantOfShape},
    {"CumSum", 14, last, 2, 2, 1, "exclusive:i reverse:i", none, emitCumSum},
    {"EyeLike", 9, last, 1, 1, 1, "dtype:i k:i", none, emitEyeLike},
    {"OneHot", 11, last, 3, 3, 1, "axis:i", none, emitOneHot},
    {"Range", 11, last, 3, 3, 1, noAttributes, none, emitRange},
    {"Trilu", 14, last, 1, 2, 1, "upper:i", first, emitTrilu},
    // Indices.
    {"Gather", 13, last, 2, 2, 1, "axis:i", first, emitGather},
    {"GatherElements", 13, last, 2, 2, 1, "axis:i", none, emitGatherElements},
    {"GatherND", 13, last, 2, 2, 1, "batch_dims:i", first, emitGatherNd},
    // Reductions.
    {"ReduceL1", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceL1", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceL2", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceL2", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceLogSum", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceLogSum", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceLogSumExp", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceLogSumExp", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceMax", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceMax", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceMean", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceMean", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceMin", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceMin", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceProd", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceProd", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceSum", 13, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"ReduceSumSquare", 13, 17, 1, 1, 1, "axes:is keepdims:i", first, emitReduce},
    {"ReduceSumSquare", 18, last, 1, 2, 1, reduceAttributes, first, emitReduce},
    {"LogSoftmax", 13, last, 1, 1, 1, "axis:i", first, emitLogSoftmax},
    {"Softmax", 13, last, 1, 1, 1, "axis:i", first, emitSoftmax},
    // Products.
    {"Einsum", 12, last, 1, 2, 1, "equation:s", all, emitEinsum},
    {"Gemm", 13, last, 2, 3, 1, "alpha:f beta:f transA:i transB:i", all, emitGemm},
    {"MatMul", 13, last, 2, 2, 1, noAttributes, both, emitMatMul},
    // Windows.
    {"AveragePool", 11, 18, 1, 1, 1, "auto_pad:s ceil_mode:i count_include_pad:i kernel_shape:is pads:is strides:is", first, emitAveragePool},
    {"AveragePool", 19, last, 1, 1, 1, "auto_pad:s ceil_mode:i count_include_pad:i dilations:is kernel_shape:is pads:is strides:is", first, emitAveragePool},
    {"Conv", 11, last, 2, 3, 1, "auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is", all, emitConv},
    {"GlobalAveragePool", 1, last, 1, 1, 1, noAttributes, first, emitGlobalAveragePool},
    {"GlobalMaxPool", 1, last, 1, 1, 1, noAttributes, first, emitGlobalMaxPool},
    {"MaxPool", 12, last, 1, 1, 1, "auto_pad:s ceil_mode:i dilations:is kernel_shape:is pads:is storage_order:i strides:is", first, emitMaxPool},
    // Norms.
    {"BatchNormalization", 9, 13, 5, 5, 1, "epsilon:f momentum:f", 7, emitBatchNorm},
    {"BatchNormalization", 14, last, 5, 5, 3, "epsilon:f momentum:f training_mode:i", 7, emitBatchNorm},
    {"GroupNormalization", 18, last, 3, 3, 1, "epsilon:f num_groups:i stash_type:i", all, emitGroupNorm},
    {"InstanceNormalization", 6, last, 3, 3, 1, "epsilon:f", all, emitInstanceNorm},
    {"LayerNormalization", 17, last, 2, 3, 3, "axis:i epsilon:f stash_type:i", all, emitLayerNorm},
    {"LpNormalization", 1, last, 1, 1, 1, "axis:i p:i", first, emitLpNorm},
    {"RMSNormalization", 23, last, 2, 2, 1, "axis:i epsilon:f stash_type:i", all, emitRmsNorm},
    // Transformers.
    {"Attention", 23, last, 3, 7, 4, "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f softmax_precision:i", 7, emitAttention},
    {"Dropout", 13, last, 1, 3, 2, "seed:i", first, emitDropout},
    {"RotaryEmbedding", 23, last, 3, 4, 1, "interleaved:i num_heads:i rotary_embedding_dim:i", first, emitRotaryEmbedding},
};
// clang-format on

using RowList = SmallVector<const OpRow *, 2>;

static const StringMap<RowList> &rowsByName() {
  static const StringMap<RowList> rows = [] {
    StringMap<RowList> map;
    for (const OpRow &row : opRows)
      map[row.name].push_back(&row);
    return map;
  }();
  return rows;
}

const OpRow *findOp(StringRef name, int64_t version) {
  auto rows = rowsByName().find(name);
  if (rows == rowsByName().end())
    return nullptr;
  for (const OpRow *row : rows->second)
    if (version >= row->since && version <= row->until)
      return row;
  return nullptr;
}

ArrayRef<OpRow> allOps() { return opRows; }

std::string supportedVersions(StringRef name) {
  auto rows = rowsByName().find(name);
  if (rows == rowsByName().end())
    return "";
  return std::to_string(rows->second.front()->since) + " to " +
         std::to_string(rows->second.back()->until);
}

std::optional<AttributeType> attributeType(const OpRow &row,
                                           StringRef attribute) {
  StringRef text = row.attributes;
  while (!text.empty()) {
    auto [entry, rest] = text.split(' ');
    text = rest;
    auto [name, type] = entry.split(':');
    if (name != attribute)
      continue;
    return StringSwitch<AttributeType>(type)
        .Case("f", AttributeType::Float)
        .Case("i", AttributeType::Int)
        .Case("s", AttributeType::String)
        .Case("t", AttributeType::Tensor)
        .Case("fs", AttributeType::Floats)
        .Case("is", AttributeType::Ints)
        .Default(AttributeType::Strings);
  }
  return std::nullopt;
}

} // namespace espalier::onnx
