//===- Lowering.cpp - A function of nn ops to rt ops ----------------------===//

#include "Lowering.h"

#include "dialects/Nn/NnShapes.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

Lowering::Lowering(ProgramState &program, func::FuncOp source,
                   func::FuncOp target)
    : program(program), source(source), builder(target.getContext()),
      loc(source.getLoc()) {
  builder.setInsertionPointToStart(target.addEntryBlock());
  for (auto [index, tensor] : llvm::enumerate(program.layout.memory.tensors))
    storage.push_back({tensor.bytes, int64_t(index), {}});
}

LogicalResult Lowering::run() {
  bindArguments();
  findDeferred();
  findDemands();
  for (Operation &op : source.getBody().front()) {
    if (done.contains(&op) || deferred.contains(&op))
      continue;
    loc = op.getLoc();
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      lowerReturn(ret);
      return success();
    }
    if (failed(lowerOp(&op)))
      return failure();
    finishResults();
  }
  return success();
}

static int64_t plannedIndex(const memory::MemoryPlan &plan,
                            DictionaryAttr attributes) {
  return plan.find(attributes.getAs<StringAttr>("espalier.name").getValue(),
                   attributes.getAs<StringAttr>("espalier.role").getValue());
}

void Lowering::bindArguments() {
  const memory::MemoryPlan &plan = program.layout.memory;
  for (BlockArgument argument : source.getArguments()) {
    int64_t index =
        plannedIndex(plan, source.getArgAttrDict(argument.getArgNumber()));
    views[argument] =
        denseView(index, nn::shapeOf(argument), getElementTypeOrSelf(argument));
    storage[index].isConsumed = true;
  }
  // Sums are used up by the update, which does not return them; all else is
  // read again.
  for (auto [index, tensor] : llvm::enumerate(plan.tensors))
    storage[index].isConsumed &= tensor.role == "grad" ||
                                 tensor.role == "loss_sum" ||
                                 tensor.role == "weight_sum";
  for (unsigned i = 0; i < source.getNumResults(); ++i)
    storage[plannedIndex(plan, source.getResultAttrDict(i))].isConsumed = false;
}

//===----------------------------------------------------------------------===//
// What producers can do for their only reader
//===----------------------------------------------------------------------===//

bool Lowering::canWriteStrided(Operation *op) {
  return isa_and_nonnull<nn::MapOp, nn::ContractOp, nn::ReduceOp,
                         nn::AttentionOp, nn::AttentionGradOp, nn::RopeOp>(
             op) &&
         !deferred.contains(op);
}

/// Whether all of a value's readers can read it through strides.
static bool isReadStrided(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return isa<nn::MapOp, nn::ReduceOp, nn::ContractOp, nn::AttentionOp,
               nn::AttentionGradOp, nn::RopeOp, nn::TransposeOp, nn::ReshapeOp,
               nn::SliceOp, nn::BroadcastOp, nn::ConcatOp, nn::PadOp,
               func::ReturnOp>(user);
  });
}

/// Makes whoever computes `value` write it to `view`, if it can and others can
/// read it there. Looks through ops that are views.
bool Lowering::demand(Value value, const View &view) {
  Operation *op = value.getDefiningOp();
  if (!op || !isReadStrided(value) || demands.contains(value))
    return false;
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    auto before = reshapeView(view, nn::shapeOf(reshape.getInput()));
    return before && demand(reshape.getInput(), *before);
  }
  if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
    SmallVector<int64_t> inverse(view.rank());
    for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
      inverse[dim] = i;
    return demand(transpose.getInput(), transposeView(view, inverse));
  }
  if (!canWriteStrided(op) && !isa<nn::ConcatOp>(op))
    return false;
  demands[value] = view;
  return true;
}

void Lowering::findDemands() {
  for (Operation &op : llvm::reverse(source.getBody().front())) {
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      for (Value value : ret.getOperands())
        if (value.getDefiningOp<nn::TransposeOp>() && value.hasOneUse())
          demand(value, temporaryFor(value));
    } else if (auto transpose = dyn_cast<nn::TransposeOp>(op)) {
      // Where all is done through views, a transposed write makes the reader's
      // walk the contiguous one.
      Operation *producer = transpose.getInput().getDefiningOp();
      while (isa_and_nonnull<nn::ReshapeOp>(producer))
        producer = producer->getOperand(0).getDefiningOp();
      if (canWriteStrided(producer))
        demand(transpose.getResult(), temporaryFor(transpose.getResult()));
    } else if (auto concat = dyn_cast<nn::ConcatOp>(op)) {
      View whole = demands.contains(concat.getResult())
                       ? demands[concat.getResult()]
                       : temporaryFor(concat.getResult());
      demands[concat.getResult()] = whole;
      SmallVector<int64_t> offsets(whole.rank(), 0), steps(whole.rank(), 1);
      for (Value input : concat.getInputs()) {
        demand(input, sliceView(whole, offsets, steps, nn::shapeOf(input)));
        offsets[concat.getDim()] += nn::shapeOf(input)[concat.getDim()];
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

View Lowering::viewOf(Value value) {
  if (auto known = views.find(value); known != views.end())
    return known->second;
  View view = computeView(value);
  views[value] = view;
  return view;
}

View Lowering::computeView(Value value) {
  ArrayRef<int64_t> shape = nn::shapeOf(value);
  return llvm::TypeSwitch<Operation *, View>(value.getDefiningOp())
      .Case([&](nn::ReshapeOp op) {
        if (auto view = reshapeView(viewOf(op.getInput()), shape))
          return *view;
        return *reshapeView(dense(op.getInput()), shape);
      })
      .Case([&](nn::TransposeOp op) {
        return transposeView(viewOf(op.getInput()), op.getPermutation());
      })
      .Case([&](nn::SliceOp op) {
        return sliceView(viewOf(op.getInput()), op.getOffsets(),
                         op.getStrides(), shape);
      })
      .Case([&](nn::BroadcastOp op) {
        return broadcastView(viewOf(op.getInput()), shape);
      })
      .Case([&](nn::ConstantOp op) { return constantView(op); })
      .Case([&](nn::IotaOp op) {
        View view = temporaryFor(value);
        SmallVector<View> inputs;
        if (op.getOffset())
          inputs.push_back(broadcastView(viewOf(op.getOffset()), shape));
        loops(shape, inputs, {view}, {"store"},
              [&](OpBuilder &b, ValueRange arguments) -> SmallVector<Value> {
                Value index =
                    rt::IndexOp::create(b, loc, b.getI64Type(), op.getDim());
                if (!arguments.empty())
                  index = arith::AddIOp::create(b, loc, index, arguments[0]);
                Type type = view.elementType;
                if (isa<FloatType>(type))
                  return {arith::SIToFPOp::create(b, loc, type, index)};
                if (type.getIntOrFloatBitWidth() < 64)
                  return {arith::TruncIOp::create(b, loc, type, index)};
                return {index};
              });
        return view;
      })
      .Default([&](Operation *op) {
        llvm_unreachable("every other op is lowered before its readers");
        return View();
      });
}

/// Small and irregular constants are data of the program; large ones of one
/// value are filled in where they are needed.
View Lowering::constantView(nn::ConstantOp op) {
  constexpr int64_t largestData = 4096; // bytes, of a constant of one value
  ElementsAttr value = op.getValue();
  View view = temporaryFor(op.getResult());
  if (value.isSplat() && storage[view.storage].bytes > largestData) {
    fill(view, cast<TypedAttr>(value.getSplatValue<Attribute>()));
    return view;
  }
  storage[view.storage].constant = value;
  return view;
}

View Lowering::dense(Value value) {
  if (auto known = denseViews.find(value); known != denseViews.end())
    return known->second;
  View view = dense(viewOf(value));
  denseViews[value] = view;
  return view;
}

View Lowering::dense(const View &view) {
  if (view.isDense())
    return view;
  View result = temporary(view.shape, view.elementType);
  copy(view, result);
  return result;
}

View Lowering::temporary(ArrayRef<int64_t> shape, Type elementType) {
  View view = denseView(storage.size(), shape, elementType);
  storage.push_back(
      {view.elements() * memory::bytesOfElement(elementType), -1, {}});
  return view;
}

View Lowering::temporaryFor(Value value) {
  return temporary(nn::shapeOf(value), getElementTypeOrSelf(value));
}

View Lowering::resultView(Value result) {
  auto wanted = demands.find(result);
  View view = wanted != demands.end() ? wanted->second : temporaryFor(result);
  views[result] = view;
  return view;
}

View Lowering::denseResult(Value result) {
  View view = resultView(result);
  if (view.isDense())
    return view;
  View copied = temporaryFor(result);
  unfinished.push_back({copied, view});
  return copied;
}

View Lowering::kernelOperand(Value value) {
  View view = dense(value);
  if (!isa<FloatType>(view.elementType) ||
      view.elementType.getIntOrFloatBitWidth() >= 32)
    return view;
  View wide = temporary(view.shape, builder.getF32Type());
  convert(view, wide);
  return wide;
}

Operand Lowering::kernelOperandOrNone(Value value) {
  return value ? Operand(kernelOperand(value)) : std::nullopt;
}

View Lowering::kernelResult(Value result) {
  Type type = getElementTypeOrSelf(result);
  if (!isa<FloatType>(type) || type.getIntOrFloatBitWidth() >= 32)
    return denseResult(result);
  View wide = temporary(nn::shapeOf(result), builder.getF32Type());
  unfinished.push_back({wide, resultView(result)});
  return wide;
}

static bool hasContiguousRows(const View &view) {
  return view.rank() == 0 || view.shape.back() == 1 || view.strides.back() == 1;
}

static bool isNarrow(Value value) {
  return getElementTypeOrSelf(value).getIntOrFloatBitWidth() < 32;
}

View Lowering::rowsOperand(Value value) {
  if (isNarrow(value))
    return kernelOperand(value);
  View view = viewOf(value);
  return hasContiguousRows(view) ? view : dense(value);
}

View Lowering::rowsResult(Value result) {
  if (isNarrow(result))
    return kernelResult(result);
  View view = resultView(result);
  if (hasContiguousRows(view))
    return view;
  View copied = temporaryFor(result);
  unfinished.push_back({copied, view});
  return copied;
}

void Lowering::finishResults() {
  for (auto &[from, to] : unfinished)
    convert(from, to);
  unfinished.clear();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void Lowering::mark(Location location) {
  int64_t index = program.opIndex(location);
  if (index == lastMark)
    return;
  lastMark = index;
  rt::MarkOp::create(builder, location, index);
}

LogicalResult Lowering::lowerOp(Operation *op) {
  if (auto constant = dyn_cast<nn::ConstantOp>(op);
      constant && !constant.getValue().tryGetValues<Attribute>())
    return op->emitOpError("has elements that are not in the program");
  if (isa<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::BroadcastOp,
          nn::ConstantOp, nn::IotaOp>(op))
    return success(); // computeView, where they are used
  mark(op->getLoc());
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::MapOp map) {
        if (isSumMap(map))
          lowerDeferredSum(map);
        else
          lowerMap(map);
        return success();
      })
      .Case([&](nn::ReduceOp reduce) { return lowerReduce(reduce), success(); })
      .Case([&](nn::ConcatOp concat) { return lowerConcat(concat), success(); })
      .Case([&](nn::PadOp pad) { return lowerPad(pad), success(); })
      .Case([&](nn::ContractOp contract) {
        lowerContract(contract, resultView(contract.getResult()), false);
        return success();
      })
      .Case([&](nn::ScatterAddOp scatter) {
        lowerScatterAdd(scatter, denseResult(scatter.getResult()), false);
        return success();
      })
      .Default([&](Operation *other) {
        return isa<dist::DistDialect>(other->getDialect()) ? lowerDist(other)
                                                           : lowerLayer(other);
      });
}

void Lowering::lowerConcat(nn::ConcatOp op) {
  View whole = resultView(op.getResult());
  SmallVector<int64_t> offsets(whole.rank(), 0), steps(whole.rank(), 1);
  for (Value input : op.getInputs()) {
    View part = sliceView(whole, offsets, steps, nn::shapeOf(input));
    View from = viewOf(input);
    if (from.storage != part.storage || from.offset != part.offset)
      copy(from, part);
    offsets[op.getDim()] += nn::shapeOf(input)[op.getDim()];
  }
}

void Lowering::lowerPad(nn::PadOp op) {
  View whole = resultView(op.getResult());
  fill(whole, op.getValue());
  SmallVector<int64_t> steps(whole.rank(), 1);
  copy(viewOf(op.getInput()),
       sliceView(whole, op.getLow(), steps, nn::shapeOf(op.getInput())));
}

/// Copies results to their persistent places; the layout of storage then
/// removes the copies of what can be computed in place.
void Lowering::lowerReturn(func::ReturnOp op) {
  const memory::MemoryPlan &plan = program.layout.memory;
  std::vector<std::pair<View, View>> copies;
  for (OpOperand &operand : op->getOpOperands()) {
    int64_t index = plannedIndex(
        plan, source.getResultAttrDict(operand.getOperandNumber()));
    Value value = operand.get();
    View from = viewOf(value);
    View to = denseView(index, nn::shapeOf(value), getElementTypeOrSelf(value));
    if (from.storage == to.storage && from.offset == 0 && from.isDense())
      continue; // an argument that stays as it is
    if (storage[from.storage].persistent >= 0) {
      // Another copy may overwrite it first.
      View aside = temporaryFor(value);
      copy(from, aside);
      from = aside;
    }
    copies.push_back({from, to});
  }
  for (auto &[from, to] : copies)
    copy(from, to);
  func::ReturnOp::create(builder, op.getLoc());
}
