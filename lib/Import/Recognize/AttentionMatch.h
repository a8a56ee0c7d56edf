//===- AttentionMatch.h - Attention in pieces -*- C++ -*-===//

#ifndef ESPALIER_LIB_IMPORT_RECOGNIZE_ATTENTIONMATCH_H
#define ESPALIER_LIB_IMPORT_RECOGNIZE_ATTENTIONMATCH_H

#include "dialects/Nn/Nn.h"

#include "mlir/IR/PatternMatch.h"

#include <string>

#include "ConstantCache.h"

namespace espalier {

/// What a product of a softmax was found to be. Operands have the letters of
/// their dimensions: b, h as they are, s = queries, t = keys, d, e.
struct AttentionMatch {
  mlir::Value query, key, value;
  std::string queryLetters, keyLetters, valueLetters; // order of dimensions
  std::string outLetters;
  double scale = 1;
  /// Added to the scores, or null.
  mlir::Value addedMask;
  /// Where this is `hiddenIf`, scores are replaced by `hiddenScore`; or null.
  mlir::Value condition;
  bool hiddenIf = false;
  double hiddenScore = 0;
  /// Rows that are masked entirely give zeros: a guard after the softmax, or
  /// softmax's own flag.
  bool guardsRows = false;
};

/// Matches a product of probabilities and values. On failure `reason` says why,
/// if the left operand is a softmax at all; else it is empty.
bool matchAttention(nn::ContractOp product, AttentionMatch &match,
                    std::string &reason);

/// A mask of nn.attention taken apart.
struct SimplifiedMask {
  mlir::Value mask; // null: everything is seen
  bool causal = false;
};

/// Finds what of a mask (rank 4) is causal, and what of it is constantly true.
/// A mask that is added becomes boolean where that computes the same; with
/// `guardsRows` a row that is masked entirely may become zeros.
SimplifiedMask simplifyMask(mlir::PatternRewriter &rewriter,
                            mlir::Location location, ConstantCache &cache,
                            mlir::Value mask, int64_t queries, int64_t keys,
                            bool guardsRows);

/// The value with leading dimensions of size 1 up to rank 4.
mlir::Value withRankFour(mlir::PatternRewriter &rewriter,
                         mlir::Location location, mlir::Value value);

} // namespace espalier

#endif // ESPALIER_LIB_IMPORT_RECOGNIZE_ATTENTIONMATCH_H
