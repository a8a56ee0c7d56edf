#!/usr/bin/python3
"""Compares two training logs: every step of the first must be in the second, once, with
the very same loss.

    same_losses.py reference.jsonl log.jsonl
"""
import json
import sys


def read(path):
    with open(path) as file:
        lines = [json.loads(line) for line in file if line.strip()]
    steps = [line["step"] for line in lines]
    doubled = {step for step in steps if steps.count(step) > 1}
    if doubled:
        sys.exit(f"{path}: steps {sorted(doubled)} are there more than once")
    return {line["step"]: line["loss"] for line in lines}


def main():
    first, second = sys.argv[1:]
    reference, log = read(first), read(second)
    if not reference:
        sys.exit(f"{first}: no step in it")
    for step, loss in sorted(reference.items()):
        if log.get(step) != loss:
            sys.exit(f"step {step}: {second} has loss {log.get(step)}, {first} has {loss}")
    print(f"{len(reference)} losses are the same to the last bit")


if __name__ == "__main__":
    main()
