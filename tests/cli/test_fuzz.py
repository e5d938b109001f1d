"""Whatever a config or a run folder says, a command succeeds or ends with one line and exit status 2.

An exception that escapes is a defect of the harness, and fails these tests by itself.
"""

import contextlib
import io
import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.cli.main import main
from tests.builders.commands import changed

IN_CI, NIGHTLY = 70, 1000  # cases of each of the two tests

QUICK = [
    *("run", "model=tiny_nemotron", "model.device=cpu", "task=gsm8k", "warmups=0", "drift_prompts=0"),
    *("task.max_new_tokens=4", "schedule=[linear,packed]"),
]
# Keys whose larger values are honest work are fuzzed by small numbers only.
KEYS = st.sampled_from(
    [
        *("limit", "prompts", "seed", "temperature", "top_k", "top_p", "shard", "on_error", "samples", "run_dir"),
        *("drift_prompts", "order", "schedule", "schedules", "schedules.packed.width", "schedules.linear", "adapter"),
        *(
            "task",
            "task.max_new_tokens",
            "task.template",
            "task.stop_texts",
            "task.thinking",
            "task.grader",
            "task.name",
        ),
        *(
            "task.source",
            "task.data_files",
            "model.path",
            "model.dtype",
            "model.device",
            "model.name",
            "model._target_",
        ),
        *("adapter_mode", "experiment", "nonsense", "model.nonsense", "+new", "~limit", "hydra.run.dir"),
    ]
)
VALUES = st.one_of(
    st.sampled_from(
        [
            *("", "null", "true", "-1", "0", "1", "2", "1.5", "1e-300", "1e400", "nan", "-inf", "1_0", "0x1", "''"),
            *("[]", "[1,2]", "[a,[b]]", "{}", "{a:1}", "{a:{b:c}}", "${limit}", "${oc.env:NO_SUCH}", "???", "a,b"),
            *("packed", "native", "confidence", "random", "quadratic", "toy_math", "fused", "../x", "/dev/null/x"),
            *("'{question'", "'{}'", "'{0}'", "'{answer}'", "'{question!x}'", "'{question:>9}'", "\u2028", "\x00", "ü"),
        ]
    ),
    st.integers(-3, 3).map(str),
    st.text(max_size=8),
)
OVERRIDES = st.lists(st.tuples(KEYS, VALUES).map("=".join), min_size=1, max_size=3)


def fuzzing(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def check(arguments: list[str]) -> None:
    """Runs a command and checks how it ends."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    errors = [line for line in err.getvalue().split("\n") if line.startswith("error: ")]
    assert status in (0, 2), arguments
    assert len(errors) == (status == 2), (arguments, err.getvalue())
    assert "Traceback" not in err.getvalue(), arguments


def fuzz_configs(tmp_path, overrides: list[str]) -> None:
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    questions = [{"question": "Ada has 3 cups and buys 4. How many?", "answer": "#### 7"}] * 2
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    check(changed([*QUICK, "task.data_files=data.jsonl", "run_dir=out"], *overrides))


@fuzzing(IN_CI)
@given(overrides=OVERRIDES)
def test_any_config_runs_or_is_refused_in_one_line(tmp_path, overrides):
    fuzz_configs(tmp_path, overrides)


@pytest.mark.slow
@fuzzing(NIGHTLY)
@given(overrides=OVERRIDES)
def test_many_configs_run_or_are_refused_in_one_line(tmp_path, overrides):
    fuzz_configs(tmp_path, overrides)


FILES = st.sampled_from(["records.jsonl", "manifest.json", "summary.json", "run.lock"])
COMMANDS = st.sampled_from(["run", "status", "figures", "compare", "grade", "merge"])
BYTES = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [b"null", b"[]", b"{}", b"-1", b'"x"', b"NaN", b"1e999", b"9" * 400, b"\n", b"\xff", b'{"schema":1}\n']
    ),
)
# Where, as a part of the file, how many bytes go, and what takes their place.
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), BYTES), min_size=1, max_size=3)
FIELDS = st.sampled_from(
    [
        *("config", "plan", "data", "model", "code", "machine", "schema", "resumed", "started_at", "drift"),
        *("config.task", "config.model", "config.schedules", "plan.prompts", "plan.schedules", "plan.repetitions"),
        *("plan.shard", "config.task.max_new_tokens", "config.temperature"),
    ]
)
NOTHING = object()
JSON = st.sampled_from([NOTHING, None, 0, -1, 2, "", "x", "1/2", [], [1], {}, {"a": 1}, True, 1e308])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run that tests damage copies of."""
    folder = tmp_path_factory.mktemp("finished")
    rows = [{"question": "Ada has 3 cups and buys 4. How many?", "answer": "#### 7"}] * 2
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main([*QUICK, f"task.data_files={folder / 'data.jsonl'}", f"run_dir={folder / 'run'}"]) == 0
    return folder


def damaged(content: bytes, changes) -> bytes:
    for place, removed, added in changes:
        at = int(place * len(content))
        content = content[:at] + added + content[at + removed :]
    return content


def with_field(content: bytes, path: str, value) -> bytes:
    manifest = json.loads(content)
    *parents, last = path.split(".")
    inner = manifest
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    if value is NOTHING:
        del inner[last]
    return json.dumps(manifest).encode()


def fuzz_folders(finished, tmp_path, file, changes, field, command) -> None:
    run = tmp_path / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(finished / "run", run)
    target = run / file
    content = target.read_bytes()
    target.write_bytes(with_field(content, *field) if field and file == "manifest.json" else damaged(content, changes))
    data = f"task.data_files={finished / 'data.jsonl'}"
    check(
        {
            "run": [*QUICK, data, "run_dir=run"],
            "status": ["status", "run"],
            "figures": ["figures", "run", "out=out", "only=table02,table06"],
            "compare": ["compare", "run"],
            "grade": ["grade", "run"],
            "merge": ["merge", "run", "into=merged"],
        }[command]
    )


FOLDERS = {
    "file": FILES,
    "changes": CHANGES,
    "field": st.one_of(st.none(), st.tuples(FIELDS, JSON)),
    "command": COMMANDS,
}


@fuzzing(IN_CI)
@given(**FOLDERS)
def test_any_run_folder_is_used_or_refused_in_one_line(finished, tmp_path, file, changes, field, command):
    fuzz_folders(finished, tmp_path, file, changes, field, command)


@pytest.mark.slow
@fuzzing(NIGHTLY)
@given(**FOLDERS)
def test_many_run_folders_are_used_or_refused_in_one_line(finished, tmp_path, file, changes, field, command):
    fuzz_folders(finished, tmp_path, file, changes, field, command)
