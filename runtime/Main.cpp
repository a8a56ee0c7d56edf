//===- Main.cpp - The main function of a training binary ------------------===//

#include "runtime/Training.h"

int main(int count, char **arguments) {
  return espalier::runtime::train(espalierProgram, count, arguments);
}
