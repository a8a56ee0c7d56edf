//===- AutodiffOpInterface.cpp ----------------------------------------===//

#include "dialects/Interfaces/AutodiffOpInterface.h"

#include "dialects/Interfaces/AutodiffOpInterface.cpp.inc"
