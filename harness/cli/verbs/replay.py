"""usage: python -m harness replay RUN [prompts=N]

Decodes some prompts of a finished run again, untimed, and writes beside its records what these do not hold:

  traces.json      what each iteration read, predicted and kept, for figure 2 and the report
  logit_gaps.json  greedy runs: the gap between the top two logits where outputs of two schedules part (F.6)

  prompts=N        prompts to trace, with every schedule; 2 by default
"""

import sys
from collections.abc import Sequence

from tqdm import tqdm

from harness.cli.arguments import Takes, Words
from harness.cli.keys import Integer
from harness.config.compose import stored
from harness.errors import UserError
from harness.records import logit_gaps, trace
from harness.records.folder import RunFolder
from harness.records.record import Record
from harness.running.build import build_model, build_plan
from harness.running.replay import Replay, partings

RUN = Words(least=1, most=1, ask="name the folder of one run, with its records.jsonl")
TAKES = Takes("replay", RUN, (Integer("prompts", 2, example="2"),))


def main(arguments: Sequence[str]) -> int:
    """Replays one run."""
    given = TAKES.read(arguments)
    (path,) = given.paths
    folder = RunFolder(path)
    if not folder.records_file.is_file():
        raise TAKES.asks(given.words)
    config = stored(folder.read_manifest()["config"])
    plan = build_plan(config)
    records = [record for record in folder.records() if not record.is_skipped]
    if not records:
        raise UserError(f"replay {path}: it has no responses yet.")
    if records[0].costs_only:
        raise UserError(f"replay {path}: measured with {records[0].costs_only}; there is nothing to trace.")
    places = partings(records) if plan.sampling is None else []
    chosen = _first(records, given["prompts"])
    replay = Replay(plan, build_model(config.model))
    with tqdm(total=len(chosen) + len(places), file=sys.stderr, dynamic_ncols=True) as bar:
        traces = []
        for record in chosen:
            traced, is_same = replay.trace(record)
            traces.append(traced)
            if not is_same:
                bar.write(f"notice: {record.schedule} on {record.prompt_id}: other tokens than recorded", sys.stderr)
            bar.update()
        gaps = replay.gaps(places, bar.update)
    written = {trace.FILE: trace.traces_json(traces)}
    if plan.sampling is None:
        written[logit_gaps.GAPS] = logit_gaps.gaps_json(gaps)
    for name, value in written.items():
        folder.write_json(name, value)
        print(path / name)
    return 0


def _first(records: Sequence[Record], prompts: int) -> Sequence[Record]:
    """First repetitions of the first prompts."""
    ids = list(dict.fromkeys(record.prompt_id for record in records))[:prompts]
    return [record for record in records if record.prompt_id in ids and record.repetition == 0]
