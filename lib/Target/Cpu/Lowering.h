//===- Lowering.h - A function of nn ops to rt ops --------------*- C++ -*-===//
//
// Goes over a function once, in order. Each tensor is a view of some storage;
// ops that only change the view (reshape, transpose, slice, broadcast) cost
// nothing, and who cannot read through a view asks for a dense copy. A first
// sweep, backwards, lets producers write where their only reader wants it: into
// a part of a concatenation, or transposed.
//
// Storage gets its place in the arena afterwards (StorageLayout.h).
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_TARGET_CPU_LOWERING_H
#define ESPALIER_LIB_TARGET_CPU_LOWERING_H

#include "dialects/Dist/Dist.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"
#include "espalier/Target/Cpu.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "Product.h"
#include "StorageLayout.h"
#include "View.h"

namespace espalier::cpu {

/// What the functions of a program share while they are lowered.
class ProgramState {
public:
  ProgramState(mlir::ModuleOp module, ProgramLayout &layout);

  int64_t rankCount() const { return ranks; }
  /// The index of an op's description.
  int64_t opIndex(mlir::Location loc);
  /// For each rank its position among the ranks that differ from it only in
  /// `axes`, row-major, and the number of these.
  llvm::SmallVector<int64_t> positions(mlir::ArrayAttr axes);
  int64_t groupSize(mlir::ArrayAttr axes);
  /// For each rank the index of that group of ranks.
  llvm::SmallVector<int32_t> groupsOf(mlir::ArrayAttr axes);

  ProgramLayout &layout;

private:
  llvm::SmallVector<std::pair<std::string, int64_t>> axes;
  int64_t ranks = 1;
  llvm::StringMap<int64_t> opIndices;
};

/// An optional buffer of a kernel.
using Operand = std::optional<View>;

class Lowering {
public:
  Lowering(ProgramState &program, mlir::func::FuncOp source,
           mlir::func::FuncOp target);
  mlir::LogicalResult run();

  StorageTable &getStorage() { return storage; }

private:
  //===--- the frame ------------------------------------------------------===//

  void bindArguments();
  void findDemands();
  void findDeferred();
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult lowerLayer(mlir::Operation *op);
  mlir::LogicalResult lowerDist(mlir::Operation *op);
  void lowerReturn(mlir::func::ReturnOp op);
  void mark(mlir::Location loc);

  //===--- views ----------------------------------------------------------===//

  /// The view of a value; materializes it where it has none yet.
  View viewOf(mlir::Value value);
  View computeView(mlir::Value value);
  View constantView(nn::ConstantOp op);
  /// A view without gaps, of a copy where need be.
  View dense(mlir::Value value);
  View dense(const View &view);
  View temporary(llvm::ArrayRef<int64_t> shape, mlir::Type elementType);
  View temporaryFor(mlir::Value value);
  /// Where a result is to be written, strided as its reader wants it.
  View resultView(mlir::Value result);
  /// Where a result is to be written without gaps; finishResults() copies it on
  /// where its reader wants it elsewhere.
  View denseResult(mlir::Value result);
  void finishResults();
  /// As dense() and denseResult(), in fp32 where the type is narrower: what
  /// kernels compute in.
  View kernelOperand(mlir::Value value);
  Operand kernelOperandOrNone(mlir::Value value);
  View kernelResult(mlir::Value result);
  /// The same, strided but for the last dimension.
  View rowsOperand(mlir::Value value);
  View rowsResult(mlir::Value result);
  bool demand(mlir::Value value, const View &view);
  bool canWriteStrided(mlir::Operation *op);

  //===--- emission -------------------------------------------------------===//

  mlir::Value buffer(const View &view);
  using LoopBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::OpBuilder &, mlir::ValueRange)>;
  void loops(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<View> inputs,
             llvm::ArrayRef<View> outputs,
             llvm::ArrayRef<llvm::StringRef> kinds, LoopBody body);
  void copy(const View &from, const View &to);
  /// Converts the elements where the types differ.
  void convert(const View &from, const View &to);
  void fill(const View &to, mlir::TypedAttr value);
  void launch(llvm::StringRef kernel, llvm::ArrayRef<Operand> buffers,
              llvm::ArrayRef<int64_t> integers,
              llvm::ArrayRef<double> reals = {});

  //===--- ops ------------------------------------------------------------===//

  void lowerMap(nn::MapOp op);
  /// A sum some of whose terms are products: these add to the result in place.
  void lowerDeferredSum(nn::MapOp op);
  bool isSumMap(nn::MapOp op);
  void lowerReduce(nn::ReduceOp op);
  void lowerConcat(nn::ConcatOp op);
  void lowerPad(nn::PadOp op);

  void lowerContract(nn::ContractOp op, const View &to, bool accumulate);
  void emitProduct(const Product &product, bool accumulate);
  void lowerScatterAdd(nn::ScatterAddOp op, const View &to, bool accumulate);

  void launchRows(llvm::StringRef kernel, llvm::ArrayRef<Operand> buffers,
                  llvm::ArrayRef<double> reals = {},
                  llvm::ArrayRef<int64_t> more = {});
  bool lowerRows(mlir::Operation *op);
  bool lowerLoss(mlir::Operation *op);
  bool lowerWindows(mlir::Operation *op);
  void lowerGather(nn::GatherOp op);
  void lowerAttention(nn::AttentionOp op);
  void lowerAttentionGrad(nn::AttentionGradOp op);
  void lowerRope(nn::RopeOp op);
  void lowerRandom(nn::RandomUniformOp op);
  template <typename OpT>
  void lowerConv(OpT op, llvm::StringRef kernel, mlir::Value image,
                 mlir::Value filter, mlir::Value result);
  template <typename OpT>
  void lowerPool(OpT op, llvm::StringRef kernel, mlir::Value image,
                 mlir::Value pooled, int64_t flag);

  void lowerAllReduce(dist::AllReduceOp op);
  void lowerAllToAll(dist::AllToAllOp op);
  mlir::LogicalResult lowerShardSlice(dist::ShardSliceOp op);

  ProgramState &program;
  mlir::func::FuncOp source;
  mlir::OpBuilder builder;
  mlir::Location loc;
  StorageTable storage;
  llvm::DenseMap<mlir::Value, View> views, denseViews, demands;
  llvm::DenseSet<mlir::Operation *> deferred; // lowered by the sum they feed
  llvm::DenseSet<mlir::Operation *> done;     // lowered with another op
  std::vector<std::pair<View, View>> unfinished;
  int64_t lastMark = -1;
};

} // namespace espalier::cpu

#endif // ESPALIER_LIB_TARGET_CPU_LOWERING_H
