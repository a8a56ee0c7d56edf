#!/usr/bin/python3
"""Trains the models of test/models in several layouts and compares with PyTorch.

    train_models.py --build build/release [--layout "{dp: 2}" ...] [--only mlp ...]

Each model and layout is compiled and trained in a folder of its own. Right is a loss
within 5e-4 of max(1, reference), and a tensor within 2e-2 of what PyTorch changed it by;
where that is less than a twentieth of the median tensor's change, of the twentieth (a bias
that softmax cancels is moved by rounding alone). A cell shows the worst loss and tensor,
each as a part of what is allowed. Exit status 0 only if all is right.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile

import numpy
import yaml

LOSS_TOLERANCE = 5e-4
TENSOR_TOLERANCE = 2e-2
SMALLEST_UPDATE = 1 / 20  # of the median
TIME_LIMIT = 300  # seconds, of one command

TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"


class Wrong(Exception):
    """What is wrong with one model in one layout."""


def read_safetensors(path):
    content = path.read_bytes()
    (size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        values = numpy.frombuffer(content[8 + size + first:8 + size + last], TYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).astype(numpy.float64)
    return tensors


def read_checkpoint(folder):
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    tensors = {}
    for file in sorted(set(index["weight_map"].values())):
        tensors |= read_safetensors(folder / file)
    return tensors


def adapt(job, layout):
    """The job in a layout: as many devices as it has, and a microbatch that divides."""
    if layout != "auto":
        devices = math.prod(numpy.prod(layout.get(axis, 1)) for axis in ("dp", "tp", "pp", "cp"))
        job["cluster"] |= {"nodes": 1, "devices_per_node": int(devices)}
        dp = layout.get("dp", 1)
        statistics_of_all = job["train"].get("batch_norm") == "train"
        divides = job["train"]["global_batch"] % (dp * job["dims"]["batch"]) == 0
        if statistics_of_all or not divides:
            job["dims"]["batch"] = "auto"
    job["layout"] = layout
    return job


def run(command, folder):
    """Runs in a session of its own, so that a rank that hangs ends with it."""
    process = subprocess.Popen(command, cwd=folder, text=True, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = process.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise Wrong(f"{command[0]} took more than {TIME_LIMIT} s")
    if process.returncode:
        lines = output.strip().splitlines()[:5] or ["no message"]
        raise Wrong(f"{pathlib.Path(command[0]).name} ended with {process.returncode}: " + "\n  ".join(lines))


def worst_loss(log, reference):
    """The largest difference as a part of what is allowed, and its step."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    losses = {line["step"]: line["loss"] for line in lines}
    if sorted(losses) != list(range(1, reference["steps"] + 1)):
        raise Wrong(f"the log has steps {sorted(losses)}")
    parts = [(abs(losses[step] - loss) / (LOSS_TOLERANCE * max(1, abs(loss))), step)
             for step, loss in enumerate(reference["losses"], start=1)]
    if any(not math.isfinite(part) for part, _ in parts):
        raise Wrong(f"losses {list(losses.values())}")
    return max(parts)


def worst_tensor(actual, expected, reference):
    """The largest difference as a part of what is allowed, and its tensor."""
    updates = reference["update"]
    smallest = SMALLEST_UPDATE * statistics.median(updates.values())
    worst = (0.0, "")
    for name, value in expected.items():
        if name not in actual:
            raise Wrong(f"the checkpoint lacks '{name}'")
        if actual[name].shape != value.shape:
            raise Wrong(f"'{name}' has shape {actual[name].shape}, not {value.shape}")
        if not numpy.isfinite(actual[name]).all():
            raise Wrong(f"'{name}' is not finite")
        difference = numpy.abs(actual[name] - value).max(initial=0)
        worst = max(worst, (difference / (TENSOR_TOLERANCE * max(updates[name], smallest)), name))
    return worst


def check(model, layout, espalier, folder):
    """Returns the cell of a model that trains as it should."""
    source = MODELS / model
    shutil.copytree(source, folder)
    job = adapt(yaml.safe_load((source / "job.yaml").read_text()), layout)
    (folder / "job.yaml").write_text(yaml.safe_dump(job, sort_keys=False))
    reference = json.loads((source / "reference.json").read_text())
    run([espalier, "compile", "job.yaml", "-o", "train"], folder)
    run(["./train", "--steps", str(reference["steps"]), "--log", "log.jsonl",
         "--checkpoint-dir", "checkpoint"], folder)
    loss, step = worst_loss(folder / "log.jsonl", reference)
    tensor, name = worst_tensor(read_checkpoint(folder / "checkpoint"),
                                read_safetensors(source / "reference.safetensors"), reference)
    if loss > 1:
        raise Wrong(f"loss of step {step} differs by {loss:.2g} times what is allowed")
    if tensor > 1:
        raise Wrong(f"'{name}' differs by {tensor:.2g} times what is allowed")
    return f"{loss:.2g} {tensor:.2g}"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build/release", help="the build folder")
    parser.add_argument("--layout", nargs="+", default=["{dp: 1}", "{dp: 2}", "{dp: 3}", "{dp: 4}"])
    parser.add_argument("--only", nargs="+", metavar="MODEL",
                        default=sorted(path.parent.name for path in MODELS.glob("*/job.yaml")))
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    espalier = str(arguments.build.resolve() / "bin" / "espalier")
    complaints = []
    print("model".ljust(8), *(layout.ljust(18) for layout in arguments.layout))
    with tempfile.TemporaryDirectory(prefix="espalier-models-") as scratch:
        for model in arguments.only:
            print(model.ljust(8), end=" ", flush=True)
            for number, layout in enumerate(arguments.layout):
                folder = pathlib.Path(scratch) / f"{model}-{number}"
                try:
                    cell = check(model, yaml.safe_load(layout), espalier, folder)
                except (Wrong, OSError, KeyError, ValueError) as error:
                    cell = "WRONG"
                    complaints.append(f"{model} {layout}: {error}")
                print(cell.ljust(18), end=" ", flush=True)
                shutil.rmtree(folder, ignore_errors=True)
            print()
    print(*complaints, sep="\n", end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
