"""What the supervisor's reports mean, and that nothing outlives a grader."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from graders.programs.execution import Limits, Outcome, execute, understand
from graders.programs.reference import CodeReference
from graders.programs.sandbox import processes

LIMITS = Limits(cpu_s=10, wall_s=20.0)
NONCE = "5ec2e7"
STARVED = "starved: 0.1 s of processor time in 60 s"

OUT_OF_MEMORY = "the machine ran out of memory; the program held {} MiB"


def report(outcome: str | None = None, detail: str = "", nonce: str = NONCE, **fields: object) -> dict:
    """A supervisor's report; by default the judge decided and all went well."""
    decision = json.dumps({"nonce": nonce, "outcome": outcome, "detail": detail}) if outcome else ""
    quiet = {
        "decision": decision,
        "ended": "decided",
        "wall_s": 1.0,
        "waiting_s": 0.0,
        "cpu_s": 0.1,
        "judge_cpu_s": 0.1,
        "player_signal": 0,
        "player_exit": 0,
        "peak_bytes": 100 << 20,
        "oom_kills": 0,
        "judge_signal": 0,
        "is_separate": True,
        "is_clean": True,
    }
    return quiet | fields


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (report("passed"), Outcome("passed")),
        (report("failed", "test 1 of 2"), Outcome("failed", "test 1 of 2")),
        (report("memory", "test 1 of 2"), Outcome("memory", "test 1 of 2")),
        (report("passed", nonce="forged"), Outcome("infra", "the judge ended by signal 0")),
        (report("passed", nonce="forged", is_separate=False), Outcome("crashed", "\nexit status 0")),
        (report("passed", ended="wall", wall_s=20.5), Outcome("timeout", "20 s")),
        (
            report("crashed", "test 1: end of stream", player_exit=3),
            Outcome("crashed", "test 1: end of stream\nexit status 3"),
        ),
        (report("crashed", "test 1", player_signal=11), Outcome("crashed", "test 1\nSIGSEGV")),
        (report("crashed", "test 1", player_signal=9), Outcome("crashed", "test 1\nSIGKILL")),
        (report("crashed", "test 1", player_exit=None), Outcome("crashed", "test 1")),
        (report("crashed", "test 1", player_signal=9, cpu_s=10.5), Outcome("timeout", "10 s of processor time")),
        (report("crashed", player_signal=9, oom_kills=1), Outcome("infra", OUT_OF_MEMORY.format(100))),
        (
            report("crashed", player_signal=9, oom_kills=1, peak_bytes=1500 << 20),
            Outcome("memory", OUT_OF_MEMORY.format(1500)),
        ),
        (report(ended="cpu", judge_cpu_s=10.0), Outcome("timeout", "10 s of processor time")),
        (report(judge_signal=9, judge_cpu_s=10.0), Outcome("timeout", "10 s of processor time")),
        (report(judge_signal=11), Outcome("crashed", "an answer that ended the tests by SIGSEGV")),
        (report(judge_signal=9), Outcome("infra", "the judge ended by signal 9")),
        (report("infra", "the player did not start"), Outcome("infra", "the player did not start")),
        (report(ended="wall", wall_s=20.1), Outcome("timeout", "20 s")),
        (
            report(ended="wall", wall_s=60.0, waiting_s=55.0),
            Outcome("infra", STARVED),
        ),
        (report(ended="wall", wall_s=60.0, waiting_s=55.0, cpu_s=10.0), Outcome("timeout", "10 s of processor time")),
        (report(ended="cpu", cpu_s=1.0), Outcome("timeout", "10 s of processor time")),
        (report(ended="memory"), Outcome("memory", "more than 2048 MiB in all its processes")),
        (report(ended="disk"), Outcome("failed", "more than 64 MiB of files")),
        (report(ended="abandoned"), Outcome("infra", "the grader went away")),
        ("no report within 80 s", Outcome("infra", "no report within 80 s")),
        (report() | {"decision": "{garbage"}, Outcome("infra", "the judge ended by signal 0")),
    ],
)
def test_meaning_of_a_report(given, expected):
    assert understand(given, NONCE, LIMITS) == expected


def test_an_interpreter_that_does_not_start_is_infra(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    task = CodeReference.read({"tests": ["assert f(1) == 2"]})

    assert execute("def f(x):\n    return x + 1", task, LIMITS).kind == "infra"


def test_nothing_outlives_a_grader_that_is_killed():
    program = "import time\ndef f(x):\n    time.sleep(600)"
    script = (
        f"from graders.code import Program\nProgram(wall_s=600).grade({program!r}, {{'tests': ['assert f(1) == 2']}})"
    )
    grader = subprocess.Popen([sys.executable, "-c", script], cwd=os.getcwd())
    family = _wait_for(lambda: found if len(found := processes.descendants(grader.pid)) >= 3 else None)

    grader.send_signal(signal.SIGKILL)
    grader.wait()

    assert _wait_for(lambda: not set(family) & set(processes.parents()))


def _wait_for(condition, patience_s: float = 60.0):
    deadline = time.monotonic() + patience_s
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return value
