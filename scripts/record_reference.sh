#!/usr/bin/env bash
# Records results/reference anew: the embedded models on the toy tasks, at both temperatures, with and without the
# adapter, in both orders; then traces of one prompt of each run, and the figures and tables from all records.
set -euo pipefail
cd "$(dirname "$0")/.."
reference=results/reference
# One thread: times of calls this small do not gain from a second one, and vary less.
export OMP_NUM_THREADS=1

record() { # SUFFIX [KEY=VALUE ...]: one run for each task (and each of several values), named after what it is
  local suffix=$1
  shift
  "$PYTHON" -m harness run -m experiment=reference task=toy_math,toy_code,toy_writing \
    "run_dir=$reference/runs/\${model.name}-\${task.name}-t\${temperature}$suffix" "$@"
}

rm -rf $reference/runs $reference/figures
record "" temperature=0.0,1.0
record -adapter temperature=0.0,1.0 adapter=linear_spec_lora schedule=[linear,packed,quadratic]
record "" model=tiny_setdlm temperature=0.0 schedule=[autoregressive,linear,packed,quadratic,native]
record "" model=tiny_setdlm temperature=1.0
record -confidence model=tiny_setdlm order=confidence schedule=[linear,packed,quadratic]
for run in $reference/runs/*; do
  "$PYTHON" -m harness replay "$run" prompts=1
done
"$PYTHON" -m harness figures $reference out=$reference/figures
