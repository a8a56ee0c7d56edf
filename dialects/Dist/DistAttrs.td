//===- DistAttrs.td - Meshes and shardings -----------------*- tablegen -*-===//

#ifndef ESPALIER_DIALECTS_DIST_DISTATTRS_TD
#define ESPALIER_DIALECTS_DIST_DISTATTRS_TD

include "dialects/Dist/DistDialect.td"
include "mlir/IR/AttrTypeBase.td"

class Dist_Attr<string name, string keyword>
    : AttrDef<Dist_Dialect, name> {
  let mnemonic = keyword;
}

def Dist_MeshAxisAttr : Dist_Attr<"MeshAxis", "mesh_axis"> {
  let summary = "An axis of a mesh: its name, its size, the class of its links";
  let description = [{
    The link class names an entry of the cluster's description: `node` for links
    inside a node, `network` for those between nodes.
  }];
  let parameters = (ins
    StringRefParameter<"name">:$name, "int64_t":$size,
    StringRefParameter<"class of the links">:$link);
  let assemblyFormat = "`<` $name `=` $size `,` $link `>`";
  let genVerifyDecl = 1;
}

def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "How a tensor lies on the mesh";
  let description = [{
    For each dimension the axes that cut it, major to minor; then the axes over which
    the value is partial, with the reduction that completes it. Over the axes that are
    not named the tensor is replicated.

    n elements over axes a1, a2, ... are cut by nested ceilings: into blocks of
    ceil(n / a1), then each block over a2. 10 over 4 x 2 is 2,1,2,1,2,1,1,0. What a
    block lacks is padding, without defined content.

    `#dist.sharding<[["dp"], []]>` cuts the rows over dp;
    `#dist.sharding<[[], ["tp"]] partial {"dp": sum}>` cuts the columns over tp, and
    the sum over dp is still to be taken.

    Constraints:

    - (C1) No axis occurs twice.
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::ArrayAttr", "axes of each dimension">:$dims,
    ArrayRefParameter<"::mlir::StringAttr", "partial axes">:$partialAxes,
    ArrayRefParameter<"::espalier::ReductionKind">:$partialKinds);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // ESPALIER_DIALECTS_DIST_DISTATTRS_TD
