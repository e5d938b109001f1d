"""A run folder keeps what it has: torn ends, foreign records, full disks, other configs."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from harness.config.run_config import PLACES
from harness.errors import UserError
from harness.records.folder import RunFolder
from harness.records.manifest import SHAPE
from harness.records.record import read_records
from tests.builders.records import RECORD

PLAN = {"prompts": ["toy/0", "toy/1"], "repetitions": 1, "schedules": ["packed"], "shard": None}
TASK = {"name": "toy", "max_new_tokens": 8, "data_files": "a"}
CONFIG = {"seed": 0, "model": {"name": "tiny"}, "task": TASK, "schedules": {"packed": {}}, "temperature": 0.0}
IDENTITY = {"schema": 1, "config": CONFIG, "plan": PLAN, "data": {"sha256": "x"}}
OTHER = replace(RECORD, prompt_id="toy/1")


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    """A run with one record."""
    folder = RunFolder(tmp_path / "run")
    with folder.working(IDENTITY):
        folder.note(model={"parameters": 3, "dtype": "float32"})
        folder.append(RECORD)
    return folder


def go_on(folder: RunFolder, **changes) -> list:
    with folder.working(IDENTITY | changes, PLACES):
        return list(folder.records())


def test_start_and_end_stand_in_the_manifest_and_each_continuation_too(folder):
    go_on(folder)
    manifest = folder.read_manifest()
    for session in (manifest, *manifest["resumed"]):
        assert session["outcome"] == "ended"
        assert session["started_at"] <= session["ended_at"]
        assert {"code", "packages", "machine", "state_at_start", "state_at_end", "command"} <= session.keys()
    assert len(manifest["resumed"]) == 1


def test_a_torn_last_line_is_dropped_with_a_notice(folder, caplog):
    with folder.records_file.open("a") as file:
        file.write(OTHER.line()[:50])
    assert go_on(folder) == [RECORD]
    assert "dropped a torn last line of 50 bytes" in caplog.text
    assert folder.records_file.read_text() == RECORD.line()


def test_a_last_line_without_its_newline_is_kept(folder):
    folder.records_file.write_text(RECORD.line().rstrip("\n"))
    with folder.working(IDENTITY):
        folder.append(OTHER)
    assert list(read_records(folder.records_file)) == [RECORD, OTHER]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (RECORD.line(), "is there twice"),
        (replace(RECORD, prompt_id="toy/2").line(), "is no response of this run"),
        (replace(RECORD, schedule="linear").line(), "is no response of this run"),
        (replace(RECORD, repetition=1).line(), "is no response of this run"),
        (RECORD.line().replace('"nfe": 2', '"nfe": 3'), "line 2 was changed or damaged"),
    ],
)
def test_a_record_that_does_not_belong_is_named_and_nothing_is_changed(folder, line, said):
    folder.records_file.write_text(RECORD.line() + line + OTHER.line())
    before = folder.records_file.read_bytes()
    with pytest.raises(UserError, match=said):
        go_on(folder)
    assert folder.records_file.read_bytes() == before


def test_another_config_is_refused_with_the_keys_that_differ(folder):
    with pytest.raises(UserError, match=r"another config: seed was 0, is 5\. Give another run_dir"):
        go_on(folder, config=CONFIG | {"seed": 5})


def test_the_data_file_may_lie_elsewhere_but_must_be_the_same(folder):
    assert go_on(folder, config=CONFIG | {"task": TASK | {"data_files": "b"}}) == [RECORD]
    with pytest.raises(UserError, match="its data had sha256 x, now it is y"):
        go_on(folder, data={"sha256": "y"})


def test_another_model_is_refused(folder):
    with pytest.raises(UserError, match="its model had parameters 3, now it is 4"), folder.working(IDENTITY):
        folder.note(model={"parameters": 4, "dtype": "float32"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "is not JSON") for text in ("", "{", "\x00")),
        *((text, "no manifest of a run in schema 1") for text in ("{}", "[]", "3")),
        ('{"schema": 1, "config": 3}', "no manifest of a run, config is '3'"),
        (json.dumps(IDENTITY), "no manifest of a run, start 1 of it is none"),
    ],
)
def test_a_damaged_manifest_is_named(folder, text, said):
    folder.manifest_file.write_text(text)
    with pytest.raises(UserError, match=rf"manifest\.json: {said}"):
        go_on(folder)


@pytest.mark.parametrize("place", SHAPE)
def test_what_readers_rely_on_is_checked_in_one_place(folder, place):
    manifest = folder.read_manifest()
    *parents, last = place.split(".")
    inner = manifest
    for parent in parents:
        inner = inner[parent]
    inner[last] = [7]
    folder.manifest_file.write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=rf"no manifest of a run, {place} is '\[7\]'"):
        folder.read_manifest()


def test_records_without_a_manifest_are_nobodys(folder):
    folder.manifest_file.unlink()
    with pytest.raises(UserError, match=r"has records but no manifest\.json"):
        go_on(folder)


def test_what_went_wrong_is_left_for_status_until_the_next_start(folder):
    with pytest.raises(ValueError, match="two"), folder.working(IDENTITY):
        raise ValueError("two\nlines")
    assert folder.error_file.read_text() == "two\n"
    go_on(folder)
    assert not folder.error_file.exists()


def test_an_interruption_is_no_failure(folder):
    with pytest.raises(KeyboardInterrupt), folder.working(IDENTITY):
        raise KeyboardInterrupt
    assert not folder.error_file.exists()
    assert folder.read_manifest()["resumed"][-1]["outcome"] == "stopped"


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UserError, match=r"run_dir=.*file/run: cannot be written"),
        RunFolder(tmp_path / "file" / "run").working(IDENTITY),
    ):
        pass


FULL_DISK = """
import resource, signal, sys
from harness.errors import UserError
from harness.records.manifest import SHAPE
from tests.records.test_folder import IDENTITY, OTHER, RunFolder
from pathlib import Path
folder = RunFolder(Path(sys.argv[1]))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with folder.working(IDENTITY):
    size = folder.records_file.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
    try:
        folder.append(OTHER)
    except UserError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def test_a_full_disk_is_reported_and_loses_no_earlier_record(folder):
    command = [sys.executable, "-c", FULL_DISK, str(folder.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "records.jsonl: cannot be written" in done.stdout
    assert "All records before are safe" in done.stdout
    assert folder.records_file.read_text() == RECORD.line()
    assert json.loads(folder.manifest_file.read_text())["resumed"][-1]["outcome"] == "ended"
