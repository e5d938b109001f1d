"""Warm-up, drift, outliers, and what happens where memory runs out or numbers are none."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from harness.cli.closing_table import closing_table
from harness.cli.main import main
from harness.records.bootstrap import resampled_totals
from harness.records.frame import as_frame
from harness.records.record import read_records
from harness.records.summary import summarize
from harness.running.steady_state import drift, settle
from schedules.acceptance import UnsoundLogits
from schedules.one_call import Packed
from schedules.response import Response
from tests.builders.commands import changed
from tests.builders.records import RECORD
from tests.builders.synthetic_runs import responses

RUN = [
    *("run", "model=tiny_nemotron", "model.device=cpu", "warmups=0", "drift_prompts=0", "task.max_new_tokens=16"),
    *("schedule=[linear,packed]", "limit=3"),
]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_warm_up_ends_for_each_schedule_when_its_times_settle():
    times = {"fast": iter([1.0, 1.01]), "slow": iter([9.0, 4.0, 2.0, 1.0])}
    found = settle(times, lambda name: next(times[name]), most=4)
    assert found["fast"] == {"seconds": [1.0, 1.01], "settled": True}
    assert found["slow"] == {"seconds": [9.0, 4.0, 2.0, 1.0], "settled": False}


def test_warm_up_ends_where_it_took_long_enough_to_warm_anything():
    times = {"compiled": iter([40.0, 3.0, 2.0]), "huge": iter([30.0, 20.0])}
    found = settle(times, lambda name: next(times[name]), most=3)
    assert [len(of_one["seconds"]) for of_one in found.values()] == [3, 2]


def test_drift_is_the_time_of_the_first_prompts_again():
    records = [
        replace(RECORD, schedule=schedule, prompt_id=f"toy/{number}", wall_s=1.0)
        for number in range(20)
        for schedule in ("linear", "packed")
    ]

    def again(record):
        tokens = [5, 6] if record.schedule == "linear" else [5, 7]
        return Response(tokens, [], "eos"), 1.5 if record.schedule == "linear" else 1.0

    found = drift(records, again, most=5)
    assert found == {
        "prompts": ["toy/0", "toy/1"],
        "ratios": {"linear": 1.5, "packed": 1.0},
        "other_tokens": 2,
    }
    table = closing_table(summarize(as_frame(records), {"drift": found}), 20)
    assert "first 2 prompts again at the end: linear 1.50, packed 1.00; 2 responses had OTHER TOKENS" in table
    assert drift([], again, most=5) is None
    assert drift(records[:18], again, most=5) is None, "nine prompts: one would be more than a tenth"
    assert drift(records, again, most=0) is None


def test_a_run_reports_its_warm_up_and_drift(tmp_path, capsys):
    assert main(changed(RUN, "limit=10", "warmups=2", "drift_prompts=1", "run_dir=out")) == 0
    assert "drift, time of the first 1 prompts again at the end: linear" in capsys.readouterr().out
    found = {record.prompt_id for record in read_records(tmp_path / "out" / "records.jsonl")}
    assert found == {f"toy_math/{number}" for number in range(10)}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["warmup_tokens"] == 16
    assert {len(one["seconds"]) for one in manifest["warmups"].values()} == {2}


def test_a_cpu_warms_up_on_the_first_tokens_and_a_long_run_is_announced(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("harness.cli.progress.LONG_S", 0.0)
    given = ["limit=1", "warmups=1", "task.max_new_tokens=200", "weights=random", "acceptance=50", "run_dir=out"]
    assert main(changed(RUN, *given)) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["warmup_tokens"] == 32
    assert manifest["memory_gb_s"] > 0.1
    assert {record.tokens for record in read_records(tmp_path / "out" / "records.jsonl")} == {200}
    assert "notice: up to 0 min at the pace of the warm-up" in capsys.readouterr().err


def test_the_highest_peak_of_memory_is_summed_up_only_where_it_is_known():
    records = [
        replace(RECORD, schedule=schedule, prompt_id=f"toy/{number}", memory_bytes=peak)
        for schedule, peaks in (("packed", [3 * 10**9, 4 * 10**9, None]), ("linear", [None, None]))
        for number, peak in enumerate(peaks)
    ]
    summary = summarize(as_frame(records), {})
    assert summary["schedules"]["packed"]["memory_bytes"] == 4 * 10**9
    assert "memory_bytes" not in summary["schedules"]["linear"]
    header, packed, linear = closing_table(summary, 3).splitlines()[:3]
    assert "GB at peak" in header
    assert ("4.00" in packed, "4.00" in linear) == (True, False)
    assert "GB at peak" not in closing_table(summarize(as_frame(records[3:]), {}), 2)


def test_outliers_are_named_and_counted_all_the_same():
    records = [replace(RECORD, prompt_id=f"toy/{number}") for number in range(9)]
    records.append(replace(RECORD, prompt_id="toy/9", wall_s=5.0))
    summary = summarize(as_frame(records), {})
    assert [(one["prompt_id"], one["times_median"]) for one in summary["outliers"]] == [("toy/9", 10.0)]
    assert summary["schedules"]["packed"]["wall_s"] == pytest.approx(9 * 0.5 + 5)
    assert "packed on toy/9 x 10.0" in closing_table(summary, 10)


@pytest.fixture(
    params=[torch.OutOfMemoryError("CUDA out of memory"), MemoryError(), RuntimeError("can't allocate memory")]
)
def memory_runs_out_on_the_second_prompt(request, monkeypatch):
    decode, prompts = Packed.decode, []

    def failing(self, model, prompt, *rest):
        if tuple(prompt) not in prompts:
            prompts.append(tuple(prompt))
        if len(prompts) == 2:
            raise request.param
        return decode(self, model, prompt, *rest)

    monkeypatch.setattr(Packed, "decode", failing)


@pytest.mark.usefixtures("memory_runs_out_on_the_second_prompt")
def test_memory_that_runs_out_stops_the_run_naming_the_prompt(tmp_path, capsys):
    assert main([*RUN, "run_dir=out"]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("error: memory: packed on toy_math/1, ")
    assert "on_error=skip" in said
    keys = [record.key[:2] for record in read_records(tmp_path / "out" / "records.jsonl")]
    assert keys == [("linear", "toy_math/0"), ("packed", "toy_math/0"), ("linear", "toy_math/1")]
    assert main(["status", "out"]) == 0
    assert "failed  memory: packed on toy_math/1" in capsys.readouterr().out


@pytest.mark.usefixtures("memory_runs_out_on_the_second_prompt")
def test_such_prompts_are_passed_over_and_counted_if_asked(tmp_path, capsys):
    assert main([*RUN, "on_error=skip", "run_dir=out"]) == 0
    records = list(read_records(tmp_path / "out" / "records.jsonl"))
    assert [record.prompt_id for record in records if record.is_skipped] == ["toy_math/1"]
    assert len(records) == 6
    table = capsys.readouterr().out
    assert "PARTIAL: 1 prompts failed, out of memory: toy_math/1" in table


def test_logits_that_are_no_numbers_stop_the_run_naming_prompt_and_call(monkeypatch, capsys):
    def unsound(*arguments):
        raise UnsoundLogits("call 3: logits hold NaN")

    monkeypatch.setattr(Packed, "decode", unsound)
    assert main([*RUN, "on_error=skip", "run_dir=out"]) == 2
    assert "error: numerics: packed on toy_math/0, call 3: logits hold NaN" in capsys.readouterr().err


def test_ratios_of_a_run_carry_the_paired_interval_of_the_analysis():
    records = [*responses("linear", 20), *responses("packed", 20)]
    summary = summarize(as_frame(records), {})
    packed = summary["schedules"]["packed"]
    pairs = zip(records[:20], records[20:], strict=True)
    by_id = sorted(pairs, key=lambda pair: pair[0].prompt_id)
    per_prompt = np.array([[one.tokens, one.wall_s, two.tokens, two.wall_s] for one, two in by_id])
    draws = resampled_totals(per_prompt)
    low, high = np.quantile((draws[:, 2] / draws[:, 3]) / (draws[:, 0] / draws[:, 1]), (0.025, 0.975))
    assert packed["intervals_to_linear"]["throughput"] == pytest.approx([low, high])
    assert f"{packed['ratios_to_linear']['throughput']:.3f} [{low:.3f}, {high:.3f}]" in closing_table(summary, 20)
    assert "intervals_to_linear" not in summary["schedules"]["linear"]


def test_why_numbers_are_to_be_read_with_care_is_said_in_words():
    busy = {"load": 8.0, "cpu_governor": None, "gpus": []}
    warmups = {"linear": {"seconds": [1, 2], "settled": False}, "packed": {"seconds": [1, 1], "settled": True}}
    drift = {"prompts": ["p0"], "ratios": {"linear": 1.3, "packed": 1.05}, "other_tokens": 0}
    records = as_frame([*responses("linear", 5), *responses("packed", 5)])
    flags = summarize(records, {"drift": drift, "warmups": warmups, "state_at_start": busy})["flags"]
    for flag, said in zip(
        flags, ("5 prompts are few", "linear 1.30", "had not settled after warming up: linear", "load 8"), strict=True
    ):
        assert said in flag
    quiet = [*responses("linear", 30), *responses("packed", 30)]
    assert summarize(as_frame(quiet), {})["flags"] == []
