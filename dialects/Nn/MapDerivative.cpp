//===- MapDerivative.cpp - Derivatives of scalar computations ---------===//
