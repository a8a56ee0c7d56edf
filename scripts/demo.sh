#!/usr/bin/env bash
# Builds Espalier and trains a GPT of 10M parameters on the bytes of a book, on two
# ranks: plan, proof, binary, a stop and a resume on the way, the curve of the loss.
#
#   scripts/demo.sh
#   DEMO_STEPS=300 scripts/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
folder=$root/build/demo
espalier=$root/build/release/bin/espalier

steps=${DEMO_STEPS:-80}
compared=8   # steps of the uninterrupted reference
stop_after=4 # steps; the run is stopped once so many are in its log

if ! [[ $steps =~ ^[0-9]+$ ]] || [ "$steps" -le "$compared" ]; then
  echo "demo: DEMO_STEPS expects a number above $compared, but got '$steps'" >&2
  exit 2
fi

title() { printf '\n== %s\n' "$*"; }

bash scripts/bootstrap.sh
title "build"
cmake --preset release >/dev/null
cmake --build --preset release
start=$SECONDS

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

title "a text: the King James Bible, as Debian has it, without the numbers of its verses"
bible -f gen1:1-rev22:21 </dev/null | sed -E 's/^[0-9]?[A-Za-z]+[0-9]+:[0-9]+ //' >text.txt
head -n 2 text.txt
"$espalier" tokenize text.txt -o corpus.bin

title "a model"
"$root/scripts/demo/make_gpt.py" -o gpt.onnx
cat >job.yaml <<JOB
model: gpt.onnx
dims: {batch: 4, sequence: 128}
train:
  loss: {kind: cross_entropy, logits: logits, labels: labels}
  optimizer: {kind: adamw, lr: 6.0e-4, betas: [0.9, 0.95], weight_decay: 0.1}
  schedule: {kind: cosine, warmup_steps: 20, total_steps: $((steps > 20 ? steps : 21)), min_lr: 6.0e-5}
  grad_clip: 1.0
  global_batch: 8
data: {kind: tokens, file: corpus.bin, dtype: uint16, input: input_ids, labels: labels}
cluster: {device: cpu, nodes: 1, devices_per_node: 2}
layout: {dp: 2}
JOB

title "the plan, and the proof: all ranks together compute what one device computes"
"$espalier" verify job.yaml

title "the binary"
"$espalier" compile job.yaml -o train
ls -l train

title "a reference: $compared steps without a stop"
./train --steps "$compared" --log reference.jsonl

title "training, stopped after some steps"
./train --steps "$steps" --log log.jsonl --checkpoint-dir checkpoint &
training=$!
trap 'kill "$training" 2>/dev/null || true' EXIT
until [ -f log.jsonl ] && [ "$(wc -l <log.jsonl)" -ge "$stop_after" ]; do
  kill -0 "$training" 2>/dev/null || break
  sleep 0.1
done
# A background command of a script ignores SIGINT unless it sets a handler, as ./train does.
kill -INT "$training" 2>/dev/null || true
status=0
wait "$training" || status=$?
trap - EXIT
if [ "$status" -ne 130 ]; then
  echo "demo: expects exit status 130 of a run that SIGINT stopped, but got $status" >&2
  exit 1
fi

title "resumed, to the end"
./train --steps "$steps" --log log.jsonl --checkpoint-dir checkpoint --resume

title "was anything lost by the stop?"
"$root/scripts/demo/same_losses.py" reference.jsonl log.jsonl

title "the loss"
"$root/scripts/demo/plot_loss.py" log.jsonl loss.svg

title "done in $((SECONDS - start)) s after the build"
echo "checkpoint: $folder/checkpoint (model.safetensors.index.json)"
echo "curve:      $folder/loss.svg"
echo "log:        $folder/log.jsonl"
