//===- NnBuilder.cpp - Makes ops of dialect nn -*- C++ -*-===//

#include "NnBuilder.h"

#include "dialects/Nn/Nn.h"
#include "dialects/Nn/NnBuilders.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace llvm;
using mlir::cast;
using mlir::RankedTensorType;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

namespace espalier::onnx {

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

static bool isFloat(Value value) {
  return mlir::isa<mlir::FloatType>(value.getType());
}

/// A value of the type, converted from double; integers are cut.
static mlir::TypedAttr scalarAttr(mlir::Type type, double value) {
  if (auto floating = mlir::dyn_cast<mlir::FloatType>(type)) {
    APFloat number(value);
    bool losesInfo;
    number.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return mlir::FloatAttr::get(type, number);
  }
  return mlir::IntegerAttr::get(type, int64_t(value));
}

Value ScalarBuilder::constant(double value, mlir::Type type) {
  return make<arith::ConstantOp>(scalarAttr(type, value));
}

Value ScalarBuilder::add(V a, V b) {
  return isFloat(a) ? V(make<arith::AddFOp>(a, b))
                    : V(make<arith::AddIOp>(a, b));
}

Value ScalarBuilder::sub(V a, V b) {
  return isFloat(a) ? V(make<arith::SubFOp>(a, b))
                    : V(make<arith::SubIOp>(a, b));
}

Value ScalarBuilder::mul(V a, V b) {
  return isFloat(a) ? V(make<arith::MulFOp>(a, b))
                    : V(make<arith::MulIOp>(a, b));
}

Value ScalarBuilder::div(V a, V b) {
  return isFloat(a) ? V(make<arith::DivFOp>(a, b))
                    : V(make<arith::DivSIOp>(a, b));
}

Value ScalarBuilder::neg(V a) {
  if (isFloat(a))
    return make<arith::NegFOp>(a);
  return make<arith::SubIOp>(constantLike(0, a), a);
}

Value ScalarBuilder::max(V a, V b) {
  return isFloat(a) ? V(make<arith::MaximumFOp>(a, b))
                    : V(make<arith::MaxSIOp>(a, b));
}

Value ScalarBuilder::min(V a, V b) {
  return isFloat(a) ? V(make<arith::MinimumFOp>(a, b))
                    : V(make<arith::MinSIOp>(a, b));
}

Value ScalarBuilder::select(V condition, V a, V b) {
  return make<arith::SelectOp>(condition, a, b);
}

Value ScalarBuilder::logicalAnd(V a, V b) { return make<arith::AndIOp>(a, b); }
Value ScalarBuilder::logicalOr(V a, V b) { return make<arith::OrIOp>(a, b); }
Value ScalarBuilder::logicalXor(V a, V b) { return make<arith::XOrIOp>(a, b); }

Value ScalarBuilder::logicalNot(V a) {
  return make<arith::XOrIOp>(a, constantLike(1, a));
}

Value ScalarBuilder::compare(Compare kind, V a, V b) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  static const F floats[] = {F::OEQ, F::OLT, F::OLE, F::OGT, F::OGE};
  static const I ints[] = {I::eq, I::slt, I::sle, I::sgt, I::sge};
  static const I bits[] = {I::eq, I::ult, I::ule, I::ugt, I::uge};
  if (isFloat(a))
    return make<arith::CmpFOp>(floats[int(kind)], a, b);
  bool isBit = a.getType().isInteger(1);
  return make<arith::CmpIOp>((isBit ? bits : ints)[int(kind)], a, b);
}

Value ScalarBuilder::isNan(V a) {
  return make<arith::CmpFOp>(arith::CmpFPredicate::UNO, a, a);
}

Value ScalarBuilder::cast(V a, mlir::Type to, bool fromUnsigned,
                          bool toUnsigned) {
  mlir::Type from = a.getType();
  if (from == to)
    return a;
  unsigned fromWidth = from.getIntOrFloatBitWidth();
  unsigned toWidth = to.getIntOrFloatBitWidth();
  bool fromFloat = isFloat(a), toFloat = mlir::isa<mlir::FloatType>(to);
  bool fromBool = from.isInteger(1);
  if (to.isInteger(1)) {
    if (fromFloat)
      return make<arith::CmpFOp>(arith::CmpFPredicate::UNE, a,
                                 constantLike(0, a));
    return make<arith::CmpIOp>(arith::CmpIPredicate::ne, a, constantLike(0, a));
  }
  if (fromFloat && toFloat) {
    if (fromWidth == toWidth) // between the two 16-bit types
      return cast(make<arith::ExtFOp>(builder.getF32Type(), a), to, false,
                  false);
    return fromWidth < toWidth ? V(make<arith::ExtFOp>(to, a))
                               : V(make<arith::TruncFOp>(to, a));
  }
  if (fromFloat)
    return toUnsigned ? V(make<arith::FPToUIOp>(to, a))
                      : V(make<arith::FPToSIOp>(to, a));
  if (toFloat)
    return fromUnsigned || fromBool ? V(make<arith::UIToFPOp>(to, a))
                                    : V(make<arith::SIToFPOp>(to, a));
  if (fromWidth > toWidth)
    return make<arith::TruncIOp>(to, a);
  return fromUnsigned || fromBool ? V(make<arith::ExtUIOp>(to, a))
                                  : V(make<arith::ExtSIOp>(to, a));
}

Value ScalarBuilder::makeConstant(mlir::TypedAttr value) {
  return make<arith::ConstantOp>(value);
}

Value ScalarBuilder::exp(V a) { return make<math::ExpOp>(a); }
Value ScalarBuilder::log(V a) { return make<math::LogOp>(a); }
Value ScalarBuilder::sqrt(V a) { return make<math::SqrtOp>(a); }
Value ScalarBuilder::tanh(V a) { return make<math::TanhOp>(a); }
Value ScalarBuilder::erf(V a) { return make<math::ErfOp>(a); }
Value ScalarBuilder::sin(V a) { return make<math::SinOp>(a); }
Value ScalarBuilder::cos(V a) { return make<math::CosOp>(a); }
Value ScalarBuilder::floor(V a) { return make<math::FloorOp>(a); }
Value ScalarBuilder::ceil(V a) { return make<math::CeilOp>(a); }
Value ScalarBuilder::roundEven(V a) { return make<math::RoundEvenOp>(a); }
Value ScalarBuilder::pow(V a, V b) { return make<math::PowFOp>(a, b); }

Value ScalarBuilder::abs(V a) {
  return isFloat(a) ? V(make<math::AbsFOp>(a)) : V(make<math::AbsIOp>(a));
}

Value ScalarBuilder::selectGreater(V a, double threshold, V b, V c) {
  return select(compare(Compare::Greater, a, constantLike(threshold, a)), b, c);
}

Value ScalarBuilder::selectLessOrEqual(V a, double threshold, V b, V c) {
  return select(compare(Compare::LessOrEqual, a, constantLike(threshold, a)), b,
                c);
}

Value ScalarBuilder::sigmoid(V a) {
  // Below -88 the exponential would overflow in fp32, and the derivative be
  // infinity times zero.
  V one = constantLike(1, a), least = constantLike(-88, a);
  return div(one, add(one, exp(neg(max(a, least)))));
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

ArrayRef<int64_t> NnBuilder::shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

mlir::Type NnBuilder::elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// The bytes of a constant's elements in their own type.
static std::vector<char> rawBytes(const Constant &constant) {
  std::vector<char> bytes;
  bytes.reserve(constant.data->size() * dtypeBytes(constant.dtype));
  auto append = [&](auto value) {
    auto *begin = reinterpret_cast<const char *>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof(value));
  };
  for (Scalar element : *constant.data) {
    switch (constant.dtype) {
    case Dtype::Float:
      append(float(element.f));
      break;
    case Dtype::Double:
      append(element.f);
      break;
    case Dtype::Float16:
    case Dtype::Bfloat16: {
      bool losesInfo;
      APFloat number(element.f);
      number.convert(constant.dtype == Dtype::Float16 ? APFloat::IEEEhalf()
                                                      : APFloat::BFloat(),
                     APFloat::rmNearestTiesToEven, &losesInfo);
      append(uint16_t(number.bitcastToAPInt().getZExtValue()));
      break;
    }
    default: {
      auto *begin = reinterpret_cast<const char *>(&element.i);
      bytes.insert(bytes.end(), begin, begin + dtypeBytes(constant.dtype));
    }
    }
  }
  return bytes;
}

Value NnBuilder::constant(const Constant &constant) {
  mlir::Type element = elementType(builder.getContext(), constant.dtype);
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(element))
    element = builder.getIntegerType(integer.getWidth()); // signless
  auto type = RankedTensorType::get(constant.stored, element);
  mlir::DenseElementsAttr attr;
  if (constant.dtype == Dtype::Bool) {
    SmallVector<bool> bits;
    bits.reserve(constant.data->size());
    for (Scalar value : *constant.data)
      bits.push_back(value.i != 0);
    attr = mlir::DenseElementsAttr::get(type, ArrayRef<bool>(bits));
  } else {
    attr = mlir::DenseElementsAttr::getFromRawBuffer(type, rawBytes(constant));
  }
  return nn::ConstantOp::create(builder, location, type, attr);
}

Value NnBuilder::scalarConstant(double value, mlir::Type element) {
  auto type = RankedTensorType::get({}, element);
  return nn::ConstantOp::create(
      builder, location, type,
      mlir::DenseElementsAttr::get(type, scalarAttr(element, value)));
}

Value NnBuilder::map(mlir::ValueRange operands, ArrayRef<int64_t> shape,
                     mlir::Type element, Body body) {
  auto results = nn::buildMultiMap(
      builder, location, operands, shape,
      [&](mlir::OpBuilder &inner, mlir::Location at, mlir::ValueRange args) {
        ScalarBuilder scalars(inner, at);
        return SmallVector<Value>{body(scalars, args)};
      });
  assert(elementOf(results[0]) == element && "a map of another type");
  (void)element;
  // Constants that the body had no need of.
  mlir::Block &block = results[0].getDefiningOp<nn::MapOp>().getBody().front();
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && &op != &block.back())
      op.erase();
  return results[0];
}

Value NnBuilder::broadcast(Value value, ArrayRef<int64_t> shape) {
  return nn::buildBroadcast(builder, location, value, shape);
}

Value NnBuilder::reshape(Value value, ArrayRef<int64_t> shape) {
  return nn::buildReshape(builder, location, value, shape);
}

Value NnBuilder::transpose(Value value, ArrayRef<int64_t> perm) {
  return nn::buildTranspose(builder, location, value, perm);
}

Value NnBuilder::slice(Value value, ArrayRef<int64_t> offsets,
                       ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  auto type = RankedTensorType::get(sizes, elementOf(value));
  if (type == value.getType())
    return value;
  return nn::SliceOp::create(builder, location, type, value, offsets, strides);
}

Value NnBuilder::sliceDim(Value value, int64_t dim, int64_t offset,
                          int64_t size, int64_t stride) {
  Shape sizes(shapeOf(value));
  Shape offsets(sizes.size(), 0), strides(sizes.size(), 1);
  sizes[dim] = size;
  offsets[dim] = offset;
  strides[dim] = stride;
  return slice(value, offsets, sizes, strides);
}

Value NnBuilder::concat(mlir::ValueRange values, int64_t dim) {
  return nn::buildConcat(builder, location, values, dim);
}

Value NnBuilder::pad(Value value, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
                     double fill) {
  Shape shape(shapeOf(value));
  for (size_t i = 0; i < shape.size(); ++i)
    shape[i] += low[i] + high[i];
  auto type = RankedTensorType::get(shape, elementOf(value));
  if (type == value.getType())
    return value;
  return nn::PadOp::create(builder, location, type, value, low, high,
                           scalarAttr(elementOf(value), fill));
}

Value NnBuilder::iota(ArrayRef<int64_t> shape, int64_t dim,
                      mlir::Type element) {
  return nn::IotaOp::create(builder, location,
                            RankedTensorType::get(shape, element), dim,
                            /*offset=*/Value());
}

Value NnBuilder::reduce(Reduce kind, Value value, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return value;
  static const ReductionKind kinds[] = {ReductionKind::Sum, ReductionKind::Max,
                                        ReductionKind::Min,
                                        ReductionKind::Prod};
  return nn::buildReduce(builder, location, kinds[int(kind)], value, dims);
}

Value NnBuilder::contract(StringRef equation, Value a, Value b) {
  return nn::buildContract(builder, location, equation, a, b);
}

Value NnBuilder::softmax(Value value, bool zeroMaskedRows) {
  return nn::SoftmaxOp::create(builder, location, value.getType(), value,
                               zeroMaskedRows);
}

Value NnBuilder::layerNorm(Value value, Value scale, Value bias,
                           double epsilon) {
  return nn::LayerNormOp::create(builder, location, value.getType(), value,
                                 scale, bias, builder.getF64FloatAttr(epsilon));
}

Value NnBuilder::rmsNorm(Value value, Value scale, double epsilon) {
  return nn::RmsNormOp::create(builder, location, value.getType(), value, scale,
                               builder.getF64FloatAttr(epsilon));
}

/// Spatial sizes of a window's results.
static int64_t windowCount(int64_t size, const NnBuilder::Window &window,
                           int64_t kernel, size_t i) {
  int64_t extent = window.dilations[i] * (kernel - 1) + 1;
  return (size + window.low[i] + window.high[i] - extent) / window.strides[i] +
         1;
}

Value NnBuilder::conv(Value value, Value weight, const Window &window,
                      int64_t groups) {
  Shape shape(shapeOf(value));
  shape[1] = shapeOf(weight)[0];
  for (size_t i = 2; i < shape.size(); ++i)
    shape[i] = windowCount(shape[i], window, shapeOf(weight)[i], i - 2);
  auto type = RankedTensorType::get(shape, elementOf(value));
  return nn::ConvOp::create(builder, location, type, value, weight,
                            window.strides, window.low, window.high,
                            window.dilations, groups);
}

Value NnBuilder::maxPool(Value value, const Window &window,
                         ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, elementOf(value));
  return nn::MaxPoolOp::create(builder, location, type, value, window.kernel,
                               window.strides, window.low, window.high,
                               window.dilations);
}

Value NnBuilder::avgPool(Value value, const Window &window, bool countPadding,
                         ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, elementOf(value));
  return nn::AvgPoolOp::create(builder, location, type, value, window.kernel,
                               window.strides, window.low, window.high,
                               window.dilations, countPadding);
}

Value NnBuilder::gather(Value table, Value indices) {
  Shape shape(shapeOf(indices));
  llvm::append_range(shape, shapeOf(table).drop_front());
  auto type = RankedTensorType::get(shape, elementOf(table));
  return nn::GatherOp::create(builder, location, type, table, indices);
}

Value NnBuilder::attention(Value q, Value k, Value v, Value mask, double scale,
                           bool causal) {
  Shape shape(shapeOf(q));
  shape[3] = shapeOf(v)[3];
  mlir::Type element = elementOf(q);
  auto out = RankedTensorType::get(shape, element);
  mlir::Type sums = element.isF64() ? element : builder.getF32Type();
  auto lse = RankedTensorType::get(ArrayRef(shape).drop_back(), sums);
  return nn::AttentionOp::create(builder, location, out, lse, q, k, v, mask,
                                 causal, llvm::APFloat(scale))
      .getOut();
}

Value NnBuilder::rope(Value value, Value cos, Value sin, bool interleaved) {
  return nn::RopeOp::create(builder, location, value.getType(), value, cos, sin,
                            interleaved, /*inverse=*/false);
}

Value NnBuilder::randomUniform(Value rng, ArrayRef<int64_t> shape,
                               StringRef stream) {
  auto type = RankedTensorType::get(shape, builder.getF32Type());
  return nn::RandomUniformOp::create(builder, location, type, rng,
                                     /*offsets=*/Value(),
                                     builder.getStringAttr(stream),
                                     builder.getDenseI64ArrayAttr(shape));
}

} // namespace espalier::onnx
