import ast
import gzip
import json

import pytest

from graders.programs.extraction import extract
from graders.programs.pruning import bound_names, prune
from graders.programs.reference import CodeReference
from tests.builders.case_files import cases

TASK = CodeReference.read({"entry_point": "f", "tests": ["assert f(1) == 2"]})


def lines(program: str | None) -> list[str] | None:
    """A program's lines that are not blank."""
    return None if program is None else [line for line in program.split("\n") if line.strip()]


@pytest.mark.parametrize("case", cases("extraction"))
def test_program_of_a_response(case):
    task = CodeReference.read({"prompt": "\n".join(case["prompt"]), "entry_point": "f", "tests": ["assert f(1) == 2"]})
    expected = case["expected"] and [line for line in case["expected"] if line.strip()]

    assert lines(extract("\n".join(case["response"]), task)) == expected


FUNCTION = "def f(x):\n    return "


@pytest.mark.parametrize(
    "response",
    [
        FUNCTION + "1" + "+1" * 200_000,
        FUNCTION + "(" * 200_000,
        FUNCTION + "-" * 200_000 + "1",
        FUNCTION + "a" + ".b" * 200_000,
        FUNCTION + "1" + "<1" * 15_000,
        FUNCTION + "9**" * 10_000 + "9",
        FUNCTION + "'" * 200_000,
        "def g(x): return 1\n" * 20_000,
        "x = 1\n" * 50_000,
        "@a\n" * 50_000,
        "def f(x:\n" * 50_000,
        "```\n" * 200_000,
        "```\n" * 2_500_000,
        FUNCTION + "a;" * 20_000,
        ("```python\n" + "def f(x): return x + 1\n" * 400 + "```\n") * 50,
        ("```python\n" + "@a\n" * 1_000 + "```\n") * 1_000,
        "```python\nx=\n```\n" * 20_000,
        "'''\n" * 50_000,
        "\n" * 10_000_000,
        "word " * 2_000_000,
        "\ud800" * 1_000_000,
        "\x00" * 1_000_000,
    ],
    ids=lambda response: ascii(response[len(FUNCTION) if response.startswith(FUNCTION) else 0 :][:12]),
)
def test_no_response_ends_the_extraction(response):
    """Each is worse than linear for a parser or a regex somewhere; bounded they take a second or two at most."""
    prompt = 'def f(x):\n    """Adds one."""\n'
    task = CodeReference.read({"prompt": prompt, "entry_point": "f", "tests": ["assert f(1) == 2"]})

    extract(response, task)


def test_keeps_every_definition_that_the_sanitizer_of_evalplus_keeps(data_dir):
    sanitize = pytest.importorskip("evalplus.sanitize").sanitize
    with gzip.open(data_dir / "HumanEval.jsonl.gz", "rt") as file:
        problems = [json.loads(line) for line in file][::8]
    for problem in problems:
        solution, entry_point = problem["prompt"] + problem["canonical_solution"], problem["entry_point"]
        task = CodeReference.read({"entry_point": entry_point, "tests": [f"check({entry_point})"]})

        kept = bound_names(extract(f"```python\n{solution}\n```", task))

        assert kept >= {node.name for node in ast.parse(sanitize(solution, entry_point)).body if hasattr(node, "name")}


def test_pruning_keeps_what_the_tests_use_besides_the_entry_point():
    program = "LIMIT = 3\ndef g(x):\n    return x\ndef f(x):\n    return x\ndef h(x):\n    return x"

    assert prune(program, {"f", "LIMIT", "g"}) == "LIMIT = 3\ndef g(x):\n    return x\ndef f(x):\n    return x"


def test_pruning_leaves_what_does_not_parse():
    assert prune("def f(:", {"f"}) == "def f(:"


@pytest.mark.parametrize(
    ("tests", "name"),
    [
        (["assert f(1) == 2"], "f"),
        (["assert set(f(1)) == set([1])"], "f"),
        (["import math\nassert math.isclose(area(1), 2)"], "area"),
        (["assert sum(10, 15) == 6"], "sum"),
        (["assert abs(sum(1, 2) - 3) < 1"], "sum"),
        (["def check(candidate):\n    assert candidate(1) == 2", "check(g)"], "g"),
        (["root = Node(1)\nassert depth(root) == 1", "assert depth(root) == 1"], "depth"),
    ],
)
def test_entry_point_is_read_off_the_tests(tests, name):
    assert CodeReference.read({"tests": tests}).entry_point == name


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({}, "no tests"),
        ({"tests": []}, "no tests"),
        ({"tests": ["", "# nothing"]}, "no tests"),
        ({"tests": ["assert f(1) =="]}, "test 1 is not Python"),
        ({"tests": ["assert True"]}, "no entry_point"),
        ({"tests": ["assert f(1) == 2"], "setup": "def"}, "setup is not Python"),
    ],
)
def test_a_reference_that_tests_nothing_is_refused(reference, message):
    with pytest.raises(ValueError, match=message):
        CodeReference.read(reference)
