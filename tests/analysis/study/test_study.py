"""From folders to cells: what is found, grouped, put together and chosen."""

import json
from dataclasses import replace

import pytest

from harness.analysis.study.cells import group
from harness.analysis.study.runs import find_runs
from harness.analysis.study.study import read_study
from harness.errors import UserError
from tests.builders.synthetic_runs import responses, write_run


def test_schedules_of_one_cell_may_lie_in_one_run_or_in_several(tmp_path):
    write_run(tmp_path / "one" / "run", responses("linear", 3) + responses("packed", 3))
    write_run(tmp_path / "two" / "linear", responses("linear", 3))
    write_run(tmp_path / "two" / "packed", responses("packed", 3))
    together, apart = (read_study([tmp_path / name]).main for name in ("one", "two"))
    assert [cell.methods for cell in together] == [cell.methods for cell in apart]
    assert together[0].value("throughput", together[0].methods[1]) == apart[0].value("throughput", apart[0].methods[1])


def test_shards_are_put_together(tmp_path):
    every = responses("packed", 6)
    write_run(tmp_path / "a", every[:2])
    write_run(tmp_path / "b", every[2:])
    (cell,) = read_study([tmp_path]).main
    assert len(cell.prompt_ids) == 6


def test_of_runs_that_repeat_responses_the_fullest_is_used_and_the_other_named(tmp_path):
    write_run(tmp_path / "a_small", responses("packed", 2), started_at="2026-03-01")
    write_run(tmp_path / "b_full", responses("packed", 5), started_at="2026-01-01")
    study = read_study([tmp_path])
    assert len(study.main[0].prompt_ids) == 5
    assert any("a_small repeats responses" in notice for notice in study.notices)


def test_of_runs_that_are_equally_full_the_newest_is_used(tmp_path):
    write_run(tmp_path / "old", responses("packed", 3, ms_per_call=30), started_at="2026-01-01")
    write_run(tmp_path / "new", responses("packed", 3, ms_per_call=60), started_at="2026-02-01")
    (cell,) = read_study([tmp_path]).main
    assert cell.value("time_per_nfe_s", cell.methods[0]) > 0.05


def test_cells_differ_by_model_task_temperature_order_adapter_cap_and_truncation(tmp_path):
    base = responses("packed", 2)
    changes = [{}, {"model": "m"}, {"task": "t"}, {"temperature": 1.0}, {"order": "confidence"}, {"adapter": "a"}]
    changes += [{"top_k": 5}, {"top_p": 0.9}]
    for index, change in enumerate(changes):
        write_run(tmp_path / str(index), [replace(one, **change) for one in base])
    write_run(tmp_path / "cap", base, cap=64)
    assert len(group(find_runs([tmp_path]).runs).cells) == len(changes) + 1


def test_native_decoding_stands_with_left_to_right_verification(tmp_path):
    native = [replace(one, order="none", width=8) for one in responses("native", 3)]
    write_run(tmp_path / "a", responses("packed", 3, width=8) + native, family="setdlm")
    (cell,) = read_study([tmp_path]).main
    assert [method.schedule for method in cell.methods] == ["native", "packed"]


def test_windowed_families_are_compared_window_by_window(tmp_path):
    records = [one for width in (8, 16) for name in ("linear", "packed") for one in responses(name, 3, width=width)]
    write_run(tmp_path / "a", records, family="setdlm")
    study = read_study([tmp_path])
    assert [(s.window, [m.width for m in s.methods]) for s in study.main] == [(8, [8, 8]), (16, [16, 16])]
    assert study.probes == []


def test_several_widths_are_a_probe_and_the_fastest_is_the_main_one(tmp_path):
    records = [
        one for width, ms in ((7, 9), (15, 5), (31, 8)) for one in responses("packed", 4, width=width, ms_per_call=ms)
    ]
    write_run(tmp_path / "a", records)
    study = read_study([tmp_path])
    assert [method.width for method in study.probes[0].methods] == [7, 15, 31]
    assert [method.width for method in study.main[0].methods] == [15]


def test_the_width_with_most_prompts_is_the_main_one_however_fast_the_probes_are(tmp_path):
    write_run(tmp_path / "probe", responses("packed", 3, width=7, ms_per_call=1))
    write_run(tmp_path / "run", responses("packed", 9, width=31))
    assert [method.width for method in read_study([tmp_path]).main[0].methods] == [31]


def test_of_two_caps_the_fuller_then_the_longer_is_shown_and_the_other_named(tmp_path):
    write_run(tmp_path / "short", responses("packed", 4), cap=64)
    write_run(tmp_path / "long", responses("packed", 4), cap=128)
    study = read_study([tmp_path])
    assert [cell.key.max_new_tokens for cell in study.main] == [128]
    assert any("cap 64: not among the main cells" in notice for notice in study.notices)


def test_untruncated_sampling_is_the_main_one(tmp_path):
    write_run(tmp_path / "top", responses("packed", 9, temperature=1.0, top_p=0.9))
    write_run(tmp_path / "all", responses("packed", 4, temperature=1.0))
    assert [cell.key.top_p for cell in read_study([tmp_path]).main] == [None]


@pytest.mark.parametrize("name", ["nemotron8b", "nemotron8b_lora"])
def test_adapter_cells_find_their_base_whatever_the_config_is_called(tmp_path, name):
    write_run(tmp_path / "base", responses("packed", 3, model="nemotron8b"))
    write_run(tmp_path / "lora", responses("packed", 3, model=name, adapter="linear_spec_lora"))
    study = read_study([tmp_path])
    assert [(pair.base.key.adapter, pair.adapted.key.adapter) for pair in study.adapters] == [
        (None, "linear_spec_lora")
    ]
    assert len(study.main) == 1


def test_adapter_pairs_are_refused_where_dtypes_differ(tmp_path):
    write_run(tmp_path / "base", responses("packed", 3))
    write_run(tmp_path / "lora", responses("packed", 3, adapter="a"), dtype="bfloat16")
    study = read_study([tmp_path])
    assert study.adapters == []
    assert any("mix=dtype" in notice for notice in study.notices)


def test_cells_come_in_the_order_of_the_paper(tmp_path):
    for model in ("nemotron14b", "nemotron3b"):
        for task in ("toy_math", "gsm8k", "mbpp"):
            write_run(tmp_path / f"{model}-{task}", responses("packed", 2, model=model, task=task))
    order = [(cell.key.model, cell.key.task) for cell in read_study([tmp_path]).main]
    tasks = ["mbpp", "gsm8k", "toy_math"]
    assert order == [(model, task) for model in ("nemotron3b", "nemotron14b") for task in tasks]


def test_a_torn_last_line_costs_one_record_and_is_said(tmp_path):
    folder = write_run(tmp_path / "a", responses("packed", 3))
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"model": "tiny')
    study = read_study([tmp_path])
    assert len(study.main[0].prompt_ids) == 3
    assert "its last line is torn; the 3 records before it are used" in study.notices[0]


@pytest.mark.parametrize("broken", [None, "{", '{"config": {}}', '{"config": {"model": 3}}'])
def test_a_folder_without_a_manifest_is_left_out_by_name(tmp_path, broken):
    write_run(tmp_path / "good", responses("packed", 3))
    folder = write_run(tmp_path / "bad", responses("linear", 3))
    (folder / "manifest.json").unlink() if broken is None else (folder / "manifest.json").write_text(broken)
    study = read_study([tmp_path])
    assert [method.schedule for method in study.main[0].methods] == ["packed"]
    assert "left out" in study.notices[0]
    assert "bad/manifest.json" in study.notices[0]


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UserError, match="nowhere: no such folder"):
        read_study([tmp_path / "nowhere"])


def test_schedules_can_be_left_out(tmp_path):
    write_run(tmp_path / "a", responses("autoregressive", 2, mean_accepted=1) + responses("packed", 9))
    (cell,) = read_study([tmp_path], schedules=["packed"]).main
    assert len(cell.prompt_ids) == 9


def test_records_of_an_unknown_family_are_cells_like_any_other(tmp_path):
    folder = write_run(tmp_path / "a", responses("packed", 3, model="mine"), family="their_module")
    assert json.loads((folder / "manifest.json").read_text())["config"]["model"]["_target_"] == "their_module.load"
    (cell,) = read_study([tmp_path]).main
    assert (cell.family, cell.window) == ("their_module", None)
