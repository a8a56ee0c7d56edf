//===- AttentionMatch.cpp - Attention in pieces ---------------------------===//
//
//   softmax(scale * q k^T + mask) v
//
// with the scale on the scores or on either side, the mask added or selected,
// and perhaps a guard that turns NaN of rows without a key into zeros.
//
//===----------------------------------------------------------------------===//

#include "AttentionMatch.h"

#include "dialects/Nn/NnShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "MapMatch.h"

using namespace mlir;
using namespace espalier;
using nn::rankOf;
using nn::shapeOf;

/// select(isnan(p), 0, p) and its like with the guard in one map: p, or null.
static Value matchGuard(Value value) {
  auto select = matchMap<arith::SelectOp>(value);
  if (!select || !(*select)[0].tensor || (*select)[1].number != 0.0 ||
      !(*select)[2].tensor)
    return {};
  Value probabilities = (*select)[2].tensor;
  auto compare = matchMap<arith::CmpFOp>((*select)[0].tensor);
  if (!compare || (*compare)[0].tensor != probabilities ||
      (*compare)[1].tensor != probabilities)
    return {};
  auto map = (*select)[0].tensor.getDefiningOp<nn::MapOp>();
  auto op = map.getBody().front().getTerminator()->getOperand(0);
  bool isNan = op.getDefiningOp<arith::CmpFOp>().getPredicate() ==
               arith::CmpFPredicate::UNO;
  return isNan ? probabilities : Value();
}

/// Takes factors and transposes off a product's operand.
static void peelOperand(Value &value, std::string &letters, double &scale) {
  while (true) {
    if (auto scaled = matchScaled(value);
        scaled && scaled->tensor.getType() == value.getType()) {
      scale *= scaled->number;
      value = scaled->tensor;
    } else if (auto transpose = value.getDefiningOp<nn::TransposeOp>()) {
      std::string moved = letters;
      for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
        moved[dim] = letters[i];
      letters = moved;
      value = transpose.getInput();
    } else {
      return;
    }
  }
}

/// The scores' product and its operands, once scale and mask are off.
static bool matchScores(nn::ContractOp scores, AttentionMatch &match,
                        std::string &reason) {
  auto [lhs, rhs, out] = scores.getLetters();
  // Rename to b, h, s, t of the result and d of what is summed.
  std::string names[] = {lhs.str(), rhs.str()};
  std::string summed;
  for (char c : lhs)
    if (!out.contains(c))
      summed += c;
  if (out.size() != 4 || summed.size() != 1 || lhs.size() != 4 ||
      rhs.size() != 4) {
    reason = "scores are no product of rank 4";
    return false;
  }
  for (std::string &name : names)
    for (char &c : name)
      c = c == summed[0] ? 'd' : "bhst"[out.find(c)];
  bool isQueryFirst = StringRef(names[0]).contains('s');
  int query = isQueryFirst ? 0 : 1;
  auto has = [&](int side, StringRef letters) {
    return llvm::all_of(
        letters, [&](char c) { return StringRef(names[side]).contains(c); });
  };
  if (!has(query, "bhsd") || !has(1 - query, "bhtd")) {
    reason = "scores are no product of queries and keys";
    return false;
  }
  Value operands[] = {scores.getLhs(), scores.getRhs()};
  match.query = operands[query];
  match.key = operands[1 - query];
  match.queryLetters = names[query];
  match.keyLetters = names[1 - query];
  peelOperand(match.query, match.queryLetters, match.scale);
  peelOperand(match.key, match.keyLetters, match.scale);
  return true;
}

/// A map of the scores and a mask: the scores, the mask in `match`; null if it
/// is none.
static Value peelMask(Value value, AttentionMatch &match) {
  auto sameShape = [&](Value x) {
    return x && shapeOf(x) == shapeOf(value) && !matchConstant(x);
  };
  if (auto sum = matchMap<arith::AddFOp>(value)) {
    for (int side : {0, 1}) {
      Value scores = (*sum)[side].tensor, mask = (*sum)[1 - side].tensor;
      // Of two operands of this shape the product is the scores.
      bool isProduct = scores && (scores.getDefiningOp<nn::ContractOp>() ||
                                  matchScaled(scores));
      if (!sameShape(scores) || !mask || match.addedMask ||
          (sameShape(mask) && !isProduct))
        continue;
      match.addedMask = mask;
      return scores;
    }
    return {};
  }
  auto select = matchMap<arith::SelectOp>(value);
  if (!select || !(*select)[0].tensor || match.condition)
    return {};
  for (int side : {1, 2}) {
    Value scores = (*select)[side].tensor;
    std::optional<double> hidden = (*select)[3 - side].number;
    if (!sameShape(scores) || !hidden || !isMasking(*hidden))
      continue;
    match.condition = (*select)[0].tensor;
    match.hiddenIf = side == 2;
    match.hiddenScore = *hidden;
    return scores;
  }
  return {};
}

bool espalier::matchAttention(nn::ContractOp product, AttentionMatch &match,
                              std::string &reason) {
  auto [lhs, rhs, out] = product.getLetters();
  Value probabilities = product.getLhs();
  if (Value guarded = matchGuard(probabilities)) {
    probabilities = guarded;
    match.guardsRows = true;
  }
  auto softmax = probabilities.getDefiningOp<nn::SoftmaxOp>();
  if (!softmax)
    return false;
  match.guardsRows |= softmax.getZeroMaskedRows();
  if (lhs.size() != 4 || rhs.size() != 4 || out.size() != 4) {
    reason = "the product is not of rank 4";
    return false;
  }
  // b, h, s, t by position in the probabilities; e is what values add.
  auto rename = [&, left = lhs](StringRef letters) {
    std::string names;
    for (char c : letters)
      names += left.contains(c) ? "bhst"[left.find(c)] : 'e';
    return names;
  };
  match.valueLetters = rename(rhs);
  match.outLetters = rename(out);
  match.value = product.getRhs();
  auto has = [](StringRef names, StringRef letters) {
    return llvm::all_of(letters, [&](char c) { return names.contains(c); });
  };
  if (!has(match.valueLetters, "bhte") || !has(match.outLetters, "bhse")) {
    reason = "the product is none of probabilities and values";
    return false;
  }
  double outer = 1; // factors that the mask has too
  for (Value value = softmax.getInput();;) {
    if (auto scores = value.getDefiningOp<nn::ContractOp>()) {
      if (!matchScores(scores, match, reason))
        return false;
      match.scale *= outer;
      return true;
    }
    if (auto scaled = matchScaled(value)) {
      if (match.addedMask || match.condition)
        match.scale *= scaled->number;
      else
        outer *= scaled->number;
      value = scaled->tensor;
      continue;
    }
    value = outer == 1 ? peelMask(value, match) : Value();
    if (!value) {
      reason = "something other than a scale or a mask is done to the scores";
      return false;
    }
  }
}
