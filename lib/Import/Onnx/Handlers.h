//===- Handlers.h - One function for each kind of op -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_ONNX_HANDLERS_H
#define ESPALIER_LIB_IMPORT_ONNX_HANDLERS_H

namespace espalier::onnx {

class NodeContext;
using Handler = void(NodeContext &);

// EmitUnary.cpp, EmitBinary.cpp
Handler emitUnary, emitArithmetic, emitPow, emitMod, emitCompare, emitLogic,
    emitIsNan, emitIsInf, emitWhere, emitPrelu, emitClip, emitCast,
    emitCastLike;

// EmitShape.cpp
Handler emitIdentity, emitShape, emitSize, emitReshape, emitFlatten,
    emitSqueeze, emitUnsqueeze, emitTranspose, emitExpand, emitTile,
    emitDepthToSpace, emitSpaceToDepth;

// EmitParts.cpp
Handler emitConcat, emitSplit, emitSplitToSequence, emitSequenceAt,
    emitSequenceConstruct, emitConcatFromSequence, emitSlice, emitPad;

// EmitConstants.cpp
Handler emitConstant, emitConstantOfShape, emitRange, emitTrilu, emitEyeLike,
    emitCumSum, emitOneHot;

// EmitGather.cpp
Handler emitGather, emitGatherNd, emitGatherElements;

// EmitReduce.cpp
Handler emitReduce, emitSoftmax, emitLogSoftmax;

// EmitLinear.cpp
Handler emitMatMul, emitGemm, emitEinsum;

// EmitWindow.cpp
Handler emitConv, emitMaxPool, emitAveragePool, emitGlobalAveragePool,
    emitGlobalMaxPool;

// EmitNorm.cpp
Handler emitBatchNorm, emitLayerNorm, emitRmsNorm, emitInstanceNorm,
    emitGroupNorm, emitLpNorm;

// EmitTransformer.cpp
Handler emitAttention, emitRotaryEmbedding, emitDropout;

} // namespace espalier::onnx

#endif // ESPALIER_LIB_IMPORT_ONNX_HANDLERS_H
