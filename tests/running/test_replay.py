"""`python -m harness replay` on a run of the embedded model."""

import json

import pytest

from harness.cli.main import main
from harness.records.record import Record, read_records
from harness.records.trace import read_traces
from harness.running.replay import partings
from tests.builders.synthetic_runs import record


@pytest.fixture(scope="module", params=["0", "1"])
def replayed(request, tmp_path_factory):
    """A replayed run of two prompts at each temperature."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    keys = ["limit=2", "warmups=0", "drift_prompts=0", "task.max_new_tokens=24", f"temperature={request.param}"]
    assert main(["run", "schedule=[linear,packed,quadratic]", "model.device=cpu", f"run_dir={folder}", *keys]) == 0
    assert main(["replay", str(folder), "prompts=1"]) == 0
    return folder


def test_traces_are_of_the_recorded_responses(replayed):
    records = [one for one in read_records(replayed / "records.jsonl") if one.prompt_id == "toy_math/0"]
    traces = read_traces(replayed)
    assert [trace.schedule for trace in traces] == [one.schedule for one in records]
    for trace, one in zip(traces, records, strict=True):
        assert len(trace.tokens) == one.tokens
        assert [iteration.accepted for iteration in trace.iterations] == list(one.accepted)
        emitted = [piece for iteration in trace.iterations for piece in iteration.emitted]
        assert emitted == trace.tokens
        assert one.text in "".join(trace.tokens)


def test_greedy_runs_get_a_gap_for_each_parting_and_sampled_ones_none(replayed):
    gaps = replayed / "logit_gaps.json"
    is_greedy = json.loads((replayed / "manifest.json").read_text())["config"]["temperature"] == 0
    assert gaps.exists() == is_greedy
    if not is_greedy:
        return
    # In float32 nothing parts; a changed record stands for what another precision would do.
    records = list(read_records(replayed / "records.jsonl"))
    changed = [one if one.schedule != "packed" else _with_token(one, 5, 3) for one in records]
    (replayed / "records.jsonl").write_text("".join(one.line() for one in changed))
    assert main(["replay", str(replayed), "prompts=0"]) == 0
    found = json.loads(gaps.read_text())["gaps"]
    assert [(gap["prompt_id"], gap["position"]) for gap in found] == [("toy_math/0", 5), ("toy_math/1", 5)]
    assert all(gap["gap"] > 0 for gap in found)
    (replayed / "records.jsonl").write_text("".join(one.line() for one in records))


def _with_token(one: Record, position: int, token: int) -> Record:
    ids = list(one.token_ids)
    ids[position - 1] = token
    return Record(**one.__dict__ | {"token_ids": ids})


def test_outputs_part_where_they_first_differ_from_linears():
    records = [
        record(schedule="packed", token_ids=[1, 2, 9]),
        record(schedule="linear", token_ids=[1, 2, 3]),
        record(schedule="quadratic", token_ids=[1, 2]),
    ]
    (place,) = partings(records)
    assert (place.prompt_id, list(place.context), place.position) == ("p0", [1, 2], 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], "name the folder of one run"),
        ([".", "."], "name the folder of one run"),
        ([".", "prompt=1"], "key=prompt: no such key. .*Did you mean prompts?"),
    ],
)
def test_mistakes_get_one_line(arguments, message, capsys):
    assert main(["replay", *arguments]) == 2
    assert message.split(".*")[0] in capsys.readouterr().err
