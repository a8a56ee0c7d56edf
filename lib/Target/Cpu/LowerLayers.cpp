//===- LowerLayers.cpp - Layers to kernels of the library -----------------===//
//
// Kernels are named after their op, then the type they compute in, then that of
// their indices. Kernels/Kernels.h has their parameters.
//
//===----------------------------------------------------------------------===//

#include "dialects/Nn/NnShapes.h"

#include "llvm/ADT/TypeSwitch.h"

#include "Lowering.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

static std::string named(StringRef kernel, const View &real) {
  return (kernel + (real.elementType.isF64() ? "_f64" : "_f32")).str();
}

static std::string named(StringRef kernel, const View &real,
                         const View &index) {
  return named(kernel, real) +
         (index.elementType.isInteger(32) ? "_i32" : "_i64");
}

/// Rows and columns of a tensor that is a stack of rows.
static std::pair<int64_t, int64_t> rowsOf(const View &view) {
  int64_t columns = view.shape.empty() ? 1 : view.shape.back();
  return {columns ? view.elements() / columns : 0, columns};
}

//===----------------------------------------------------------------------===//
// Convolutions and pools, as of three spatial dimensions
//===----------------------------------------------------------------------===//

namespace {

/// Values for spatial dimensions, with `neutral` for those that lack.
void appendSpatial(SmallVectorImpl<int64_t> &integers, ArrayRef<int64_t> values,
                   int64_t neutral) {
  integers.append(3 - values.size(), neutral);
  integers.append(values.begin(), values.end());
}

template <typename OpT>
void appendWindow(SmallVectorImpl<int64_t> &integers, OpT op,
                  ArrayRef<int64_t> kernel) {
  appendSpatial(integers, kernel, 1);
  appendSpatial(integers, op.getStrides(), 1);
  appendSpatial(integers, op.getPadsLow(), 0);
  appendSpatial(integers, op.getDilations(), 1);
}

} // namespace

/// `image`, `filter` and `result` are the convolution's, whichever of them this
/// op computes.
template <typename OpT>
void Lowering::lowerConv(OpT op, StringRef kernel, Value image, Value filter,
                         Value result) {
  auto view = [&](Value value) {
    return value == op.getResult() ? kernelResult(value) : kernelOperand(value);
  };
  View x = view(image), w = view(filter), y = view(result);
  ArrayRef<int64_t> xs = nn::shapeOf(image), ws = nn::shapeOf(filter),
                    ys = nn::shapeOf(result);
  SmallVector<int64_t> integers = {xs[0], xs[1], ys[1],
                                   int64_t(op.getGroups())};
  appendSpatial(integers, xs.drop_front(2), 1);
  appendSpatial(integers, ys.drop_front(2), 1);
  appendWindow(integers, op, ws.drop_front(2));
  // The patches of one sample and group as a matrix.
  int64_t columns = ws[1];
  for (int64_t size : ws.drop_front(2))
    columns *= size;
  for (int64_t size : ys.drop_front(2))
    columns *= size;
  program.layout.callsGemm |= !x.elementType.isF64();
  launch(named(kernel, x), {x, w, y, temporary({columns}, x.elementType)},
         integers);
}

template <typename OpT>
void Lowering::lowerPool(OpT op, StringRef kernel, Value image, Value pooled,
                         int64_t flag) {
  SmallVector<Operand> buffers;
  for (Value operand : op->getOperands())
    buffers.push_back(kernelOperand(operand));
  buffers.push_back(kernelResult(op.getResult()));
  ArrayRef<int64_t> xs = nn::shapeOf(image), ys = nn::shapeOf(pooled);
  SmallVector<int64_t> integers = {xs[0] * xs[1]};
  appendSpatial(integers, xs.drop_front(2), 1);
  appendSpatial(integers, ys.drop_front(2), 1);
  appendWindow(integers, op, op.getKernel());
  appendSpatial(integers, op.getPadsHigh(), 0);
  integers.push_back(flag);
  launch(named(kernel, *buffers[0]), buffers, integers);
}

//===----------------------------------------------------------------------===//
// Which op is which kernel
//===----------------------------------------------------------------------===//

/// A kernel that goes over rows; the first buffer says how many and how long.
void Lowering::launchRows(StringRef kernel, ArrayRef<Operand> buffers,
                          ArrayRef<double> reals, ArrayRef<int64_t> more) {
  auto [rows, columns] = rowsOf(*buffers[0]);
  SmallVector<int64_t> integers = {rows, columns};
  integers.append(more.begin(), more.end());
  launch(named(kernel, *buffers[0]), buffers, integers, reals);
}

bool Lowering::lowerRows(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::SoftmaxOp op) {
        launchRows("softmax",
                   {kernelOperand(op.getInput()), kernelResult(op.getResult())},
                   {}, {op.getZeroMaskedRows()});
        return true;
      })
      .Case([&](nn::SoftmaxGradOp op) {
        launchRows("softmax_grad",
                   {kernelOperand(op.getY()), kernelOperand(op.getDy()),
                    kernelResult(op.getResult())});
        return true;
      })
      .Case([&](nn::LayerNormOp op) {
        launchRows(
            "layer_norm",
            {kernelOperand(op.getInput()), kernelOperandOrNone(op.getScale()),
             kernelOperandOrNone(op.getBias()), kernelResult(op.getResult())},
            {op.getEpsilon().convertToDouble()});
        return true;
      })
      .Case([&](nn::LayerNormGradOp op) {
        launchRows("layer_norm_grad",
                   {kernelOperand(op.getInput()), kernelOperand(op.getDy()),
                    kernelOperandOrNone(op.getScale()),
                    kernelResult(op.getDx()), kernelResult(op.getDscale()),
                    kernelResult(op.getDbias())},
                   {op.getEpsilon().convertToDouble()});
        return true;
      })
      .Case([&](nn::RmsNormOp op) {
        launchRows("rms_norm",
                   {kernelOperand(op.getInput()),
                    kernelOperandOrNone(op.getScale()),
                    kernelResult(op.getResult())},
                   {op.getEpsilon().convertToDouble()});
        return true;
      })
      .Case([&](nn::RmsNormGradOp op) {
        launchRows("rms_norm_grad",
                   {kernelOperand(op.getInput()), kernelOperand(op.getDy()),
                    kernelOperandOrNone(op.getScale()),
                    kernelResult(op.getDx()), kernelResult(op.getDscale())},
                   {op.getEpsilon().convertToDouble()});
        return true;
      })
      .Default([](Operation *) { return false; });
}

bool Lowering::lowerLoss(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::CrossEntropyOp op) {
        View logits = kernelOperand(op.getLogits());
        View labels = dense(op.getLabels());
        auto [rows, columns] = rowsOf(logits);
        launch(named("cross_entropy", logits, labels),
               {logits, labels, kernelResult(op.getLoss()),
                kernelResult(op.getLse())},
               {rows, columns, int64_t(op.getIgnoreIndex())});
        return true;
      })
      .Case([&](nn::CrossEntropyGradOp op) {
        View logits = kernelOperand(op.getLogits());
        View labels = dense(op.getLabels());
        auto [rows, columns] = rowsOf(logits);
        launch(named("cross_entropy_grad", logits, labels),
               {logits, labels, kernelOperand(op.getLse()),
                kernelOperand(op.getDloss()), kernelResult(op.getResult())},
               {rows, columns, int64_t(op.getIgnoreIndex())});
        return true;
      })
      .Default([](Operation *) { return false; });
}

bool Lowering::lowerWindows(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](nn::ConvOp op) {
        lowerConv(op, "conv", op.getInput(), op.getFilter(), op.getResult());
        return true;
      })
      .Case([&](nn::ConvInputGradOp op) {
        lowerConv(op, "conv_input_grad", op.getResult(), op.getFilter(),
                  op.getDy());
        return true;
      })
      .Case([&](nn::ConvFilterGradOp op) {
        lowerConv(op, "conv_filter_grad", op.getInput(), op.getResult(),
                  op.getDy());
        return true;
      })
      .Case([&](nn::MaxPoolOp op) {
        lowerPool(op, "max_pool", op.getInput(), op.getResult(), 0);
        return true;
      })
      .Case([&](nn::MaxPoolGradOp op) {
        lowerPool(op, "max_pool_grad", op.getInput(), op.getDy(), 0);
        return true;
      })
      .Case([&](nn::AvgPoolOp op) {
        lowerPool(op, "avg_pool", op.getInput(), op.getResult(),
                  op.getCountPads());
        return true;
      })
      .Case([&](nn::AvgPoolGradOp op) {
        lowerPool(op, "avg_pool_grad", op.getResult(), op.getDy(),
                  op.getCountPads());
        return true;
      })
      .Default([](Operation *) { return false; });
}

LogicalResult Lowering::lowerLayer(Operation *op) {
  if (lowerRows(op) || lowerLoss(op) || lowerWindows(op))
    return success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::GatherOp op) { return lowerGather(op), success(); })
      .Case([&](nn::AttentionOp op) { return lowerAttention(op), success(); })
      .Case([&](nn::AttentionGradOp op) {
        return lowerAttentionGrad(op), success();
      })
      .Case([&](nn::RopeOp op) { return lowerRope(op), success(); })
      .Case([&](nn::RandomUniformOp op) { return lowerRandom(op), success(); })
      .Default([](Operation *other) {
        return other->emitOpError(
            "not supported: the cpu target has no code for it");
      });
}

void Lowering::lowerGather(nn::GatherOp op) {
  View table = dense(op.getTable()), indices = dense(op.getIndices());
  View result = denseResult(op.getResult());
  int64_t rows = table.shape[0];
  std::string kernel =
      ("gather_" + Twine(8 * memory::bytesOfElement(table.elementType)) +
       (indices.elementType.isInteger(32) ? "_i32" : "_i64"))
          .str();
  launch(kernel, {table, indices, result},
         {indices.elements(), rows, rows ? table.elements() / rows : 0});
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {

/// The strides of batch, head and row, where the last dimension has 1.
void appendStrides(SmallVectorImpl<int64_t> &integers, const View &view) {
  integers.append({view.strides[0], view.strides[1], view.strides[2]});
}

/// The sizes that both attention kernels begin with.
template <typename OpT>
SmallVector<int64_t> attentionSizes(OpT op) {
  ArrayRef<int64_t> q = nn::shapeOf(op.getQuery()),
                    k = nn::shapeOf(op.getKey());
  return {q[0],
          q[1],
          k[1],
          q[2],
          k[2],
          q[3],
          nn::shapeOf(op.getValue())[3],
          op.getCausal()};
}

} // namespace

/// The elements that the attention kernels work in: packed keys and values, and
/// tiles (Kernels/Attention.cpp).
static int64_t attentionWork(ArrayRef<int64_t> sizes, bool isGrad) {
  constexpr int64_t queryTile = 32, keyTile = 64;
  auto pad = [](int64_t n, int64_t to) { return (n + to - 1) / to * to; };
  int64_t t = pad(sizes[4], keyTile), d = pad(sizes[5], 16),
          e = pad(sizes[6], 16);
  if (isGrad)
    return t * (3 * d + 2 * e) + queryTile * (2 * d + e + 2 * keyTile);
  return t * (d + e) + queryTile * (keyTile + e);
}

/// The suffix of the mask's kind, and its strides; a mask of floats is added.
static std::string maskOf(const Operand &mask, ArrayRef<int64_t> shape,
                          SmallVectorImpl<int64_t> &integers) {
  if (!mask) {
    integers.append({0, 0, 0, 0});
    return "";
  }
  View view = broadcastView(*mask, shape);
  integers.append(view.strides.begin(), view.strides.end());
  return mask->elementType.isInteger(1) ? "_bool" : "_add";
}

void Lowering::lowerAttention(nn::AttentionOp op) {
  View q = rowsOperand(op.getQuery()), k = rowsOperand(op.getKey()),
       v = rowsOperand(op.getValue());
  Operand mask = kernelOperandOrNone(op.getMask());
  View out = rowsResult(op.getOut());
  View lse = kernelResult(op.getLse());
  SmallVector<int64_t> integers = attentionSizes(op);
  for (const View &view : {q, k, v, out})
    appendStrides(integers, view);
  std::string kind =
      maskOf(mask, {q.shape[0], q.shape[1], q.shape[2], k.shape[2]}, integers);
  View work = temporary({attentionWork(integers, false)}, q.elementType);
  launch(named("attention", q) + kind, {q, k, v, mask, out, lse, work},
         integers, {op.getScale().convertToDouble()});
}

void Lowering::lowerAttentionGrad(nn::AttentionGradOp op) {
  View q = rowsOperand(op.getQuery()), k = rowsOperand(op.getKey()),
       v = rowsOperand(op.getValue()), out = rowsOperand(op.getOut()),
       dout = rowsOperand(op.getDout());
  View lse = kernelOperand(op.getLse());
  Operand mask = kernelOperandOrNone(op.getMask());
  View dq = rowsResult(op.getDquery()), dk = rowsResult(op.getDkey()),
       dv = rowsResult(op.getDvalue());
  SmallVector<int64_t> integers = attentionSizes(op);
  for (const View &view : {q, k, v, out, dout, dq, dk, dv})
    appendStrides(integers, view);
  std::string kind =
      maskOf(mask, {q.shape[0], q.shape[1], q.shape[2], k.shape[2]}, integers);
  View work = temporary({attentionWork(integers, true)}, q.elementType);
  launch(named("attention_grad", q) + kind,
         {q, k, v, mask, out, lse, dout, dq, dk, dv, work}, integers,
         {op.getScale().convertToDouble()});
}

void Lowering::lowerRope(nn::RopeOp op) {
  // Rank 4: [.., .., S, D].
  auto rank4 = [](View view) {
    while (view.rank() < 4) {
      view.shape.insert(view.shape.begin(), 1);
      view.strides.insert(view.strides.begin(), 0);
    }
    return view;
  };
  bool strided = nn::rankOf(op.getInput()) <= 4;
  View x = strided ? rowsOperand(op.getInput()) : kernelOperand(op.getInput());
  View y = strided ? rowsResult(op.getResult()) : kernelResult(op.getResult());
  SmallVector<int64_t> half(x.shape);
  half.back() /= 2;
  View cos = broadcastView(kernelOperand(op.getCos()), half);
  View sin = broadcastView(kernelOperand(op.getSin()), half);
  if (x.rank() > 4 || (half.back() != 1 && cos.strides.back() != 1)) {
    cos = dense(cos);
    sin = dense(sin);
  }
  if (x.rank() > 4) {
    int64_t size = x.shape[x.rank() - 2], width = x.shape.back();
    int64_t lead = x.elements() / std::max<int64_t>(size * width, 1);
    SmallVector<int64_t> flat = {1, lead, size, width};
    x = *reshapeView(x, flat);
    y = *reshapeView(y, flat);
    flat.back() /= 2;
    cos = *reshapeView(cos, flat);
    sin = *reshapeView(sin, flat);
  }
  x = rank4(x), y = rank4(y), cos = rank4(cos), sin = rank4(sin);
  SmallVector<int64_t> integers(x.shape);
  for (const View &view : {x, y, cos})
    appendStrides(integers, view);
  integers.append({op.getInterleaved(), op.getInverse()});
  launch(named("rope", x), {x, cos, sin, y}, integers);
}

void Lowering::lowerRandom(nn::RandomUniformOp op) {
  constexpr size_t mostDims = 6;
  View rng = dense(op.getRng());
  Operand offsets;
  if (op.getOffsets())
    offsets = dense(op.getOffsets());
  View result = kernelResult(op.getResult());
  SmallVector<int64_t> shape(result.shape), logical(op.getLogicalShape());
  int64_t missing = mostDims - shape.size();
  shape.insert(shape.begin(), missing, 1);
  logical.insert(logical.begin(), missing, 1);
  uint32_t hash = 2166136261u; // FNV-1a of the stream's name
  for (unsigned char byte : op.getStream())
    hash = (hash ^ byte) * 16777619u;
  SmallVector<int64_t> integers = {int64_t(hash), missing};
  integers.append(shape);
  integers.append(logical);
  launch(named("random_uniform", result), {rng, offsets, result}, integers);
}
