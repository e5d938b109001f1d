"""Every data set's own reference answers pass, and wrong ones fail."""

import ast
import gzip
import itertools
import json
import re

import pytest

from graders.code import Program
from graders.gsm8k import Gsm8k, SetdlmGsm8k
from graders.math500 import Math500
from graders.parallel import grade_all

MOST_WRONG_PASSES = 0.03
FLIPPED = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# Programs that pass though perturbed, by number, and why their tests do not notice.
UNNOTICED = {
    "humaneval": {
        50: "the change hits a function of the prompt, and the tests take that from the prompt",
        127: "no test has an intersection of composite length",
    },
    "mbpp": {
        3: "no test has a prime above 3",
        101: "the reference compares where it means to swap, so what it compares before does not matter",
        227: "no test has the smallest number first",
    },
}


def jsonl(path) -> list[dict]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def gsm8k(data_dir):
    return [row["answer"] for row in jsonl(data_dir / "gsm8k_test.jsonl")]


@pytest.fixture(scope="module")
def math500(data_dir):
    return jsonl(data_dir / "math500_test.jsonl")


@pytest.fixture(scope="module")
def humaneval(data_dir):
    """Pairs of reference solution and reference."""
    return [
        (
            f"```python\n{row['prompt']}{row['canonical_solution']}```",
            {
                "prompt": row["prompt"],
                "entry_point": row["entry_point"],
                "tests": [row["test"], f"check({row['entry_point']})"],
            },
        )
        for row in jsonl(data_dir / "HumanEval.jsonl.gz")
    ]


@pytest.fixture(scope="module")
def mbpp(data_dir):
    """Task ids with pairs of reference solution and reference, in the original layout."""
    return {
        row["task_id"]: (f"```python\n{row['code']}\n```", {"setup": row["test_setup_code"], "tests": row["test_list"]})
        for row in jsonl(data_dir / "mbpp.jsonl")
    }


@pytest.fixture(scope="module")
def mbpp_378(data_dir, mbpp):
    ids = json.loads((data_dir / "mbpp_evalplus_ids.json").read_text())["task_ids"]
    return {task_id: mbpp[task_id] for task_id in ids}


def passing(grader, items) -> list[int]:
    """Places of the items that pass."""
    return [place for place, verdict in enumerate(grade_all(grader, items, workers=2)) if verdict.correct]


def failing(grader, items) -> list[tuple[int, str]]:
    """Places of the items that do not pass, and why."""
    verdicts = enumerate(grade_all(grader, items, workers=2))
    return [(place, verdict.reason) for place, verdict in verdicts if verdict.correct is not True]


def with_next_answer(items: list) -> list:
    """Each reference with the answer of the item behind it."""
    return [(answer, reference) for (_, reference), (answer, _) in zip(items, items[1:] + items[:1], strict=True)]


def perturbed(solution: str) -> str:
    """A program with its first comparison flipped; without one, its first `return` returns something else."""
    tree = ast.parse(solution.removeprefix("```python\n").removesuffix("```"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            node.ops[0] = FLIPPED[type(node.ops[0])]()
            return ast.unparse(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Return):
            node.value = ast.Tuple([ast.Constant("perturbed"), node.value or ast.Constant(None)], ast.Load())
            break
    return ast.unparse(tree)


def test_gsm8k_references_pass(gsm8k):
    boxed = [rf"\boxed{{{answer.rpartition('#### ')[2]}}}" for answer in gsm8k]
    items = [(answer, {"gold": answer}) for answer in gsm8k]

    assert len(gsm8k) == 1319
    assert failing(Gsm8k(), items) == []
    assert failing(Gsm8k(), [(box, reference) for box, (_, reference) in zip(boxed, items, strict=True)]) == []
    assert failing(SetdlmGsm8k(), items) == []


def test_gsm8k_wrong_answers_fail(gsm8k):
    """What passes of the next answers are neighbours with the same number."""
    items = [(answer, {"gold": answer}) for answer in gsm8k]
    numbers = [answer.rpartition("#### ")[2].replace(",", "") for answer in gsm8k]
    same = [place for place, (a, b) in enumerate(zip(numbers, numbers[1:] + numbers[:1], strict=True)) if a == b]
    off_by_one = [(f"#### {int(number) + 1}", {"gold": number}) for number in numbers]

    assert passing(Gsm8k(), with_next_answer(items)) == same
    assert len(same) <= MOST_WRONG_PASSES * len(gsm8k)
    assert passing(Gsm8k(), off_by_one) == []


def test_math500_references_pass(math500):
    assert len(math500) == 500
    assert failing(Math500(), [(row["solution"], {"gold": row["answer"]}) for row in math500]) == []
    assert failing(Math500(), [(rf"\boxed{{{row['answer']}}}", {"gold": row["answer"]}) for row in math500]) == []


def test_math500_wrong_answers_fail(math500):
    """What passes: equal neighbours (7 and 7, 3 and 3, x=5 and 5), and units whose exponent was perturbed."""
    items = [(row["solution"], {"gold": row["answer"]}) for row in math500]
    last_number = re.compile(r"\d+(?!.*\d)", re.DOTALL)
    plus_one = [
        last_number.sub(lambda number: str(int(number[0]) + 1), row["answer"])
        if re.search(r"\d", row["answer"])
        else row["answer"] + "+1"
        for row in math500
    ]
    changed = [(rf"\boxed{{{answer}}}", {"gold": row["answer"]}) for answer, row in zip(plus_one, math500, strict=True)]

    assert len(passing(Math500(), with_next_answer(items))) == 3
    assert {math500[place]["answer"] for place in passing(Math500(), changed)} == {
        r"864 \mbox{ inches}^2",
        r"15\mbox{ cm}^2",
    }


def test_a_sample_of_reference_programs_passes(humaneval, mbpp_378):
    assert failing(Program(), [*humaneval[::12], *[*mbpp_378.values()][::24]]) == []


@pytest.mark.slow
def test_humaneval_references_pass(humaneval):
    assert len(humaneval) == 164
    assert failing(Program(), humaneval) == []


@pytest.mark.slow
def test_mbpp_references_pass(mbpp, mbpp_378):
    assert (len(mbpp), len(mbpp_378)) == (974, 378)
    assert failing(Program(), mbpp.values()) == []


@pytest.mark.slow
def test_reference_programs_of_the_next_item_fail(humaneval, mbpp_378):
    for items in (humaneval, [*mbpp_378.values()]):
        assert passing(Program(cpu_s=5), with_next_answer(items)) == []


@pytest.mark.slow
def test_perturbed_reference_programs_fail(humaneval, mbpp_378):
    for name, items in (("humaneval", dict(enumerate(humaneval))), ("mbpp", mbpp_378)):
        wrong = [(perturbed(solution), reference) for solution, reference in items.values()]

        unnoticed = [[*items][place] for place in passing(Program(cpu_s=3, wall_s=10), wrong)]

        assert unnoticed == [*UNNOTICED[name]]
        assert len(unnoticed) <= MOST_WRONG_PASSES * len(items)


def test_a_body_that_continues_the_prompt_passes(humaneval):
    items = [
        (solution.removeprefix("```python\n" + reference["prompt"]).removesuffix("```"), reference)
        for solution, reference in itertools.islice(humaneval, 3, None, 25)
    ]

    assert failing(Program(), items) == []
