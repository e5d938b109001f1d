"""toy_math: word problems of three to six steps on the numbers 0 to 99, answered with every total written out.

The language is made so that a drafter has work to do. Operands can be copied from the question, but a running total
depends on the one before it: proposals are right up to about the first total that is not yet known, as with the
paper's models, which accept about a third of a block.
"""

import random
from collections.abc import Sequence

from harness.tasks.toy import ToyExample

PEOPLE = [
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gina",
    "Hugo",
    "Iris",
    "Jack",
    "Kira",
    "Liam",
    "Mona",
    "Nils",
    "Olga",
    "Paul",
]
THINGS = [
    "apples",
    "books",
    "coins",
    "cards",
    "shells",
    "stamps",
    "pens",
    "marbles",
    "eggs",
    "cups",
    "keys",
    "boxes",
    "tickets",
    "stones",
    "ribbons",
    "candles",
]
START = (
    "{name} has {n} {things}.",
    "{name} starts with {n} {things}.",
    "At first {name} owns {n} {things}.",
    "There are {n} {things} on the table of {name}.",
    "In the morning {name} counts {n} {things}.",
    "{name} keeps {n} {things} in a bag.",
)
GAIN = (
    "{name} buys {n} more.",
    "{friend} gives {name} {n} more.",
    "Then {name} finds {n} {things}.",
    "After that {n} more arrive.",
    "{name} wins another {n}.",
    "Later {n} {things} are added.",
    "{friend} brings {n}.",
    "Next, {name} picks up {n}.",
)
LOSS = (
    "{name} sells {n}.",
    "{name} gives {n} to {friend}.",
    "Then {name} loses {n} {things}.",
    "After that {n} of them break.",
    "{friend} takes {n} away.",
    "Later {n} {things} go missing.",
    "{name} throws away {n}.",
    "Next, {name} lends {n} to {friend}.",
)
QUESTION = (
    "How many {things} does {name} have now?",
    "How many {things} are left?",
    "What is the number of {things} in the end?",
    "How many {things} is that in total?",
)
MIN_OPERAND, MAX_OPERAND = 2, 30
MAX_TOTAL = 99


def generate(rng: random.Random) -> ToyExample:
    """One word problem with its worked answer."""
    start, changes = _numbers(rng, steps=rng.randint(3, 6))
    return ToyExample(
        content=f"{start}" + "".join(f"{change:+d}" for change in changes),
        prompt=_question(rng, start, changes),
        response=_worked_answer(start, changes),
        reference={"gold": str(start + sum(changes))},
    )


def _numbers(rng: random.Random, steps: int) -> tuple[int, Sequence[int]]:
    total = start = rng.randint(MIN_OPERAND, MAX_OPERAND)
    changes = []
    for _ in range(steps):
        can_lose = total >= MIN_OPERAND
        can_gain = total + MIN_OPERAND <= MAX_TOTAL
        if can_lose and (not can_gain or rng.random() < 0.5):
            change = -rng.randint(MIN_OPERAND, min(MAX_OPERAND, total))
        else:
            change = rng.randint(MIN_OPERAND, min(MAX_OPERAND, MAX_TOTAL - total))
        changes.append(change)
        total += change
    return start, changes


def _question(rng: random.Random, start: int, changes: Sequence[int]) -> str:
    name, friend = rng.sample(PEOPLE, 2)
    words = {"name": name, "friend": friend, "things": rng.choice(THINGS)}
    sentences = [rng.choice(START).format(n=start, **words)]
    for change in changes:
        sentences.append(rng.choice(GAIN if change > 0 else LOSS).format(n=abs(change), **words))
    sentences.append(rng.choice(QUESTION).format(**words))
    return " ".join(sentences)


def _worked_answer(start: int, changes: Sequence[int]) -> str:
    total, steps = start, []
    for change in changes:
        steps.append(f"{total}{change:+d}={total + change}")
        total += change
    return ", ".join(steps) + f", \\boxed{{{total}}}"
