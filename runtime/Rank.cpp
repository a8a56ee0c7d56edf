//===- Rank.cpp - What one rank's process has, and the functions of abi.h -===//

#include "runtime/Rank.h"

#include "runtime/Gemm.h"
#include "runtime/Reduce.h"

namespace espalier::runtime {

Rank::Rank(const EspalierProgram &program, const Metadata &metadata,
           const Segment &segment, int32_t rank, bool supervised)
    : program(program), metadata(metadata), segment(segment),
      communicator(segment, metadata, rank, supervised),
      slot(segment.slot(rank)),
      context{segment.arena(rank), rank, segment.plan().ranks, 0, 0, this} {
  if (segment.plan().profileEntries != 0)
    profile = Profile(segment.profile(rank), metadata.ops.size());
}

const EspalierClass &Rank::ownClass() const {
  return program.classes[program.classOfRank[context.rank]];
}

uint8_t *Rank::place(const TensorInfo &tensor, int32_t rank) const {
  int64_t offset =
      tensor.offsets[static_cast<size_t>(program.classOfRank[rank])];
  return offset < 0 ? nullptr : segment.arena(rank) + offset;
}

namespace {

Rank &rankOf(EspalierContext *context) {
  return *static_cast<Rank *>(context->runtime);
}

void mark(Rank &rank, int32_t op) {
  rank.slot.op.store(op + 1, std::memory_order_relaxed);
  rank.profile.op(op);
}

void checkReduction(Rank &rank, EspalierDtype dtype,
                    EspalierReduction reduction) {
  if (!isReducible(dtype, reduction))
    rank.communicator.fail(ExitInput,
                           std::string("not supported: this reduction of ") +
                               dtypeName(dtype) + ", " +
                               describeSlot(rank.slot, rank.metadata));
}

/// Runs a collective of `op`, and times it where times are wanted.
template <typename Body>
void collective(EspalierContext *context, int32_t op, CollectiveKind kind,
                Body body) {
  Rank &rank = rankOf(context);
  mark(rank, op);
  double start = rank.profile.enabled() ? monotonicSeconds() : 0;
  body(rank);
  if (rank.profile.enabled())
    rank.profile.collective(kind, monotonicSeconds() - start);
}

} // namespace
} // namespace espalier::runtime

using namespace espalier::runtime;

// Their parameters are what abi.h says. NOLINTBEGIN(readability-function-size)
void espalierRtAllReduce(EspalierContext *context, int32_t op, int32_t group,
                         EspalierReduction reduction, EspalierDtype dtype,
                         int32_t buffers, const uint64_t *offsets,
                         const uint64_t *counts) {
  collective(context, op, CollectiveKind::AllReduce, [&](Rank &rank) {
    checkReduction(rank, dtype, reduction);
    rank.communicator.allReduce(group, reduction, dtype, buffers, offsets,
                                counts);
  });
}

void espalierRtAllGather(EspalierContext *context, int32_t op, int32_t group,
                         EspalierDtype dtype, uint64_t outer, uint64_t count,
                         uint64_t input, uint64_t output) {
  collective(context, op, CollectiveKind::AllGather, [&](Rank &rank) {
    rank.communicator.allGather(group, {dtype, outer, count, input, output});
  });
}

void espalierRtReduceScatter(EspalierContext *context, int32_t op,
                             int32_t group, EspalierReduction reduction,
                             EspalierDtype dtype, uint64_t outer,
                             uint64_t count, uint64_t input, uint64_t output) {
  collective(context, op, CollectiveKind::ReduceScatter, [&](Rank &rank) {
    checkReduction(rank, dtype, reduction);
    rank.communicator.reduceScatter(group, reduction,
                                    {dtype, outer, count, input, output});
  });
}

void espalierRtAllToAll(EspalierContext *context, int32_t op, int32_t group,
                        EspalierDtype dtype, uint64_t outer, uint64_t count,
                        uint64_t input, uint64_t output) {
  collective(context, op, CollectiveKind::AllToAll, [&](Rank &rank) {
    rank.communicator.allToAll(group, {dtype, outer, count, input, output});
  });
}

void espalierRtGemm(EspalierContext *context, int32_t transposeA,
                    int32_t transposeB, int64_t m, int64_t n, int64_t k,
                    float alpha, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float beta, float *c, int64_t ldc,
                    int64_t batch, int64_t strideA, int64_t strideB,
                    int64_t strideC) {
  int status = gemm({transposeA != 0, transposeB != 0, m, n, k, alpha, a, lda,
                     b, ldb, beta, c, ldc, batch, strideA, strideB, strideC});
  if (status == 0)
    return;
  Rank &rank = rankOf(context);
  rank.communicator.fail(
      ExitInput,
      status < 0 ? "the plan multiplies matrices by oneDNN, but its metadata "
                   "does not name the library"
                 : "oneDNN failed with status " + std::to_string(status) + " " +
                       describeSlot(rank.slot, rank.metadata));
}

void espalierRtMark(EspalierContext *context, int32_t op) {
  mark(rankOf(context), op);
}
// NOLINTEND(readability-function-size)
