#!/usr/bin/python3
"""Writes a GPT over bytes as an ONNX file, with nothing but the standard library.

    make_gpt.py -o gpt.onnx [--layers 8] [--width 320] [--heads 5] [--context 128]

A decoder as GPT-2's: learned positions, norms before the blocks, GELU, the embedding
again as the last projection; the weights start as its do.
"""
import argparse
import array
import random
import statistics
import struct

VOCABULARY = 256
EPSILON = 1e-5
FLOAT, INT64 = 1, 7  # of TensorProto.DataType


# ---- Protobuf: a message is its fields, one after the other ----

def varint(value):
    data = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def field(number, value):
    """A field of a message: an integer, text, bytes or another message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(number, values):
    return b"".join(field(number, value) for value in values)


# ---- ONNX: the messages of onnx.proto that a graph needs ----

def tensor(name, kind, shape, data):
    return fields(1, shape) + field(2, kind) + field(8, name) + field(9, data)


def attribute(name, value):
    if isinstance(value, float):
        body = varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    elif isinstance(value, int):
        body = field(3, value) + field(20, 2)
    elif isinstance(value, str):
        body = field(4, value) + field(20, 3)
    elif isinstance(value, bytes):
        body = field(5, value) + field(20, 4)
    else:
        body = fields(8, value) + field(20, 7)
    return field(1, name) + body


def value_info(name, kind, shape):
    """A graph's input or output; a dimension is a number or a name."""
    dims = fields(1, [field(1 if isinstance(dim, int) else 2, dim) for dim in shape])
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


class Graph:
    """A graph in the making. Operators return the name of their (first) output."""

    def __init__(self):
        self.nodes = []
        self.initializers = []
        self.parameters = 0
        # Quantiles of the normal distribution: drawing from a table is quick.
        normal = statistics.NormalDist()
        self.deviates = [normal.inv_cdf((i + 0.5) / 4096) for i in range(4096)]

    def op(self, kind, *inputs, name, outputs=1, **attributes):
        results = [name if i == 0 else f"{name}.{i}" for i in range(outputs)]
        self.nodes.append(fields(1, inputs) + fields(2, results) + field(3, name) + field(4, kind) +
                          fields(5, [attribute(*item) for item in attributes.items()]))
        return results[0] if outputs == 1 else results

    def constant(self, name, kind, shape, values):
        data = struct.pack(f"<{len(values)}{'q' if kind == INT64 else 'f'}", *values)
        return self.op("Constant", name=name, value=tensor("", kind, shape, data))

    def parameter(self, name, shape, *, deviation=0.0, mean=0.0):
        count = 1
        for dim in shape:
            count *= dim
        self.parameters += count
        if deviation:
            scaled = [mean + deviation * deviate for deviate in self.deviates]
            values = array.array("f", random.choices(scaled, k=count))
        else:
            values = array.array("f", [mean]) * count
        self.initializers.append(tensor(name, FLOAT, shape, values.tobytes()))
        return name

    def linear(self, x, name, inputs, outputs, deviation):
        weight = self.parameter(f"{name}.weight", [inputs, outputs], deviation=deviation)
        bias = self.parameter(f"{name}.bias", [outputs])
        product = self.op("MatMul", x, weight, name=f"{name}.product")
        return self.op("Add", product, bias, name=name + ".sum")

    def norm(self, x, name, width):
        scale = self.parameter(f"{name}.weight", [width], mean=1.0)
        bias = self.parameter(f"{name}.bias", [width])
        return self.op("LayerNormalization", x, scale, bias, name=f"{name}.normal", axis=-1, epsilon=EPSILON)


# ---- The model ----

def attention(graph, x, mask, name, options, deviation):
    width, heads = options.width, options.heads
    size = width // heads
    qkv = graph.linear(x, f"{name}.qkv", width, 3 * width, 0.02)
    parts = graph.op("Split", qkv, name=f"{name}.split", outputs=3, axis=-1, num_outputs=3)
    split = graph.constant(f"{name}.split_shape", INT64, [4], [0, 0, heads, size])
    q, k, v = (graph.op("Reshape", part, split, name=f"{name}.{letter}_heads")
               for part, letter in zip(parts, "qkv"))
    q = graph.op("Transpose", q, name=f"{name}.q", perm=[0, 2, 1, 3])
    k = graph.op("Transpose", k, name=f"{name}.k", perm=[0, 2, 3, 1])
    v = graph.op("Transpose", v, name=f"{name}.v", perm=[0, 2, 1, 3])
    scale = graph.constant(f"{name}.scale", FLOAT, [], [size ** -0.5])
    never = graph.constant(f"{name}.never", FLOAT, [], [float("-inf")])
    scores = graph.op("MatMul", q, k, name=f"{name}.scores")
    scores = graph.op("Mul", scores, scale, name=f"{name}.scaled")
    scores = graph.op("Where", mask, scores, never, name=f"{name}.masked")
    weights = graph.op("Softmax", scores, name=f"{name}.weights", axis=-1)
    y = graph.op("MatMul", weights, v, name=f"{name}.mixed")
    y = graph.op("Transpose", y, name=f"{name}.rows", perm=[0, 2, 1, 3])
    joined = graph.constant(f"{name}.joined_shape", INT64, [3], [0, 0, width])
    y = graph.op("Reshape", y, joined, name=f"{name}.joined")
    return graph.linear(y, f"{name}.projection", width, width, deviation)


def block(graph, x, mask, name, options):
    width = options.width
    deviation = 0.02 / (2 * options.layers) ** 0.5  # what ends in the residual stream
    y = graph.norm(x, f"{name}.norm1", width)
    y = attention(graph, y, mask, f"{name}.attention", options, deviation)
    x = graph.op("Add", x, y, name=f"{name}.middle")
    y = graph.norm(x, f"{name}.norm2", width)
    y = graph.linear(y, f"{name}.mlp.up", width, 4 * width, 0.02)
    y = graph.op("Gelu", y, name=f"{name}.mlp.gelu", approximate="tanh")
    y = graph.linear(y, f"{name}.mlp.down", 4 * width, width, deviation)
    return graph.op("Add", x, y, name=f"{name}.out")


def causal_mask(graph, positions):
    """[sequence, sequence], true where a row's position may see a column's."""
    axes = [graph.constant(f"axis{axis}", INT64, [1], [axis]) for axis in (0, 1)]
    columns = graph.op("Unsqueeze", positions, axes[0], name="columns")
    rows = graph.op("Unsqueeze", positions, axes[1], name="rows")
    return graph.op("LessOrEqual", columns, rows, name="mask")


def make(options):
    graph = Graph()
    table = graph.parameter("wte.weight", [VOCABULARY, options.width], deviation=0.02)
    places = graph.parameter("wpe.weight", [options.context, options.width], deviation=0.01)
    zero, one = (graph.constant(name, INT64, [], [value]) for name, value in (("zero", 0), ("one", 1)))
    shape = graph.op("Shape", "input_ids", name="shape")
    length = graph.op("Gather", shape, one, name="length", axis=0)
    positions = graph.op("Range", zero, length, one, name="positions")
    mask = causal_mask(graph, positions)
    x = graph.op("Add", graph.op("Gather", table, "input_ids", name="tokens"),
                 graph.op("Gather", places, positions, name="places"), name="embedded")
    for layer in range(options.layers):
        x = block(graph, x, mask, f"h.{layer}", options)
    x = graph.norm(x, "norm", options.width)
    head = graph.op("Transpose", table, name="head", perm=[1, 0])
    graph.op("MatMul", x, head, name="logits")
    body = (fields(1, graph.nodes) + field(2, "gpt") + fields(5, graph.initializers) +
            field(11, value_info("input_ids", INT64, ["batch", "sequence"])) +
            field(12, value_info("logits", FLOAT, ["batch", "sequence", VOCABULARY])))
    model = field(1, 10) + field(2, "make_gpt.py") + field(7, body) + field(8, field(1, "") + field(2, 20))
    return model, graph.parameters


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="output", required=True)
    for name, value in (("layers", 8), ("width", 320), ("heads", 5), ("context", 128), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    if options.width % options.heads:
        parser.error("the width must be a multiple of the number of heads")
    random.seed(options.seed)
    model, parameters = make(options)
    with open(options.output, "wb") as file:
        file.write(model)
    print(f"{options.output}: {parameters / 1e6:.2f}M parameters, {options.layers} layers")


if __name__ == "__main__":
    main()
