"""The published data sets: their layouts become items, their counts are checked, their own answers are known."""

import gzip
import json

import pytest

from graders.code import Program
from graders.gsm8k import Gsm8k
from graders.math500 import Math500
from harness.cli.main import main
from harness.config.compose import compose
from harness.errors import UserError
from harness.running.build import build
from harness.tasks.gsm8k import Gsm8kSource
from harness.tasks.humaneval import HumanEvalSource
from harness.tasks.math500 import Math500Source
from harness.tasks.mbpp import MbppSource, evalplus_numbers
from harness.tasks.task import Item
from harness.tasks.writingbench import WritingBenchSource, is_english

MATH = {
    "problem": "What is $1+1$?",
    "solution": "It is $\\boxed{2}$.",
    "answer": "2",
    "unique_id": "test/algebra/1.json",
}
HUMANEVAL = {
    "task_id": "HumanEval/7",
    "prompt": 'def twice(x):\n    """Twice {x}."""\n',
    "canonical_solution": "    return 2 * x\n",
    "entry_point": "twice",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
}
MBPP = {
    "task_id": 2,
    "text": "Write a function to double a number.",
    "code": "def twice(x):\r\n    return 2 * x\r\n",
    "test_setup_code": "",
    "test_list": ["assert twice(2) == 4", "assert twice(0) == 0"],
    "challenge_test_list": [],
}
MBPP_PLUS = {
    "task_id": "Mbpp/2",
    "prompt": '"""\nWrite a function to double a number.\nassert twice(2) == 4\n"""\n',
    "canonical_solution": "\ndef twice(x):\n    return 2 * x\n",
    "entry_point": "twice",
    "base_input": [[2], [0]],
    "plus_input": [[9]],
    "contract": "",
    "atol": 0,
    "assertion": "import math\nassert twice(2) == 4\nassert math.isclose(\n    twice(0), 0\n)\n",
}


@pytest.fixture
def file_of(tmp_path):
    def write(*rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


def test_gsm8k_answers_are_rewritten_as_boxed_responses(file_of):
    row = {"question": "?", "answer": "1,000 + 1 = <<1000+1=1001>>1,001\n#### 1,001"}
    (item,) = Gsm8kSource("revision", file_of(row)).read().items
    assert item.solution == "1,000 + 1 = <<1000+1=1001>>1,001\n\\boxed{1,001}"
    assert Gsm8k().grade(item.solution, item.reference).kind == "boxed"


def test_math500_rows_become_items_named_by_their_unique_id(file_of):
    data = Math500Source("revision", file_of(MATH)).read()
    expected = Item("math500/test/algebra/1.json", {"problem": MATH["problem"]}, {"gold": "2"}, "It is $\\boxed{2}$.")
    assert data.items == [expected]
    assert data.notices == ["math500: 1 items, the published set has 500"]
    assert Math500().grade(expected.solution, expected.reference).correct


def test_humaneval_rows_become_items_from_plain_and_compressed_files(file_of, tmp_path):
    plain = HumanEvalSource("revision", file_of(HUMANEVAL)).read()
    packed = tmp_path / "HumanEval.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(HUMANEVAL).encode()))
    assert HumanEvalSource("revision", str(packed)).read().items == plain.items
    assert plain.notices == ["humaneval: 1 items, the published set has 164"]
    (item,) = plain.items
    assert item.prompt_id == "humaneval/7"
    assert item.reference == {
        "prompt": HUMANEVAL["prompt"],
        "entry_point": "twice",
        "tests": [HUMANEVAL["test"], "check(twice)"],
    }
    assert Program().grade(item.solution, item.reference).reason == "passed"


def test_braces_of_an_item_reach_the_prompt_as_they_are(file_of):
    task = build(compose(["task=humaneval", f"task.data_files={file_of(HUMANEVAL)}"]).task, "task")
    (item,) = task.source.read().items
    assert '"""Twice {x}."""\n```' in task.prompt(item)


def test_mbpp_is_read_in_both_layouts(file_of):
    (original,) = MbppSource("revision", file_of(MBPP)).read().items
    (plus,) = MbppSource("revision", file_of(MBPP_PLUS)).read().items
    assert original.prompt_id == plus.prompt_id == "mbpp/2"
    assert original.fields["text"] == plus.fields["text"] == "Write a function to double a number."
    assert original.fields["tests"] == "assert twice(2) == 4\nassert twice(0) == 0"
    assert plus.reference["tests"] == [
        "import math",
        "assert twice(2) == 4",
        "assert math.isclose(\n    twice(0), 0\n)",
    ]
    for item in (original, plus):
        assert item.solution == "```python\ndef twice(x):\n    return 2 * x\n```"
        assert Program().grade(item.solution, item.reference).reason == "passed"


def test_mbpp_selects_the_problems_of_evalplus_in_order(file_of):
    path = file_of(*({**MBPP, "task_id": number} for number in (9, 1, 2, 5, 3)))
    chosen = MbppSource("revision", path).read()
    assert [item.prompt_id for item in chosen.items] == ["mbpp/2", "mbpp/3", "mbpp/9"]
    assert chosen.notices == ["mbpp (evalplus): 3 items, the published set has 378"]
    every = MbppSource("revision", path, "all").read()
    assert [item.prompt_id for item in every.items] == [f"mbpp/{number}" for number in (1, 2, 3, 5, 9)]
    assert every.notices == ["mbpp (all): 5 items, the published set has 974"]


def test_evalplus_has_378_problems():
    numbers = evalplus_numbers()
    assert len(numbers) == len(set(numbers)) == 378


def test_the_selection_is_a_key_of_the_task(file_of):
    config = compose(["task=mbpp", f"task.data_files={file_of(MBPP)}", "task.selection=all"])
    assert build(config.task, "task").source.selection == "all"
    with pytest.raises(UserError, match=r"task\.selection=al: .*Did you mean all"):
        build(compose(["task=mbpp", "task.selection=al"]).task, "task")


@pytest.mark.parametrize(
    ("source", "variable", "row"),
    [(HumanEvalSource, "HUMANEVAL_OVERRIDE_PATH", HUMANEVAL), (MbppSource, "MBPP_OVERRIDE_PATH", MBPP_PLUS)],
)
def test_evalplus_own_variable_names_the_file_unless_one_is_given(monkeypatch, file_of, source, variable, row):
    path = file_of(row)
    monkeypatch.setenv(variable, path)
    data = source("revision").read()
    assert data.facts["file"] == path
    assert data.notices[0] == f"data: {variable} is set, reading {path}"
    monkeypatch.setenv(variable, "nowhere.jsonl")
    with pytest.raises(UserError, match=f"{variable}=nowhere.jsonl: no such file"):
        source("revision").read()
    assert len(source("revision", path).read().notices) == 1


def test_english_queries_are_selected_by_how_they_begin(file_of):
    queries = [
        "Write about Beijing. " + "x" * 100 + "北京的老胡同" * 50,
        "请以专业的风格撰写一篇3000字的财报深度分析" + "word " * 9000,
        "Go.",
    ]
    rows = [{"index": number, "query": query, "checklist": []} for number, query in enumerate(queries, start=1)]
    data = WritingBenchSource(file_of(*rows)).read()
    assert data.items == [
        Item("writingbench/1", {"query": queries[0]}, {}),
        Item("writingbench/3", {"query": "Go."}, {}),
    ]
    assert data.facts["queries"] == 3
    assert data.notices == ["writingbench (English): 2 items, the published set has 555"]


def test_a_few_ideographs_do_not_make_a_query_chinese():
    assert is_english("Explain the word 胡同 to somebody who has never been to the old town of Beijing.")
    assert not is_english("\n" * 200 + "请写")


def test_writingbench_without_a_file_says_where_it_is():
    with pytest.raises(UserError, match=r"github\.com/X-PLUG/WritingBench .*task\.data_files=PATH"):
        WritingBenchSource().read()


@pytest.mark.parametrize(
    ("source", "row", "said"),
    [
        (Math500Source, {**MATH, "answer": 2}, "object 1 has answer of type int, need text"),
        (HumanEvalSource, {**HUMANEVAL, "test": None}, "object 1 has test of type NoneType"),
        (HumanEvalSource, {"task_id": "HumanEval/1"}, "line 1 lacks prompt"),
        (MbppSource, {**MBPP, "task_id": "two"}, "object 1 has task_id 'two', need a number"),
        (MbppSource, {**MBPP, "test_list": "assert f()"}, "test_list that is no list of statements"),
        (MbppSource, {**MBPP, "test_list": []}, "test_list that is no list of statements"),
        (MbppSource, {"task_id": 2, "prompt": "?"}, "object 1 has no text, need text"),
        (MbppSource, {**MBPP_PLUS, "assertion": "assert ("}, "assertion or a prompt that is not Python"),
    ],
)
def test_what_is_wrong_with_a_row_is_named(file_of, source, row, said):
    with pytest.raises(UserError, match=said) as error:
        source("revision", file_of(row)).read()
    assert "\n" not in str(error.value)


def test_a_task_number_that_comes_twice_is_refused(file_of):
    with pytest.raises(UserError, match="object 2 has task_id 2 a second time"):
        MbppSource("revision", file_of(MBPP, MBPP)).read()


def test_inputs_without_humanevals_own_tests_are_refused(file_of):
    row = {key: value for key, value in HUMANEVAL.items() if key != "test"} | {"base_input": [[2]]}
    with pytest.raises(UserError, match="inputs without HumanEval's tests"):
        HumanEvalSource("revision", file_of(row)).read()


@pytest.mark.parametrize(
    ("source", "file", "items"),
    [
        (Math500Source("revision", "math500_test.jsonl"), "math500_test.jsonl", 500),
        (HumanEvalSource("revision"), "HumanEval.jsonl.gz", 164),
        (MbppSource("revision"), "mbpp.jsonl", 378),
        (MbppSource("revision", selection="all"), "mbpp.jsonl", 974),
    ],
)
def test_the_real_files_have_their_published_counts(data_dir, source, file, items):
    from dataclasses import replace

    data = replace(source, data_files=str(data_dir / file)).read()
    assert (len(data.items), data.notices) == (items, [])
    assert len({item.prompt_id for item in data.items}) == items
    assert all(item.solution for item in data.items)


def test_the_queries_that_state_a_length_have_127_english_ones(data_dir):
    data = WritingBenchSource(str(data_dir / "writingbench_length_subset.jsonl")).read()
    assert (data.facts["queries"], len(data.items)) == (222, 127)


@pytest.mark.parametrize("gold", ["", "#### ", "#### inf", "#### 1e999999", "#### nan", "twelve or so"])
@pytest.mark.parametrize("task", ["gsm8k", "gsm8k_setdlm"])
def test_a_right_answer_that_cannot_be_read_is_refused_before_anything_runs(tmp_path, capsys, task, gold):
    rows = [{"question": "How many?", "answer": "#### 3"}, {"question": "How many now?", "answer": gold or " "}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = f"task.data_files={tmp_path / 'data.jsonl'}"
    for command in (["run", f"task={task}", data, f"run_dir={tmp_path / 'run'}"], ["check-task", task, data]):
        assert main(command) == 2
        assert "the right answer of gsm8k/1 cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
