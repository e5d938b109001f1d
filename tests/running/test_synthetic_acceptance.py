"""Costs without weights: random ones, synthetic acceptance, and records that no table shows among real ones."""

import json

import pytest

from harness.analysis.study.runs import find_runs
from harness.cli.main import main
from harness.errors import UserError
from harness.records.record import read_records
from harness.running.synthetic_acceptance import read_acceptance
from tests.builders.commands import changed

FAST = ["warmups=1", "drift_prompts=0", "task.max_new_tokens=24", "limit=2", "model.device=cpu"]
# The 8B's shape but for its widths, which would take seconds a call.
SMALL = [
    *("model=nemotron8b", "weights=random", "model.layers=2", "model.architecture.hidden_size=64"),
    *("model.architecture.intermediate_size=96", "model.architecture.num_attention_heads=4"),
    *("model.architecture.num_key_value_heads=2", "model.architecture.head_dim=16"),
    *("model.architecture.vocab_size=1024", "schedules.packed.width=15"),
]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments) -> int:
    return main(changed(["run", "schedule=[linear,packed,quadratic]", *FAST], *arguments))


def records_of(folder):
    return list(read_records(folder / "records.jsonl"))


def test_random_weights_with_synthetic_acceptance_cost_what_the_schedule_says(tmp_path, capsys):
    assert run(*SMALL, "acceptance=6", "run_dir=out") == 0
    records = records_of(tmp_path / "out")
    assert len(records) == 6
    for record in records:
        assert record.costs_only == "random weights, replayed acceptance"
        assert record.verdict == {"correct": None, "reason": f"not graded: {record.costs_only}"}
        assert record.tokens == 24
        if record.schedule != "packed":
            assert list(record.accepted) == [1, 6, 6, 6, 5]
    assert "COSTS ONLY, random weights, replayed acceptance" in capsys.readouterr().out
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["model"]["weights"] == "random"
    assert manifest["model"]["tokenizer"] == "embedded:tiny_nemotron"


@pytest.mark.parametrize(("tokens", "length"), [("7", 7), ("null", 24)])
def test_a_response_of_given_acceptance_is_as_long_as_it_is_told(tmp_path, tokens, length):
    assert run(*SMALL, "acceptance=6", f"acceptance_tokens={tokens}", "limit=1", "run_dir=out") == 0
    assert {record.tokens for record in records_of(tmp_path / "out")} == {length}


@pytest.mark.parametrize(
    ("flags", "dtype", "said"),
    [({"avx2"}, "float32", "notice: random weights are float32 here, not bfloat16"), ({"avx512_bf16"}, "bfloat16", "")],
)
def test_a_cpu_that_would_emulate_bfloat16_gets_float32_and_says_so(tmp_path, monkeypatch, capsys, flags, dtype, said):
    monkeypatch.setattr("harness.system.machine.processor_flags", lambda: frozenset(flags))
    assert run(*SMALL, "acceptance=6", "limit=1", "run_dir=out") == 0
    facts = json.loads((tmp_path / "out" / "manifest.json").read_text())["model"]
    assert facts["dtype"] == dtype
    assert len(facts["notices"]) == bool(said)
    assert said in capsys.readouterr().err


def test_a_windowed_family_costs_what_its_schedule_says_too(tmp_path):
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
             "head_dim": 16, "vocab_size": 1024, "mask_token_id": 1000, "eos_token_id": 1001}  # fmt: skip
    small = [f"model.architecture.{key}={value}" for key, value in sizes.items()]
    arguments = ["model=setdlm_smax16", "weights=random", "model.layers=1", "acceptance=5", "run_dir=out"]
    assert run(*arguments, *small) == 0
    records = [record for record in records_of(tmp_path / "out") if record.schedule == "linear"]
    assert [list(record.accepted) for record in records] == [[5, 5, 5, 5, 4]] * 2
    assert {record.nfe for record in records} == {1 + 2 * 5}


def test_a_random_adapter_costs_its_rows(tmp_path):
    adapted = ["model=nemotron8b_lora" if one == "model=nemotron8b" else one for one in SMALL]
    assert run(*adapted, "acceptance=6", "run_dir=out") == 0
    for record in records_of(tmp_path / "out"):
        assert (record.model, record.adapter) == ("nemotron8b_lora", "linear_spec_lora")
        assert 0 < record.adapter_rows_selected <= record.adapter_rows_evaluated


def test_recorded_acceptance_gives_the_same_calls_rows_and_lengths(tmp_path):
    assert run("model=tiny_nemotron", "run_dir=real") == 0
    assert run("model=tiny_nemotron", "weights=random", "acceptance=real", "run_dir=replayed") == 0
    real, replayed = (records_of(tmp_path / name) for name in ("real", "replayed"))
    for one, other in zip(real, replayed, strict=True):
        assert (one.key, one.tokens, one.nfe, one.rows) == (other.key, other.tokens, other.nfe, other.rows)
        assert list(one.accepted) == list(other.accepted)
        assert (one.costs_only, other.costs_only) == (None, "random weights, replayed acceptance")


def test_tables_and_graders_leave_such_records_out(tmp_path, capsys):
    assert run("model=tiny_nemotron", "weights=random", "run_dir=out") == 0
    found = find_runs([tmp_path])
    assert not found.runs
    assert "measured with random weights: costs only" in found.notices[0]
    assert main(["grade", "out"]) == 2
    assert "there is nothing to grade" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["acceptance=0"], "acceptance=0: need tokens an iteration"),
        (["acceptance=[3,0]"], "need tokens an iteration"),
        (["acceptance=3", "acceptance_tokens=0"], "acceptance_tokens=0: need an integer of at least 1"),
        (["acceptance=nowhere"], "acceptance=nowhere: no run there"),
        (["model.layers=2"], "model.layers=2: released weights come with all layers"),
        (["weights=random", "model.layers=0"], "model.layers=0: need an integer of at least 1"),
        (["weights=none"], "weights=none: no such weights"),
        (["weights=random", "~model.weights"], "weights=random: tiny_nemotron has no such choice"),
        (
            ["weights=random", "adapter=other", "model=nemotron8b", "model.layers=1"],
            "adapter=other: with random weights",
        ),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments, said, capsys):
    assert run(*changed(["model=tiny_nemotron"], *arguments)) == 2
    assert said in capsys.readouterr().err


def test_a_response_that_was_not_recorded_is_named(tmp_path):
    assert run("model=tiny_nemotron", "run_dir=real") == 0
    acceptance = read_acceptance(str(tmp_path / "real"))
    with pytest.raises(UserError, match="no response of packed to toy_math/9999, repetition 0"):
        acceptance.of(("packed", "toy_math/9999", 0))
