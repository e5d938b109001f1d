"""A run killed at any moment goes on and ends as if nothing had happened."""

import json
import os
import random
import signal
import time
from multiprocessing import Process

import pytest

from harness.cli.main import main
from tests.builders.processes import fork

RUN = [
    *("run", "model=tiny_nemotron", "model.device=cpu", "warmups=0", "drift_prompts=0", "task.max_new_tokens=24"),
    *("schedule=[linear,packed,quadratic]", "limit=12", "temperature=1.0", "task.repetitions=2"),
]
TIMES = {"wall_s", "model_s", "started_at", "checksum"}


def untimed(folder):
    rows = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


def start(*arguments) -> Process:
    """A run in a process of its own, whose output nobody reads."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    process = fork(lambda: main([*RUN, *arguments]), nowhere, nowhere)
    os.close(nowhere)
    return process


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    began = time.monotonic()
    assert main([*RUN, f"run_dir={folder}"]) == 0
    return untimed(folder), time.monotonic() - began


def test_thirty_kills_lose_nothing_and_repeat_nothing(tmp_path, uninterrupted):
    wanted, seconds = uninterrupted
    random_moment = random.Random(0)
    done = b""
    for _ in range(30):
        process = start(f"run_dir={tmp_path}")
        process.join(timeout=random_moment.uniform(0, seconds / 8))
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        before, done = done, (tmp_path / "records.jsonl").read_bytes() if (tmp_path / "records.jsonl").exists() else b""
        assert done.startswith(before[: before.rfind(b"\n") + 1])
    assert main([*RUN, f"run_dir={tmp_path}"]) == 0
    assert untimed(tmp_path) == wanted


@pytest.mark.parametrize(("signal_sent", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_run_keeps_its_records_and_says_how_to_go_on(tmp_path, uninterrupted, signal_sent, status):
    wanted, _ = uninterrupted
    process = start(f"run_dir={tmp_path}")
    deadline = time.monotonic() + 30
    records = tmp_path / "records.jsonl"
    while not (records.exists() and records.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal_sent)
    process.join()
    assert process.exitcode == status
    assert json.loads((tmp_path / "manifest.json").read_text())["outcome"] == "stopped"
    found = untimed(tmp_path)
    assert 0 < len(found) < len(wanted)
    assert found == wanted[: len(found)]


def test_a_run_copied_elsewhere_goes_on_there(tmp_path, uninterrupted):
    wanted, _ = uninterrupted
    here, there = tmp_path / "here", tmp_path / "there"
    assert main([*RUN, f"run_dir={here}"]) == 0
    lines = (here / "records.jsonl").read_text().splitlines(keepends=True)
    there.mkdir()
    (there / "manifest.json").write_text((here / "manifest.json").read_text())
    (there / "records.jsonl").write_text("".join(lines[:-3]))
    assert main([*RUN, f"run_dir={there}"]) == 0
    assert untimed(there) == wanted
    assert main(["figures", str(there), f"out={tmp_path / 'figures'}", "only=table07"]) == 0
