#!/usr/bin/env bash
# Records results/reference anew: the embedded models on the toy tasks, at both temperatures, with and without the
# adapter, in both orders; then traces of one prompt of each run, and the figures and tables from all records.
set -euo pipefail
cd "$(dirname "$0")/.."
reference=results/reference
# One thread: times of calls this small do not gain from a second one, and vary less.
export OMP_NUM_THREADS=1

record() { # FOLDER [KEY=VALUE ...]: a sweep over the toy tasks, one run each
  local folder=$1
  shift
  "$PYTHON" -m harness run -m experiment=reference task=toy_math,toy_code,toy_writing \
    "run_dir=$reference/runs/$folder" "$@"
}

rm -rf $reference/runs $reference/figures
record nemotron temperature=0.0,1.0
record nemotron_adapter temperature=0.0,1.0 adapter=linear_spec_lora schedule=[linear,packed,quadratic]
record setdlm model=tiny_setdlm schedule=[autoregressive,linear,packed,quadratic,native]
record setdlm_confidence model=tiny_setdlm order=confidence schedule=[linear,packed,quadratic]
record setdlm_sampled model=tiny_setdlm temperature=1.0
rm $reference/runs/*/multirun.yaml $reference/runs/*/*/run.lock
for run in $reference/runs/*/*; do
  "$PYTHON" -m harness replay "$run" prompts=1
done
"$PYTHON" -m harness figures $reference out=$reference/figures
