//===- StorageLayout.cpp - Places of storage in the arena -----------------===//

#include "StorageLayout.h"

#include "dialects/Rt/Rt.h"
#include "espalier/Memory/ArenaLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace espalier;
using namespace espalier::cpu;

namespace {

/// The ops of a function in order, and which of them use which storage.
class Layout {
public:
  Layout(func::FuncOp function, StorageTable &storage)
      : function(function), storage(storage) {}

  void run(memory::MemoryPlan &plan);

private:
  void number();
  int64_t storageOf(Value buffer);
  bool isCopy(rt::LoopsOp op);
  bool sameWalk(Operation *op, unsigned input, unsigned output);
  bool overwritesAll(Operation *op, int64_t from, int64_t to);
  bool canMerge(int64_t from, int64_t into);
  void merge(int64_t from, int64_t into);
  void mergeReturned();
  void mergeInPlace();
  void eraseIdleCopies();
  void place(memory::MemoryPlan &plan);

  func::FuncOp function;
  StorageTable &storage;
  SmallVector<Operation *> ops;
  SmallVector<SmallVector<int64_t>> uses; // of a storage, ascending
  SmallVector<int64_t> alias;             // what a storage has become
};

} // namespace

int64_t Layout::storageOf(Value buffer) {
  auto op = buffer.getDefiningOp<rt::BufferOp>();
  if (!op)
    return -1;
  int64_t index = *op.getStorage();
  while (alias[index] != index)
    index = alias[index];
  return index;
}

void Layout::number() {
  uses.resize(storage.size());
  alias.resize(storage.size());
  for (auto [i, self] : llvm::enumerate(alias))
    self = i;
  for (Operation &op : function.getBody().front()) {
    if (isa<rt::BufferOp, rt::ConstantOp>(op))
      continue;
    ops.push_back(&op);
    for (Value operand : op.getOperands())
      if (int64_t index = storageOf(operand); index >= 0)
        if (uses[index].empty() ||
            uses[index].back() != int64_t(ops.size()) - 1)
          uses[index].push_back(ops.size() - 1);
  }
}

bool Layout::isCopy(rt::LoopsOp op) {
  Block &body = op.getBody().front();
  auto yield = cast<rt::YieldOp>(body.getTerminator());
  return op.getInputs().size() == 1 && op.getOutputs().size() == 1 &&
         op.getKindOf(0) == "store" &&
         yield.getValues()[0] == body.getArgument(0);
}

/// Whether an op goes over two buffers in one way, element by element, so that
/// they may be one.
bool Layout::sameWalk(Operation *op, unsigned input, unsigned output) {
  auto from = op->getOperand(input).getDefiningOp<rt::BufferOp>();
  auto to = op->getOperand(output).getDefiningOp<rt::BufferOp>();
  if (from.getType() != to.getType() || from.getOffset() != to.getOffset() ||
      from.getByRank() || to.getByRank())
    return false;
  if (auto loops = dyn_cast<rt::LoopsOp>(op))
    return loops.getStridesOf(input) == loops.getStridesOf(output);
  auto launch = cast<rt::LaunchOp>(op);
  return launch.getKernel().starts_with("cross_entropy_grad") ||
         launch.getKernel().starts_with("softmax_");
}

/// Whether op may write storage `to` where it reads `from`: every use of `from`
/// in it goes over it as the write of `to` does.
bool Layout::overwritesAll(Operation *op, int64_t from, int64_t to) {
  unsigned firstOutput = 0;
  if (auto loops = dyn_cast<rt::LoopsOp>(op))
    firstOutput = loops.getInputs().size();
  else if (auto launch = dyn_cast<rt::LaunchOp>(op))
    firstOutput = launch.getBuffers().size() - 1;
  else
    return false;
  unsigned outputs = 0;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (storageOf(op->getOperand(i)) != to)
      continue;
    if (i < firstOutput || ++outputs > 1)
      return false;
    if (auto loops = dyn_cast<rt::LoopsOp>(op))
      if (loops.getKindOf(i - firstOutput) != "store")
        return false;
    for (unsigned j = 0; j < op->getNumOperands(); ++j)
      if (storageOf(op->getOperand(j)) == from &&
          (j >= firstOutput || !sameWalk(op, j, i)))
        return false;
  }
  return outputs == 1;
}

/// Whether `from`, which lives on its own, can be `into` from its first use on:
/// nothing else of `into` is used while it lives, but where one takes over from
/// the other in place.
bool Layout::canMerge(int64_t from, int64_t into) {
  if (from == into || storage[from].persistent >= 0 || storage[from].constant ||
      storage[into].constant || storage[from].bytes != storage[into].bytes ||
      uses[from].empty())
    return false;
  int64_t first = uses[from].front(), last = uses[from].back();
  // Parts of `into` that were written before may be read after: only what is
  // dead before, not yet live, or written whole at the end can be overwritten.
  const auto &own = uses[into];
  bool isBefore = own.empty() || own.back() <= first;
  bool isAfter = own.empty() || own.front() >= last;
  bool isReplaced = storage[into].persistent >= 0 &&
                    llvm::is_contained(own, last) &&
                    overwritesAll(ops[last], from, into);
  if (!isBefore && !isAfter && !isReplaced)
    return false;
  for (int64_t use : uses[into]) {
    if (use < first || use > last)
      continue;
    if (use == first && overwritesAll(ops[use], into, from))
      continue;
    if (use == last && overwritesAll(ops[use], from, into))
      continue;
    return false;
  }
  return true;
}

void Layout::merge(int64_t from, int64_t into) {
  alias[from] = into;
  SmallVector<int64_t> all;
  std::set_union(uses[from].begin(), uses[from].end(), uses[into].begin(),
                 uses[into].end(), std::back_inserter(all));
  uses[into] = std::move(all);
  uses[from].clear();
}

/// The copies at the end, from a result to its persistent place.
void Layout::mergeReturned() {
  for (Operation *op : ops) {
    auto loops = dyn_cast<rt::LoopsOp>(op);
    if (!loops || !isCopy(loops))
      continue;
    int64_t from = storageOf(op->getOperand(0)),
            to = storageOf(op->getOperand(1));
    if (from >= 0 && to >= 0 && storage[to].persistent >= 0 &&
        sameWalk(op, 0, 1) && canMerge(from, to))
      merge(from, to);
  }
}

void Layout::mergeInPlace() {
  for (auto [index, op] : llvm::enumerate(ops)) {
    if (!isa<rt::LoopsOp, rt::LaunchOp>(op))
      continue;
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      for (unsigned j = i + 1; j < op->getNumOperands(); ++j) {
        int64_t from = storageOf(op->getOperand(i));
        int64_t to = storageOf(op->getOperand(j));
        if (from < 0 || to < 0 || from == to ||
            uses[from].back() != int64_t(index) || !overwritesAll(op, from, to))
          continue;
        if (canMerge(from, to))
          merge(from, to);
        else if (storage[from].isConsumed && canMerge(to, from))
          merge(to, from);
      }
    }
  }
}

void Layout::eraseIdleCopies() {
  for (Operation *&op : ops) {
    auto loops = dyn_cast<rt::LoopsOp>(op);
    if (!loops || !isCopy(loops))
      continue;
    int64_t from = storageOf(op->getOperand(0));
    if (from < 0 || from != storageOf(op->getOperand(1)) || !sameWalk(op, 0, 1))
      continue;
    op->erase();
    op = nullptr;
  }
}

void Layout::place(memory::MemoryPlan &plan) {
  SmallVector<memory::Block> blocks(storage.size(), {0, 0, 0});
  for (auto [index, block] : llvm::enumerate(blocks))
    if (!uses[index].empty() && storage[index].persistent < 0)
      block = {storage[index].bytes, uses[index].front(), uses[index].back()};
  memory::ArenaLayout layout = memory::layOutArena(blocks);
  plan.arenaBytes =
      std::max(plan.arenaBytes, plan.persistentBytes + layout.bytes);
  plan.boundBytes =
      std::max(plan.boundBytes, plan.persistentBytes + layout.bound);
  OpBuilder builder(function.getContext());
  for (auto buffer :
       llvm::make_early_inc_range(function.getBody().getOps<rt::BufferOp>())) {
    if (buffer.use_empty()) {
      buffer.erase();
      continue;
    }
    int64_t index = storageOf(buffer);
    int64_t base = storage[index].persistent >= 0
                       ? plan.tensors[storage[index].persistent].offset
                       : plan.persistentBytes + layout.offsets[index];
    buffer.setOffset(base + buffer.getOffset());
    buffer.removeStorageAttr();
  }
}

void Layout::run(memory::MemoryPlan &plan) {
  number();
  mergeReturned();
  mergeInPlace();
  eraseIdleCopies();
  place(plan);
}

void cpu::layOutStorage(func::FuncOp function, StorageTable storage,
                        memory::MemoryPlan &plan) {
  Layout(function, storage).run(plan);
}
