"""toy_code: small Python functions described in words, answered with code whose comments trace one example.

The code itself can be copied together from the description; the traced values must be computed line by line, which
is what a drafter gets wrong.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.tasks.toy import ToyExample

VERBS = [
    "mix",
    "turn",
    "fold",
    "shift",
    "bend",
    "pack",
    "step",
    "move",
    "pick",
    "sort",
    "tune",
    "cast",
]
NOUNS = [
    "fox",
    "oak",
    "bell",
    "lamp",
    "star",
    "wave",
    "leaf",
    "rock",
    "bird",
    "coin",
    "ring",
    "door",
]
ARGUMENTS = "nkxm"
ARGUMENT_RANGE = (2, 20)
MAX_VALUE = 99


@dataclass(frozen=True)
class Operation:
    """One step of a function: its words, its code over {x}, and what it does to a value."""

    words: str
    code: str
    apply: Callable[[int], int]


def _draw_operation(rng: random.Random) -> Operation:
    kind = rng.choice(("add", "subtract", "multiply", "remainder", "larger", "smaller"))
    match kind:
        case "add":
            c = rng.randint(2, 30)
            return Operation(f"add {c}", f"{{x}} + {c}", lambda x: x + c)
        case "subtract":
            c = rng.randint(2, 30)
            return Operation(f"subtract {c}", f"{{x}} - {c}", lambda x: x - c)
        case "multiply":
            c = rng.randint(2, 4)
            return Operation(f"multiply by {c}", f"{{x}} * {c}", lambda x: x * c)
        case "remainder":
            c = rng.randint(3, 9)
            return Operation(f"take the remainder by {c}", f"{{x}} % {c}", lambda x: x % c)
        case "larger":
            c = rng.randint(10, 40)
            return Operation(f"take the larger of it and {c}", f"max({{x}}, {c})", lambda x: max(x, c))
        case _:
            c = rng.randint(5, 40)
            return Operation(f"take the smaller of it and {c}", f"min({{x}}, {c})", lambda x: min(x, c))


def generate(rng: random.Random) -> ToyExample:
    """One function to write, with the code, a traced example, and three tests."""
    argument = rng.choice(ARGUMENTS)
    value = rng.randint(*ARGUMENT_RANGE)
    operations = _draw_operations(rng, value, steps=rng.randint(2, 4))
    name = f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}"
    steps = ", then ".join(operation.words for operation in operations)
    return ToyExample(
        content="; ".join(operation.code.format(x="x") for operation in operations),
        prompt=(f"Write a Python function {name}({argument}): {steps}. Show the values for {argument} = {value}."),
        response=_code(name, argument, value, operations),
        reference={
            "prompt": "",
            "entry_point": name,
            "tests": [
                f"assert {name}({given}) == {_result(given, operations)}"
                for given in rng.sample(range(ARGUMENT_RANGE[0], 60), 3)
            ],
        },
    )


def _draw_operations(rng: random.Random, value: int, steps: int) -> Sequence[Operation]:
    """Operations whose traced values stay within 0 and MAX_VALUE."""
    operations = []
    while len(operations) < steps:
        operation = _draw_operation(rng)
        if 0 <= operation.apply(value) <= MAX_VALUE:
            operations.append(operation)
            value = operation.apply(value)
    return operations


def _result(value: int, operations: Sequence[Operation]) -> int:
    for operation in operations:
        value = operation.apply(value)
    return value


def _code(name: str, argument: str, value: int, operations: Sequence[Operation]) -> str:
    lines = [f"def {name}({argument}):"]
    for operation in operations[:-1]:
        value = operation.apply(value)
        lines.append(f"    {argument} = {operation.code.format(x=argument)}  # {value}")
    value = operations[-1].apply(value)
    lines.append(f"    return {operations[-1].code.format(x=argument)}  # {value}")
    return "\n".join(["```python", *lines, "```"])
