"""The doctor's report: one line a finding, and an exit status that a script can use."""

import re

from harness.cli.main import main


def findings(capsys) -> dict[str, tuple[str, str]]:
    """Status and words of each finding, by what it is about."""
    lines = [re.split(" {2,}", line, maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    return {what: (status, says) for status, what, says in lines}


def test_the_embedded_model_and_task_need_nothing_that_is_not_here(capsys):
    assert main(["doctor", "model=tiny_nemotron", "task=toy_math", "model.device=cpu"]) == 0
    found = findings(capsys)
    assert {status for status, _ in found.values()} <= {"ok", "warning"}
    assert found["evalplus"][0] == found["model tiny_nemotron, memory"][0] == "ok"
    assert found["model tiny_nemotron, files"][1].endswith("tiny_nemotron")
    assert found["task toy_math"] == ("ok", "500 items")
    assert found["libraries"][1].startswith("torch ")


def test_what_is_missing_is_said_with_what_to_do_and_counts(capsys, tmp_path):
    data = f"task.data_files={tmp_path / 'none.jsonl'}"
    assert main(["doctor", "model=nemotron8b", "task=gsm8k", "model.path=/nowhere", data]) == 1
    found = findings(capsys)
    assert found["model nemotron8b, files"][0] == "fails"
    assert found["model nemotron8b, files"][1].startswith("model.path=/nowhere: no folder there")
    assert found["task gsm8k"] == ("fails", f"{data}: no such file.")
    assert "17.0 GB" in found["model nemotron8b, memory"][1]
    assert found["disk, model nemotron8b"][0] in ("ok", "fails")


def test_a_device_that_is_not_the_papers_is_warned_of(capsys):
    main(["doctor", "model=tiny_nemotron", "task=toy_math"])
    status, says = findings(capsys)["device"]
    assert status == "ok" or "not for the paper's" in says or "times will not compare with the paper's" in says
