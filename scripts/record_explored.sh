#!/usr/bin/env bash
# Makes results/explored anew: an atlas of the embedded model on toy_math, at every width up to the trained block and
# some beyond, and what it tells; then real runs for costs and for partial branches, on a machine that does nothing else.
# The atlas itself and the runs stay below outputs/explored, which git ignores; both go on where they were stopped.
set -euo pipefail
cd "$(dirname "$0")/.."
work=outputs/explored
explored=results/explored
# One thread: times of calls this small do not gain from a second one, and vary less.
export OMP_NUM_THREADS=1

"$PYTHON" -m harness atlas model=tiny_nemotron task=toy_math limit=120 run_dir=$work/atlas \
  widths=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,19,23,31
"$PYTHON" -m harness run experiment=costs run_dir=$work/costs
# Other prompts than those that the branch sets were chosen on.
"$PYTHON" -m harness run experiment=partial "prompts=[$(seq -s, 120 319)]" run_dir=$work/partial
"$PYTHON" -m harness explore $work/atlas costs=$work/costs out=$explored
"$PYTHON" -m harness explore $work/atlas costs=$work/partial out=$work/with_partial
cp $work/with_partial/confirmation.* $explored/
