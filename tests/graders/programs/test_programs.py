"""Hostile and odd programs, run for real."""

import json
import os
import socket
import tempfile
import time
from pathlib import Path

import pytest

from graders.code import Program
from graders.programs.sandbox import processes
from graders.verdict import Verdict
from tests.builders.case_files import cases

SMALL = {"cpu_s": 1, "wall_s": 2.0, "memory_bytes": 512 << 20, "disk_bytes": 8 << 20, "processes": 32}
PATIENT = {"cpu_s": 10, "wall_s": 30.0}
PLUS_ONE = ["assert f(1) == 2", "assert f(2) == 3"]


def graded(program: str, reference: dict, **limits: object) -> Verdict:
    """A small program's verdict; a machine too loaded to tell (`infra`) gets a second chance."""
    verdict = Program(**SMALL | limits).grade(program, reference)
    return (
        verdict if verdict.kind != "infra" else Program(**SMALL | limits | {"wall_s": 30.0}).grade(program, reference)
    )


def fenced(program: list[str]) -> str:
    return "```python\n" + "\n".join(program) + "\n```"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files that no other test shares."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def footprint(temporary: Path) -> dict[str, object]:
    """What a program could leave behind: processes of ours, a listening port, files."""
    folders = [Path("/tmp"), Path("/dev/shm"), Path("/var/tmp"), Path("/"), Path(os.__file__).parent, Path.cwd()]
    return {
        "processes": processes.descendants(os.getpid()),
        "files": [file for folder in folders for file in folder.glob("left-by-hostile-program")],
        "temporary": list(temporary.iterdir()),
        "is_port_open": is_open(45991),
    }


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("case", cases("hostile_programs"))
def test_a_hostile_program_gets_what_it_deserves_and_leaves_nothing(case, temporary):
    reference = {"entry_point": "f", "tests": case.get("tests", PLUS_ONE), "prompt": case.get("prompt", "")}
    before = footprint(temporary)

    verdict = graded(fenced(case["program"]), reference, **case.get("limits", {}))

    assert verdict.kind in case["expected"], verdict.reason
    assert footprint(temporary) == before


@pytest.mark.parametrize("case", cases("odd_programs"))
def test_a_correct_program_passes_however_odd(case):
    reference = {"entry_point": case.get("entry_point", "f"), "tests": case["tests"]}
    reference |= {name: case[name] for name in ("prompt", "setup") if name in case}

    verdict = Program(**PATIENT).grade(fenced(case["program"]), reference)

    assert verdict.reason == "passed"


def test_the_verdict_keeps_the_extracted_program():
    verdict = Program(**PATIENT).grade("Sure:\n```python\ndef f(x):\n    return x\n```", {"tests": PLUS_ONE})

    assert json.loads(json.dumps(verdict.record())) == {
        "correct": False,
        "reason": "failed\ntest 1 of 2\nassert f(1) == 2\nAssertionError",
        "answer": "def f(x):\n    return x",
    }


@pytest.mark.parametrize("response", ["", "Sorry, I cannot.", "```\n```"])
def test_a_response_without_code_is_wrong(response):
    assert Program().grade(response, {"tests": PLUS_ONE}).record() == {
        "correct": False,
        "reason": "no code",
        "answer": None,
    }


@pytest.mark.parametrize("reference", [{}, {"tests": ["assert f("]}, {"tests": []}])
def test_a_broken_reference_is_nobodys_mistake(reference):
    verdict = Program().grade("def f(x):\n    return x", reference)

    assert (verdict.correct, verdict.kind) == (None, "infra")


def test_resource_limits_alone_still_judge_and_bound():
    kinds = [
        graded(f"def f(x):\n    {body}", {"tests": PLUS_ONE}, isolation="limits").kind
        for body in ("return x + 1", "return x", "raise SystemExit", "import os; os._exit(0)", "while True: pass")
    ]

    assert kinds == ["passed", "failed", "failed", "crashed", "timeout"]


def test_an_unknown_isolation_is_refused():
    with pytest.raises(ValueError, match="full, limits"):
        Program(isolation="none")


READS_ITS_MEMORY = """
import io, re
CONTROL = "XYZZY-1"
NEEDLE = re.compile(rb"XYZZ[Y]-(\\d)")
def f():
    found = set()
    with io.open("/proc/self/maps") as maps, io.open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            low, high = (int(end, 16) for end in line.split()[0].split("-"))
            if "rw-p" in line and high - low < 1 << 26:
                memory.seek(low)
                found |= set(NEEDLE.findall(memory.read(high - low)))
    return CONTROL and sorted(found)
"""


def test_nothing_of_the_tests_is_in_the_memory_of_the_program():
    tests = ["EXPECTED = 'XYZZY-7'", "assert f() == [b'1']"]

    verdict = Program(**PATIENT).grade(fenced(READS_ITS_MEMORY.split("\n")), {"entry_point": "f", "tests": tests})

    assert verdict.reason == "passed"


def test_a_sleeping_program_is_ended_on_time():
    start = time.monotonic()

    verdict = Program(**SMALL).grade("import time\ndef f(x):\n    time.sleep(1e9)", {"tests": PLUS_ONE})

    assert verdict.reason == "timeout\n2 s"
    assert time.monotonic() - start < 60
