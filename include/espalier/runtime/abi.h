/*===- abi.h - The contract between compiled programs and the runtime -*- C
 * -*-===*
 *
 * All that compiler and runtime share. A training binary is one object file
 * that the compiler emits, linked with the runtime's library:
 *
 *   the object defines      espalierProgram            (EspalierProgram)
 *   the runtime defines     main, and the functions espalierRt* below
 *
 * A rank is one process with one thread of computation. All of its tensors lie
 * in one arena whose offsets the compiler has fixed; a function of the program
 * gets the context of its rank and addresses tensors as context->arena +
 * offset. What is not on the hot path (tensors' names, the data source, the
 * optimizer's settings) is in the program's metadata, a JSON text whose schema
 * runtime/README.md gives.
 *
 *===----------------------------------------------------------------------===*/

#ifndef ESPALIER_RUNTIME_ABI_H
#define ESPALIER_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This is C. NOLINTBEGIN(modernize-use-using) */

/* Raised by one with every change of this file. */
#define ESPALIER_ABI_VERSION 1

typedef enum EspalierDtype {
  EspalierF32 = 0,
  EspalierF64 = 1,
  EspalierBf16 = 2,
  EspalierI64 = 3,
  EspalierI32 = 4,
  EspalierI1 = 5 /* one byte, 0 or 1 */
} EspalierDtype;

typedef enum EspalierReduction {
  EspalierSum = 0,
  EspalierMax = 1,
  EspalierMin = 2,
  EspalierProd = 3
} EspalierReduction;

/* What a rank's generated code sees of its runtime. */
typedef struct EspalierContext {
  uint8_t *arena; /* 64-byte aligned */
  int32_t rank;   /* 0 .. ranks-1, row-major over the mesh */
  int32_t ranks;
  int64_t step;       /* from 0 */
  int64_t microBatch; /* from 0, within the step */
  void *runtime;      /* the runtime's own */
} EspalierContext;

typedef void (*EspalierFunction)(EspalierContext *context);

/* The program of one class of ranks. A step is
 *   load(0) first  load(1) next  load(2) next ...  update
 * with load(i) the runtime's: it fills the inputs of microbatch i. */
typedef struct EspalierClass {
  EspalierFunction first;  /* a microbatch that starts the accumulation */
  EspalierFunction next;   /* a microbatch that continues it */
  EspalierFunction update; /* once a step */
  uint64_t arenaBytes;
} EspalierClass;

typedef struct EspalierProgram {
  uint32_t abiVersion;
  int32_t ranks;
  const EspalierClass *classes;
  int32_t classCount;
  const int32_t *classOfRank; /* ranks entries */
  const char *metadata;       /* JSON, zero-terminated */
} EspalierProgram;

extern const EspalierProgram espalierProgram;

/* Collectives. `group` is an index into the metadata's groups; every rank of a
 * group calls the same sequence. `offset` are places in the arena, equal on all
 * ranks of the group (the arena is symmetric). Sums are taken in the order of
 * the group's ranks, in fp32 or wider, so that results do not depend on timing.
 * A collective that fails (a lost rank) does not return: the runtime ends the
 * process with the exit status that its README gives. `op` is an index into the
 * metadata's ops, for messages. */

/* Each of the `buffers` regions of counts[i] elements at offsets[i] becomes the
 * reduction over the group, in place. One call is one bucket. */
void espalierRtAllReduce(EspalierContext *context, int32_t op, int32_t group,
                         EspalierReduction reduction, EspalierDtype dtype,
                         int32_t buffers, const uint64_t *offsets,
                         const uint64_t *counts);

/* The block of member i of the group, `count` elements at `input`, becomes
 * block i of `output` on all. `outer` of these lie one after another in input,
 * and the blocks of each are adjacent in output: output[o][i][count]. */
void espalierRtAllGather(EspalierContext *context, int32_t op, int32_t group,
                         EspalierDtype dtype, uint64_t outer, uint64_t count,
                         uint64_t input, uint64_t output);

/* The inverse: member i gets the reduction of block i, input[o][i][count] to
 * output[o][count]. */
void espalierRtReduceScatter(EspalierContext *context, int32_t op,
                             int32_t group, EspalierReduction reduction,
                             EspalierDtype dtype, uint64_t outer,
                             uint64_t count, uint64_t input, uint64_t output);

/* Member i's block j becomes member j's block i: input[o][j][count] to
 * output[i][o][count]. */
void espalierRtAllToAll(EspalierContext *context, int32_t op, int32_t group,
                        EspalierDtype dtype, uint64_t outer, uint64_t count,
                        uint64_t input, uint64_t output);

/* C[m, n] = alpha * op(A) op(B) + beta * C in fp32, row-major, ld* the distance
 * between rows; transposeA, transposeB are 0 or 1. `batch` products, with
 * strides in elements (0: the same matrix for all). */
void espalierRtGemm(EspalierContext *context, int32_t transposeA,
                    int32_t transposeB, int64_t m, int64_t n, int64_t k,
                    float alpha, const float *a, int64_t lda, const float *b,
                    int64_t ldb, float beta, float *c, int64_t ldc,
                    int64_t batch, int64_t strideA, int64_t strideB,
                    int64_t strideC);

/* Marks that `op` (an index into the metadata's ops) begins: what a message
 * about a lost rank names, and what --profile times. */
void espalierRtMark(EspalierContext *context, int32_t op);

/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif

#endif /* ESPALIER_RUNTIME_ABI_H */
