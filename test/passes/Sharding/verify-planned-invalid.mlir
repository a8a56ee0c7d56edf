// RUN: espalier-opt %s --espalier-verify-planned --split-input-file --verify-diagnostics

dist.mesh @mesh [#dist.mesh_axis<"dp" = 2, "node">, #dist.mesh_axis<"tp" = 2, "node">]

// A contraction over a cut dimension leaves a partial sum.
func.func @missing_partial(%a: tensor<4x8xf32, #dist.sharding<[[], ["tp"]]>>,
                           %b: tensor<8x2xf32, #dist.sharding<[["tp"], []]>>) {
  // expected-error @+1 {{has a result that is partial over 'tp' by sum, but its type is}}
  %c = nn.contract "ik,kj->ij" %a, %b
      : tensor<4x8xf32, #dist.sharding<[[], ["tp"]]>>, tensor<8x2xf32, #dist.sharding<[["tp"], []]>>
        -> tensor<4x2xf32, #dist.sharding<[[], []]>>
  return
}

// -----

dist.mesh @mesh [#dist.mesh_axis<"dp" = 2, "node">, #dist.mesh_axis<"tp" = 2, "node">]

// A bias that is not partial, added to partial sums, would count once a rank.
func.func @partial_plus_replicated(%a: tensor<4xf32, #dist.sharding<[[]] partial {"tp": sum}>>,
                                   %b: tensor<4xf32, #dist.sharding<[[]]>>) {
  // expected-error @+1 {{takes values that are partial over 'tp', in which it is not linear}}
  %c = nn.map %a, %b : (tensor<4xf32, #dist.sharding<[[]] partial {"tp": sum}>>, tensor<4xf32, #dist.sharding<[[]]>>)
      -> tensor<4xf32, #dist.sharding<[[]] partial {"tp": sum}>> {
  ^bb0(%x: f32, %y: f32):
    %s = arith.addf %x, %y : f32
    nn.yield %s : f32
  }
  return
}

// -----

dist.mesh @mesh [#dist.mesh_axis<"dp" = 2, "node">, #dist.mesh_axis<"tp" = 2, "node">]

func.func @whole(%x: tensor<4x8xf32, #dist.sharding<[[], ["tp"]]>>) {
  // expected-error @+1 {{needs a dimension whole that is cut in}}
  %y = nn.softmax %x : tensor<4x8xf32, #dist.sharding<[[], ["tp"]]>>
      -> tensor<4x8xf32, #dist.sharding<[[], ["tp"]]>>
  return
}

// -----

dist.mesh @mesh [#dist.mesh_axis<"dp" = 2, "node">, #dist.mesh_axis<"tp" = 2, "node">]

func.func @hidden_reshard(%x: tensor<4x8xf32, #dist.sharding<[["dp"], []]>>) {
  // expected-error @+1 {{has tensors that cut one dimension differently}}
  %y = nn.transpose %x [1, 0] : tensor<4x8xf32, #dist.sharding<[["dp"], []]>>
      -> tensor<8x4xf32, #dist.sharding<[["dp"], []]>>
  return
}

// -----

dist.mesh @mesh [#dist.mesh_axis<"dp" = 2, "node">]

func.func @made_partial(%x: tensor<4xf32, #dist.sharding<[[]]>>) {
  // expected-error @+1 {{makes a value partial over "dp"}}
  %y = dist.reshard %x : tensor<4xf32, #dist.sharding<[[]]>> -> tensor<4xf32, #dist.sharding<[[]] partial {"dp": sum}>>
  return
}

// -----

dist.mesh @mesh [#dist.mesh_axis<"dp" = 2, "node">]

func.func @no_sharding(%x: tensor<4xf32, #dist.sharding<[[]]>>) {
  // expected-error @+1 {{has a tensor without a sharding of its rank}}
  %y = nn.reshape %x : tensor<4xf32, #dist.sharding<[[]]>> -> tensor<2x2xf32>
  return
}

// -----

dist.mesh @mesh [#dist.mesh_axis<"dp" = 3, "node">]

func.func @does_not_divide(%x: tensor<4xf32, #dist.sharding<[["dp"]]>>) {
  // expected-error @+1 {{has a dimension of 4 elements cut into 3 blocks}}
  %y = nn.softmax_grad %x, %x : tensor<4xf32, #dist.sharding<[["dp"]]>>, tensor<4xf32, #dist.sharding<[["dp"]]>>
      -> tensor<4xf32, #dist.sharding<[["dp"]]>>
  return
}
