//===- LowerContract.cpp - Contractions and scatters ----------------------===//

#include "dialects/Nn/NnShapes.h"

#include "Lowering.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

/// A view of the same letters over storage in which they lie in `order`.
static View viewInOrder(View copy, StringRef letters, ArrayRef<char> order) {
  View result = copy;
  for (auto [dim, letter] : llvm::enumerate(letters)) {
    size_t at = llvm::find(order, letter) - order.begin();
    result.shape[dim] = copy.shape[at];
    result.strides[dim] = copy.strides[at];
  }
  return result;
}

static int64_t leadingDimension(int64_t stride, int64_t rows, int64_t columns) {
  return rows == 1 ? std::max<int64_t>(columns, 1) : stride;
}

namespace {

/// A matrix of a call: its stored rows and columns.
struct Matrix {
  bool transposed;
  int64_t leading;
};

} // namespace

static Matrix matrixOf(const ProductDim &rows, const ProductDim &columns,
                       unsigned tensor) {
  bool plain = (columns.size == 1 || columns.strides[tensor] == 1) &&
               (rows.size == 1 || rows.strides[tensor] >= columns.size);
  const ProductDim &major = plain ? rows : columns;
  const ProductDim &minor = plain ? columns : rows;
  return {!plain,
          leadingDimension(major.strides[tensor], major.size, minor.size)};
}

/// The indices of nested loops over factors, as offsets in each tensor.
static SmallVector<std::array<int64_t, 3>>
offsetsOf(ArrayRef<ProductDim> factors) {
  SmallVector<std::array<int64_t, 3>> offsets = {{0, 0, 0}};
  for (const ProductDim &factor : factors) {
    SmallVector<std::array<int64_t, 3>> next;
    for (auto &offset : offsets)
      for (int64_t i = 0; i < factor.size; ++i)
        next.push_back({offset[0] + i * factor.strides[0],
                        offset[1] + i * factor.strides[1],
                        offset[2] + i * factor.strides[2]});
    offsets = std::move(next);
  }
  return offsets;
}

void Lowering::emitProduct(const Product &product, bool accumulate) {
  const auto &[m, n, k, batch] =
      std::tie(product.m, product.n, product.k, product.batch);
  const ProductDim *rows[3] = {&m, &k, &m}, *columns[3] = {&k, &n, &n};
  bool isDouble = product.views[2].elementType.isF64();
  for (auto &outer : offsetsOf(product.outer)) {
    bool adds = accumulate;
    for (auto &inner : offsetsOf(product.outerSum)) {
      SmallVector<View> parts;
      for (unsigned t = 0; t < 3; ++t) {
        View part = product.views[t];
        part.offset += outer[t] + inner[t];
        part.shape = {batch.size, rows[t]->size, columns[t]->size};
        part.strides = {batch.strides[t], rows[t]->strides[t],
                        columns[t]->strides[t]};
        parts.push_back(part);
      }
      if (isDouble) {
        SmallVector<int64_t> constants = {batch.size, m.size, n.size, k.size};
        for (const View &part : parts)
          constants.append(part.strides.begin(), part.strides.end());
        constants.push_back(adds);
        launch("gemm_f64", {parts[0], parts[1], parts[2]}, constants);
        adds = true;
        continue;
      }
      // A transposed result is the product of the transposed operands.
      Matrix a = matrixOf(m, k, 0), b = matrixOf(k, n, 1),
             c = matrixOf(m, n, 2);
      int64_t sizes[2] = {m.size, n.size};
      if (c.transposed) {
        std::swap(parts[0], parts[1]);
        std::swap(a, b);
        std::swap(sizes[0], sizes[1]);
        a.transposed = !a.transposed;
        b.transposed = !b.transposed;
      }
      program.layout.callsGemm = true;
      rt::GemmOp::create(
          builder, loc, buffer(parts[0]), buffer(parts[1]), buffer(parts[2]),
          builder.getI64IntegerAttr(sizes[0]),
          builder.getI64IntegerAttr(sizes[1]),
          builder.getI64IntegerAttr(k.size), builder.getF32FloatAttr(1.0f),
          builder.getF32FloatAttr(adds ? 1 : 0),
          builder.getDenseI64ArrayAttr({a.leading, b.leading, c.leading}),
          builder.getDenseBoolArrayAttr({a.transposed, b.transposed}),
          builder.getI64IntegerAttr(batch.size),
          builder.getDenseI64ArrayAttr(
              {parts[0].strides[0], parts[1].strides[0], parts[2].strides[0]}));
      adds = true;
    }
  }
}

/// Plans the product of the views, of copies of as few of them as possible
/// where they are not matrices.
static std::pair<Product, unsigned>
planWithCopies(std::array<StringRef, 3> letters, std::array<View, 3> views,
               llvm::function_ref<View(unsigned)> copyOf) {
  static constexpr unsigned subsets[] = {0, 1, 2, 4, 3, 5, 6, 7};
  std::array<std::optional<View>, 3> copies;
  for (unsigned subset : subsets) {
    std::array<View, 3> tried = views;
    for (unsigned t = 0; t < 3; ++t) {
      if (!(subset & (1u << t)))
        continue;
      if (!copies[t])
        copies[t] = copyOf(t);
      tried[t] = *copies[t];
    }
    if (auto product = planProduct(letters, tried))
      return {*product, subset};
  }
  llvm_unreachable("dense stacks of matrices multiply");
}

void Lowering::lowerContract(nn::ContractOp op, const View &to,
                             bool accumulate) {
  std::array<StringRef, 3> letters = op.getLetters();
  std::array<View, 3> views = {viewOf(op.getLhs()), viewOf(op.getRhs()), to};
  Type type =
      to.elementType.isF64() ? to.elementType : Type(builder.getF32Type());
  if (views[0].elements() == 0 || views[1].elements() == 0) {
    if (!accumulate)
      fill(to, cast<TypedAttr>(builder.getZeroAttr(to.elementType)));
    return;
  }
  auto copyOf = [&](unsigned t) {
    SmallVector<char> order = matrixOrder(letters, t);
    SmallVector<int64_t> shape;
    for (char letter : order)
      shape.push_back(views[t].shape[letters[t].find(letter)]);
    return viewInOrder(temporary(shape, type), letters[t], order);
  };
  std::array<View, 3> operands = views;
  for (unsigned t = 0; t < 3; ++t)
    if (views[t].elementType != type)
      operands[t] = copyOf(t);
  auto [product, copied] = planWithCopies(letters, operands, copyOf);
  for (unsigned t = 0; t < 3; ++t)
    if ((t < 2 || accumulate) && product.views[t].storage != views[t].storage)
      convert(views[t], product.views[t]);
  emitProduct(product, accumulate);
  if (product.views[2].storage != to.storage)
    convert(product.views[2], to);
}

void Lowering::lowerScatterAdd(nn::ScatterAddOp op, const View &to,
                               bool accumulate) {
  View indices = dense(op.getIndices()), updates = dense(op.getUpdates());
  View table = to;
  int64_t rows = to.shape[0], width = rows ? to.elements() / rows : 0;
  Type type = to.elementType;
  if (type.getIntOrFloatBitWidth() < 32) {
    table = temporary(to.shape, builder.getF32Type());
    type = builder.getF32Type();
    View wide = temporary(updates.shape, type);
    convert(updates, wide);
    updates = wide;
  }
  if (!accumulate)
    fill(table, cast<TypedAttr>(builder.getZeroAttr(type)));
  else if (table.storage != to.storage)
    convert(to, table);
  std::string kernel = "scatter_add";
  kernel += type.isF64() ? "_f64" : "_f32";
  kernel += indices.elementType.isInteger(32) ? "_i32" : "_i64";
  launch(kernel, {indices, updates, table}, {indices.elements(), rows, width});
  if (table.storage != to.storage)
    convert(table, to);
}
