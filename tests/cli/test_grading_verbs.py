"""Grading without decoding: a run again, answers of others, and the data sets' own answers."""

import json
import subprocess
import sys

import pytest

from graders.programs.execution import Outcome
from harness.cli.main import main
from harness.records.record import read_records, sealed

GSM8K = [{"question": f"1+{n}?", "answer": f"Add.\n#### {1 + n}"} for n in range(3)]
HUMANEVAL = {
    "task_id": "HumanEval/7",
    "prompt": 'def twice(x):\n    """Twice x."""\n',
    "canonical_solution": "    return 2 * x\n",
    "entry_point": "twice",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
OWN_CODE = {"prompt": "", "entry_point": "twice", "tests": ["assert twice(2) == 4"]}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def gsm8k(tmp_path):
    return f"task.data_files={write(tmp_path / 'gsm8k.jsonl', GSM8K)}"


@pytest.fixture
def humaneval(tmp_path):
    return f"task.data_files={write(tmp_path / 'humaneval.jsonl', [HUMANEVAL])}"


@pytest.fixture
def answers(tmp_path):
    return lambda *rows: write(tmp_path / "answers.jsonl", rows)


def verdicts_of(capsys, *arguments):
    assert main(["grade-responses", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def error_of(capsys, *arguments):
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = (line for line in captured.err.splitlines() if line.startswith("error: "))
    return line


def test_answers_come_back_in_order_judged_by_the_data_set_or_their_own_gold(capsys, gsm8k, answers):
    file = answers(
        {"id": "a", "response": "\\boxed{2}", "prompt_id": "gsm8k/1"},
        {"id": 7, "response": "\\boxed{2}", "prompt_id": 2},
        {"id": "c", "response": "It is 1,000.", "gold": 1000},
        {"id": "d", "response": "", "gold": "#### 5"},
    )
    verdicts = verdicts_of(capsys, "gsm8k", file, gsm8k)
    assert [{key: verdict[key] for key in ("id", "correct", "reason", "answer")} for verdict in verdicts] == [
        {"id": "a", "correct": True, "reason": "boxed", "answer": "2"},
        {"id": 7, "correct": False, "reason": "boxed", "answer": "2"},
        {"id": "c", "correct": True, "reason": "final number", "answer": "1000"},
        {"id": "d", "correct": False, "reason": "no answer", "answer": None},
    ]


def test_programs_are_judged_by_the_data_set_or_their_own_tests(capsys, humaneval, answers):
    right = "def twice(x):\n    return x + x"
    file = answers(
        {"id": 1, "response": right, "prompt_id": "HumanEval/7"},
        {"id": 2, "response": "def twice(x):\n    return x", **OWN_CODE},
        {"id": 3, "response": "    return x * 2", "prompt": HUMANEVAL["prompt"], "tests": ["assert twice(1) == 2"]},
    )
    verdicts = verdicts_of(capsys, "humaneval", file, humaneval)
    assert [(verdict["id"], verdict["correct"]) for verdict in verdicts] == [(1, True), (2, False), (3, True)]
    assert verdicts[0]["answer"].strip() == right


def test_the_data_set_is_not_read_without_need(capsys, answers):
    file = answers({"id": 1, "response": "\\boxed{1}", "gold": "1"})
    assert verdicts_of(capsys, "gsm8k", file, "task.data_files=nowhere.jsonl")[0]["correct"] is True


def test_odd_answers_get_a_verdict_and_stop_nothing(capsys, answers):
    odd = ["", "\ud800", "\\boxed{" * 20_000, "\\boxed{" + "9" * 4_000 + "}", "\\boxed{9^{9^{9^9}}}", "x" * 1_000_000]
    odd += ["\\boxed{１８}", "\u2028\x00", "{" * 50_000]
    file = answers(*({"id": number, "response": text, "gold": "18"} for number, text in enumerate(odd)))
    for task in ("gsm8k", "math500"):
        verdicts = verdicts_of(capsys, task, file)
        assert [verdict["id"] for verdict in verdicts] == list(range(len(odd)))
        assert all(verdict["reason"] for verdict in verdicts)


@pytest.mark.parametrize(
    ("task", "row", "said"),
    [
        ("gsm8k", {"response": "x"}, "lacks id"),
        ("gsm8k", {"id": 1, "response": 5, "gold": "1"}, "response of type int"),
        ("gsm8k", {"id": 1, "response": "x"}, "neither of prompt_id and gold"),
        ("gsm8k", {"id": 1, "response": "x", "gold": "1", "prompt_id": 1}, "both of prompt_id and gold"),
        ("gsm8k", {"id": 1, "response": "x", "gold": ["1"]}, "gold of type list"),
        ("gsm8k", {"id": 1, "response": "x", "prompt_id": "gsm8k/99"}, "no item gsm8k/99 among 3 of gsm8k"),
        ("gsm8k", {"id": 1, "response": "x", "prompt_id": True}, "prompt_id of type bool"),
        ("mbpp", {"id": 1, "response": "x", "gold": "1"}, "neither of prompt_id and tests"),
        ("mbpp", {"id": 1, "response": "x", **OWN_CODE, "tests": "assert f()"}, "no list of statements"),
        ("mbpp", {"id": 1, "response": "x", **OWN_CODE, "tests": []}, "no list of statements"),
        ("mbpp", {"id": 1, "response": "x", **OWN_CODE, "tests": ["assert ("]}, "test 1 is not Python"),
        ("mbpp", {"id": 1, "response": "x", **OWN_CODE, "entry_point": None}, "entry_point of type NoneType"),
        ("mbpp", {"id": 1, "response": "x", "tests": ["assert f()"]}, "neither prompt nor entry_point"),
    ],
)
def test_a_bad_line_is_named_and_stops_nothing(capsys, gsm8k, answers, task, row, said):
    good = {"id": 0, "response": "x", **({"gold": "1"} if task == "gsm8k" else OWN_CODE)}
    assert main(["grade-responses", task, answers(good, row, good), gsm8k]) == 2
    captured = capsys.readouterr()
    first, bad, last = map(json.loads, captured.out.splitlines())
    assert first == last
    assert first["correct"] is False
    assert (bad["id"], bad["correct"], bad["answer"]) == (row.get("id"), None, None)
    kind, problem = bad["reason"].splitlines()
    assert kind == "infra"
    assert "answers.jsonl: line 2" in problem
    assert said in problem
    assert f"error: 1 of 3 lines are not graded. {problem}\n" in captured.err


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\n", "line 1 is not UTF-8"), (b"\n[1]\n", "line 2 holds a list"), (b"1" * 9_000, "line 1 is not JSON")],
)
def test_a_line_that_is_no_object_is_named(capsys, tmp_path, content, said):
    (tmp_path / "bad.jsonl").write_bytes(content)
    assert main(["grade-responses", "gsm8k", "bad.jsonl"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["reason"].startswith(f"infra\nbad.jsonl: {said}")
    assert f"bad.jsonl: {said}" in captured.err


def test_of_many_bad_lines_three_are_named(capsys, tmp_path):
    (tmp_path / "bad.jsonl").write_text("no\n" * 9)
    assert main(["grade-responses", "gsm8k", "bad.jsonl"]) == 2
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 9
    assert captured.err.count("bad.jsonl: line") == 3
    assert "9 of 9 lines are not graded" in captured.err
    assert "And 6 more." in captured.err


def test_a_file_without_lines_is_named(capsys, tmp_path):
    (tmp_path / "bad.jsonl").write_text("\n\n")
    assert "bad.jsonl: the file is empty" in error_of(capsys, "grade-responses", "gsm8k", "bad.jsonl")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grade-responses", "gsm8k"], "name a task and a file"),
        (["grade-responses", "gsm8k", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["grade-responses", "gsmk8", "nowhere.jsonl"], "no such task"),
        (["grade-responses", "toy_writing", "nowhere.jsonl"], "measures speed only"),
        (["check-task"], "name a task"),
        (["check-task", "toy_writing"], "none of its 500 items has a reference answer"),
        (["grade"], "takes the folder of one run"),
        (["grade", "nowhere"], "no run there, it has no manifest.json"),
    ],
)
def test_mistakes_get_one_line(capsys, arguments, said):
    assert said in error_of(capsys, *arguments)


def test_verdicts_go_to_stdout_and_progress_to_stderr(answers):
    file = answers({"id": 1, "response": "\\boxed{1}", "gold": "1"})
    command = [sys.executable, "-m", "harness", "grade-responses", "gsm8k", file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["correct"] is True
    assert "1/1" in done.stderr


def test_reference_answers_that_pass_are_counted(capsys, gsm8k):
    assert main(["check-task", "gsm8k", gsm8k]) == 0
    assert capsys.readouterr().out == "gsm8k: 3 of 3 reference answers pass\n"


def test_a_reference_answer_that_fails_is_named_with_its_reason(capsys, tmp_path):
    wrong = {**HUMANEVAL, "task_id": "HumanEval/8", "canonical_solution": "    return x\n"}
    file = write(tmp_path / "rows.jsonl", [HUMANEVAL, wrong])
    assert main(["check-task", "humaneval", f"task.data_files={file}"]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("humaneval/8: failed")
    assert last == "humaneval: 1 of 2 reference answers pass"


def test_a_limit_makes_the_check_partial(capsys, gsm8k):
    assert main(["check-task", "gsm8k", gsm8k, "limit=2"]) == 0
    assert "2 of 2 reference answers pass (PARTIAL: 3 items" in capsys.readouterr().out


@pytest.mark.parametrize(("task", "file"), [("gsm8k", "gsm8k_test.jsonl"), ("math500", "math500_test.jsonl")])
def test_all_real_reference_answers_pass(capsys, data_dir, task, file):
    assert main(["check-task", task, f"task.data_files={data_dir / file}"]) == 0


@pytest.mark.parametrize(("task", "file"), [("humaneval", "HumanEval.jsonl.gz"), ("mbpp", "mbpp.jsonl")])
def test_real_reference_programs_pass(capsys, data_dir, task, file):
    assert main(["check-task", task, f"task.data_files={data_dir / file}", "limit=4"]) == 0


@pytest.fixture
def finished(capsys, gsm8k, tmp_path):
    """A run whose verdicts are wrong on purpose, with a key that this version does not know."""
    common = ["model=tiny_nemotron", "model.device=cpu", "warmups=0", "task.max_new_tokens=8", "schedule=packed"]
    assert main(["run", *common, "task=gsm8k", gsm8k, "run_dir=out"]) == 0
    file = tmp_path / "out" / "records.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[0]["text"] = "\\boxed{1}"
    for row in rows:
        row |= {"verdict": None, "later": 1 / 3}
    file.write_text("".join(sealed(row) for row in rows))
    (tmp_path / "out" / "summary.json").unlink()
    capsys.readouterr()
    return tmp_path / "out"


def test_a_run_is_graded_again_and_only_its_verdicts_change(capsys, finished):
    before = [json.loads(line) for line in (finished / "records.jsonl").read_text().splitlines()]
    assert main(["grade", str(finished)]) == 0
    after = [json.loads(line) for line in (finished / "records.jsonl").read_text().splitlines()]
    assert [row | {"verdict": None, "checksum": ...} for row in after] == [row | {"checksum": ...} for row in before]
    assert next(read_records(finished / "records.jsonl")).verdict["correct"] is True
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["schedules"]["packed"]["accuracy"] == pytest.approx(1 / 3)
    captured = capsys.readouterr()
    assert "33.3 %" in captured.out
    assert "PARTIAL" not in captured.out
    assert not list(finished.glob("*.partial"))


def test_a_run_is_not_graded_by_other_data(capsys, finished, tmp_path):
    before = (finished / "records.jsonl").read_text()
    write(tmp_path / "gsm8k.jsonl", GSM8K[:2])
    assert "its data had sha256" in error_of(capsys, "grade", str(finished))
    assert (finished / "records.jsonl").read_text() == before


def test_a_sandbox_that_cannot_start_stops_the_run_before_it_begins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("graders.code.execute", lambda *_: Outcome("infra", "no process can be started here."))
    assert main(["run", "task=toy_code", "limit=1", "run_dir=out"]) == 2
    said = capsys.readouterr().err
    assert "toy_code: its programs cannot be judged on this machine: no process can be started here." in said
    assert not (tmp_path / "out").exists()
    assert main(["run", "task=toy_math", "limit=1", "warmups=0", "run_dir=out"]) == 0
