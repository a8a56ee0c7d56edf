//===- DistDialect.td - The dist dialect -------------------*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_DIST_DISTDIALECT_TD
#define ESPALIER_DIALECTS_DIST_DISTDIALECT_TD

include "mlir/IR/DialectBase.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::espalier::dist";
  let summary = "Meshes, shardings and collectives";
  let description = [{
    Says how tensors lie on a mesh of devices. Above partitioning a tensor's type
    carries its sharding, as the type's encoding, and shardings change only at
    `dist.reshard`. Below it, types are those of one rank's blocks, and the
    collectives are explicit.

    Devices are numbered row-major over the mesh, the last axis fastest. A group of
    axes joins the devices that differ only in these axes.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
  }];
}

#endif // ESPALIER_DIALECTS_DIST_DISTDIALECT_TD
