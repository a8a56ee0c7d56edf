//===- RtDialect.td - The rt dialect -----------------------*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_RT_RTDIALECT_TD
#define ESPALIER_DIALECTS_RT_RTDIALECT_TD

include "mlir/IR/DialectBase.td"

def Rt_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::espalier::rt";
  let summary = "A rank's program on buffers of its arena";
  let description = [{
    The level that code generation starts from: straight-line functions whose ops
    are kernels and calls of the runtime, on buffers at fixed places of the rank's
    arena. There is one op for each function of `espalier/runtime/abi.h`, one for
    kernels of the library and one for generated kernels.

    A buffer is a one-dimensional `memref`: the elements from its first to its
    last. How an op walks over it, by sizes and strides, is the op's matter.
  }];
}

#endif // ESPALIER_DIALECTS_RT_RTDIALECT_TD
