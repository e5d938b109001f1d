"""One process at a time in a run folder, whatever became of the one before."""

import contextlib
import json
import multiprocessing
import os
import signal
import time

import pytest

from harness.errors import UserError
from harness.records.lock import NAME, is_held, locked

# Forking is quick, and these children touch nothing but files.
fork = multiprocessing.get_context("fork")


def hold(folder, ours):
    with locked(folder):
        ours.send("ready")
        ours.recv()


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    theirs, ours = fork.Pipe()
    process = fork.Process(target=hold, args=(tmp_path, ours))
    process.start()
    assert theirs.poll(10)
    yield process
    # A killed one hears nothing.
    with contextlib.suppress(BrokenPipeError):
        theirs.send("end")
    process.join()


def test_a_second_process_is_refused_and_told_who_works_there(tmp_path, holder):
    assert is_held(tmp_path)
    with pytest.raises(UserError, match=rf"process {holder.pid} on .*is working there"), locked(tmp_path):
        pass


def test_a_killed_process_holds_nothing(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert not is_held(tmp_path)
    with locked(tmp_path):
        assert is_held(tmp_path)
    assert not is_held(tmp_path)


def from_another_host(folder, age_s):
    path = folder / NAME
    path.write_text(json.dumps({"host": "elsewhere", "process": 7, "started_at": "2026-01-01T00:00:00+00:00"}))
    touched = time.time() - age_s
    os.utime(path, (touched, touched))


def test_another_hosts_lock_counts_while_it_is_touched(tmp_path):
    from_another_host(tmp_path, age_s=60)
    assert is_held(tmp_path)
    with pytest.raises(UserError, match="process 7 on elsewhere"), locked(tmp_path):
        pass


def test_another_hosts_lock_is_stale_when_it_was_not_touched_for_long(tmp_path):
    from_another_host(tmp_path, age_s=600)
    assert not is_held(tmp_path)
    with locked(tmp_path):
        assert "elsewhere" not in (tmp_path / NAME).read_text()


def test_a_lock_file_of_nonsense_is_nobodys(tmp_path):
    (tmp_path / NAME).write_text('{"host":')
    with locked(tmp_path):
        assert is_held(tmp_path)


def contend(folder, both, outcomes):
    both.wait()
    try:
        with locked(folder):
            outcomes.put("proceeded")
            both.wait()  # for the other one, however late it comes to its turn
    except UserError:
        outcomes.put("refused")
        both.wait()


@pytest.mark.parametrize("attempt", range(20))
def test_of_two_processes_at_the_same_instant_exactly_one_proceeds(tmp_path, attempt):
    both, outcomes = fork.Barrier(2, timeout=20), fork.Queue()
    processes = [fork.Process(target=contend, args=(tmp_path, both, outcomes)) for _ in range(2)]
    for process in processes:
        process.start()
    found = sorted(outcomes.get(timeout=20) for _ in processes)
    for process in processes:
        process.join()
    assert found == ["proceeded", "refused"]
