"""The command line as a stranger meets it: the main job, its files, and one clear line for every mistake."""

import json
import subprocess
import sys

import pytest

from harness.cli.main import main
from harness.records.record import read_records
from tests.builders.commands import changed

FAST = ["warmups=0", "drift_prompts=0", "task.max_new_tokens=40"]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return main(["run", "model=tiny_nemotron", "model.device=cpu", *FAST, *arguments])


def error_of(capsys, *arguments) -> str:
    """The one line on stderr of a command that must end with status 2."""
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert captured.err.rstrip().endswith(lines[0])
    assert "Traceback" not in captured.err
    return lines[0]


def records_of(folder):
    return list(read_records(folder / "records.jsonl"))


def test_several_schedules_run_interleaved_and_agree(tmp_path, capsys):
    assert run("schedule=[autoregressive,linear,packed,quadratic]", "limit=3", "run_dir=out") == 0
    records = records_of(tmp_path / "out")
    assert [record.schedule for record in records[:5]] == [
        *("autoregressive", "linear", "packed", "quadratic"),
        "autoregressive",
    ]
    for start in range(0, 12, 4):
        assert len({tuple(record.token_ids) for record in records[start : start + 4]}) == 1
    for record in records:
        assert record.tokens == len(record.token_ids) == sum(record.accepted)
        assert 0 < record.model_s <= record.wall_s
        assert record.temperature == 0
        assert set(record.verdict) >= {"correct", "reason"}
    table = capsys.readouterr().out
    assert "identical token ids across schedules: 3 of 3 responses" in table
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    packed, linear = (summary["schedules"][name] for name in ("packed", "linear"))
    assert packed["nfe"] == sum(record.nfe for record in records if record.schedule == "packed")
    assert packed["throughput"] == pytest.approx(packed["tokens"] / packed["wall_s"])
    ratio = packed["tokens_per_nfe"] / linear["tokens_per_nfe"]
    assert packed["ratios_to_linear"]["tokens_per_nfe"] == pytest.approx(ratio)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["config"]["schedules"]["packed"]["width"] == 15
    assert manifest["model"]["dtype"] == "float32"


@pytest.mark.parametrize("width", [1, 31])
def test_a_width_can_be_set_for_one_schedule(tmp_path, width):
    assert run("schedule=packed", f"schedules.packed.width={width}", "limit=1", "run_dir=out") == 0
    assert [record.width for record in records_of(tmp_path / "out")] == [width]


def test_sampling_records_every_repetition_and_each_can_be_had_alone(tmp_path):
    sampled = ("temperature=1.0", "schedule=[linear,packed,quadratic]", "task.repetitions=2")
    assert run(*sampled, "limit=2", "run_dir=all") == 0
    everything = {record.key: record.token_ids for record in records_of(tmp_path / "all")}
    assert len(everything) == 3 * 2 * 2
    assert run("temperature=1.0", "schedule=packed", "task.repetitions=2", "prompts=[1]", "run_dir=one") == 0
    for record in records_of(tmp_path / "one"):
        assert record.token_ids == everything[record.key]


def test_a_finished_run_is_not_run_again(tmp_path, capsys):
    arguments = ("schedule=packed", "limit=2", "run_dir=out")
    run(*arguments)
    before = (tmp_path / "out" / "records.jsonl").read_text()
    run(*arguments)
    assert (tmp_path / "out" / "records.jsonl").read_text() == before
    assert "going on: 2 of 2 responses are there" in capsys.readouterr().err


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    arguments = ("schedule=[linear,packed]", "limit=2", "run_dir=out")
    run(*arguments)
    file = tmp_path / "out" / "records.jsonl"
    whole = records_of(tmp_path / "out")
    file.write_text("".join(record.line() for record in whole[:3]))
    run(*arguments)
    assert [record.key for record in records_of(tmp_path / "out")] == [record.key for record in whole]


def test_a_run_folder_of_another_config_is_refused(capsys):
    run("schedule=packed", "limit=1", "run_dir=out")
    said = error_of(capsys, "run", *FAST, "model.device=cpu", "schedule=packed", "limit=1", "seed=5", "run_dir=out")
    assert "holds a run of another config: seed was 0, is 5" in said


def test_a_prompt_that_does_not_fit_is_named_recorded_and_counted(tmp_path, capsys):
    rows = [
        {"question": "word " * 3000, "answer": "#### 1"},
        {"question": "Ada has 3 cups. How many cups?", "answer": "#### 3"},
    ]
    (tmp_path / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("task=gsm8k", "task.data_files=long.jsonl", "schedule=[linear,packed]", "run_dir=out") == 0
    skipped, *_, answered = records_of(tmp_path / "out")
    assert skipped.is_skipped
    assert "do not fit the context of 2048" in skipped.verdict["reason"]
    assert not answered.is_skipped
    captured = capsys.readouterr()
    assert "PARTIAL: 1 prompts skipped, too long for the context: gsm8k/0" in captured.out
    notice = "gsm8k: 2 items, the published set has 1319"
    assert f"notice: {notice}" in captured.err
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["data"]["notices"] == [notice]


def test_real_gsm8k_prompts_decode_alike_under_all_schedules(tmp_path, data_dir):
    assert (
        run(
            "task=gsm8k",
            f"task.data_files={data_dir / 'gsm8k_test.jsonl'}",
            "schedule=[autoregressive,linear,packed,quadratic]",
            "limit=3",
            "run_dir=out",
        )
        == 0
    )
    records = records_of(tmp_path / "out")
    assert len(records) == 12
    assert len({(record.prompt_id, tuple(record.token_ids)) for record in records}) == 3


def test_limit_zero_runs_nothing_and_says_so(tmp_path, capsys):
    assert run("schedule=packed", "limit=0", "run_dir=out") == 0
    assert records_of(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["model=tiny_nemotrn"], "model=tiny_nemotrn: no such model.* Did you mean tiny_nemotron?"),
        (["task=gsmk8"], "task=gsmk8: no such task.* Did you mean gsm8k?"),
        (["schedule=[linear,pakced]"], "schedule=pakced: no such schedule.* Did you mean packed?"),
        (["schedule=[]"], "schedule=[]: nothing to run"),
        (["schedules.packed.width=0"], "schedules.packed: width: got 0, need an integer of at least 1"),
        (["limit=-1"], "limit=-1: need an integer of at least 0"),
        (["limt=3"], "limt: no such key.* Did you mean limit?"),
        (["limit=["], "limit=[: cannot be read as KEY=VALUE"),
        (["temperature=-1"], "temperature=-1: need a number of at least 0"),
        (["temperature=hot"], "temperature=hot: need a number"),
        (["top_p=0"], "top_p: got 0"),
        (["top_k=-3"], "top_k: got -3"),
        (["seed=x"], "seed=x: need an integer"),
        (["warmups=-1"], "warmups=-1"),
        (["samples=-1"], "samples=-1"),
        (["prompts=[toy_math/9999]"], "prompts: no toy_math/9999 among 500 items"),
        (["prompts=3"], "prompts=3: need a list"),
        (["task.name=[]"], "task.name=[]: need a text"),
        (["task.template='{}'"], "task.template={}: cannot be filled in"),
        (["task.template='{prompt!x}'"], "task.template={prompt!x}: cannot be filled in"),
        (["prompts=1.5"], "prompts=1.5: need a list"),
        (["prompts={a:1}"], "prompts={'a': 1}: need a list"),
        (["task.repetitions=0"], "task.repetitions=0"),
        (["task.template=none", "task.max_new_tokens=-1"], "task.max_new_tokens=-1"),
        (["task=gsm8k", "task.data_files=nowhere.jsonl"], "task.data_files=nowhere.jsonl: no such file"),
        (["model.path=nowhere"], "model.path=nowhere: no folder there"),
        (["model.dtype=float31"], "model.dtype=float31: no such dtype"),
        (["adapter=nowhere"], "no adapter_config.json there"),
        (["adapter=linear_spec_lora", "adapter_mode=best"], "adapter_mode=best: no such mode"),
        (["order=confidence"], "order=confidence: tiny_nemotron verifies causally"),
        (["order=confidence", "temperature=1"], "sampling is exact left to right only"),
        (["schedule=native"], "schedule=native: decodes SetDLM models only"),
        (["order=backwards"], "order=backwards: no such order"),
        (["schedules.packed._target_=schedules.Nope"], "schedules.packed: Error loading 'schedules.Nope'"),
        (["run_dir=/proc/nowhere"], "run_dir=/proc/nowhere: cannot be written"),
    ],
)
def test_mistakes_get_one_clear_line_and_status_2(capsys, arguments, said):
    line = error_of(capsys, "run", *changed([*FAST, "limit=1"], *arguments))
    for part in said.split(".*"):
        assert part in line


def test_an_unknown_verb_is_suggested_the_nearest(capsys):
    assert "verb=rnu: no such verb. Known:" in error_of(capsys, "rnu")


def test_list_shows_every_config_with_a_line(capsys):
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    for name in ("tiny_nemotron", "gsm8k", "toy_writing", "packed", "branches"):
        (line,) = (line for line in listed.splitlines() if line.split() and line.split()[0] == name)
        assert len(line.split()) > 3


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["list", "-h"]])
def test_help_comes_without_heavy_imports(arguments):
    program = (
        "import sys; from harness.cli.main import main; status = main(sys.argv[1:]); "
        "assert not {'torch', 'transformers', 'hydra', 'pandas', 'matplotlib'} & set(sys.modules); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: python -m harness")


def test_listing_comes_without_the_analysis():
    program = (
        "import sys; from harness.cli.main import main; main(['list']); "
        "assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nothing_but_our_own_lines_reaches_the_terminal():
    command = [sys.executable, "-W", "default", "-m", "harness", "run", "schedule=packed", "limit=1", *FAST]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("schedule")
    assert "Warning" not in done.stderr
    assert "[transformers]" not in done.stderr
