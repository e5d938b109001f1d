"""What a model is asked while a drafter is trained: prompts that it wrote itself, and a user's own.

Nothing is read from any task. The model is asked for questions of many kinds about many topics, and given the first
words of its answer, as small models lose the thread otherwise; what it samples, cut to the first paragraph, is a
prompt, with an instruction of ours around it.
"""

import csv
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UserError

LEAST, MOST = 24, 700  # characters of a prompt that a model wrote
FIELD = "prompt"


@dataclass(frozen=True)
class Kind:
    """A kind of question.

    Attributes:
      request: what the model is asked for it, with {topic}.
      openings: how its answer begins.
      endings: what may stand around the question that it writes.
      weight: how often it is asked for.
    """

    request: str
    openings: Sequence[str]
    endings: Sequence[str]
    weight: int


PLAIN = "{question}"
KINDS = (
    Kind(
        "Write a short math word problem with numbers about {topic}, which ends with a question.",
        ("{name} has", "{name} wants to", "There are", "A group of", "In a", "{name} and {name2}", "Every day, {name}"),
        (
            PLAIN,
            "{question}\n\nThink step by step, and give the number at the end.",
            "Solve this problem step by step. Write the final answer in \\boxed{{}}.\n\n{question}",
        ),
        6,
    ),
    Kind(
        "Write one exercise of {subject}.",
        ("Find the", "What is the", "Let", "How many", "Solve", "Compute"),
        (PLAIN, "Solve this exercise. Write the final answer in \\boxed{{}}.\n\n{question}"),
        3,
    ),
    Kind(
        "Describe in one sentence what a small Python function that has to do with {topic} should do.",
        ("Write a Python function that", "Write a function to", "Write a Python function which takes a list of"),
        (PLAIN, "{question}\n\nAnswer with one Python code block.", "{question} Explain how it works."),
        4,
    ),
    Kind(
        "Write one request to an assistant to write {text} about {topic}.",
        ("Please write {text}", "Write {text}", "I need {text}", "Help me write {text}"),
        (PLAIN,),
        4,
    ),
    Kind(
        "Ask one interesting question about {topic}.",
        ("What", "How", "Why", "Explain", "What is the difference between"),
        (PLAIN, "{question} Be brief."),
        2,
    ),
    Kind("Ask for advice about {topic}.", ("How can I", "What should I", "I would like to"), (PLAIN,), 1),
)
NAMES = ("Ada", "Ben", "Carla", "David", "Emma", "Farid", "Grace", "Hugo", "Ines", "Jack", "Kim", "Liam", "Mia", "Noah")
SUBJECTS = ("algebra", "number theory", "geometry", "counting and probability", "linear equations", "fractions")
TEXTS = (
    "an e-mail",
    "a short story",
    "an advertisement",
    "a speech",
    "a report",
    "a poem",
    "a letter",
    "a summary",
    "a plan",
    "a product description",
)
TOPICS = (
    "apples, bakeries, bicycles, birds, boats, books, bridges, buses, cameras, candles, cars, cats, chess, cinemas, "
    "clocks, clothes, coffee, coins, computers, concerts, cooking, dice, dogs, drawings, elections, electricity, "
    "factories, farms, festivals, films, fishing, flowers, football, forests, gardens, gifts, hiking, holidays, "
    "hospitals, hotels, houses, insects, kitchens, languages, libraries, maps, markets, medicine, money, mountains, "
    "museums, music, names, newspapers, oceans, offices, painting, parks, photographs, pizza, planets, plants, post, "
    "prices, rain, recipes, restaurants, rivers, robots, running, salaries, schools, shops, sleep, snow, software, "
    "space, sports, stamps, strings, students, swimming, tea, teachers, telephones, temperature, theatres, time, "
    "toys, trains, travel, trees, vegetables, water, weather, weddings, words, work, zoos"
).split(", ")


@dataclass(frozen=True)
class Request:
    """What a model is asked for, how its answer begins, and how the question that it writes becomes a prompt."""

    text: str
    opening: str
    ending: str

    def prompt(self, written: str) -> str | None:
        """The prompt from what the model wrote behind the opening; None where that is no question."""
        question = f"{self.opening}{written}".split("\n\n")[0].strip('"* \n')
        if not LEAST <= len(question) <= MOST or question[-1] not in ".?!:)":
            return None  # cut in the middle
        return self.ending.format(question=question)


def requests(count: int, seed: str) -> Sequence[Request]:
    """`count` requests, always the same ones for a seed."""
    rng = random.Random(seed)
    made = []
    for kind in rng.choices(KINDS, [kind.weight for kind in KINDS], k=count):
        name, name2 = rng.sample(NAMES, 2)
        said = {"topic": rng.choice(TOPICS), "subject": rng.choice(SUBJECTS), "text": rng.choice(TEXTS)}
        opening = rng.choice(kind.openings).format(name=name, name2=name2, **said)
        made.append(Request(kind.request.format(**said), opening, rng.choice(kind.endings)))
    return made


def read_prompts(file: Path) -> Sequence[str]:
    """The prompts in a user's file: JSON lines or CSV with a field `prompt`, or else one prompt a line.

    Raises:
      UserError: it cannot be read, holds no prompt, or lacks the field.
    """
    what = f"data={file}"
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".jsonl":
            prompts = [json.loads(line)[FIELD] for line in text.splitlines() if line.strip()]
        elif file.suffix == ".csv":
            prompts = [row[FIELD] for row in csv.DictReader(text.splitlines(keepends=True))]
        else:
            prompts = text.splitlines()
    except OSError as error:
        raise UserError(f"{what}: cannot be read ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{what}: need a field {FIELD} in every entry ({error!r}).") from None
    prompts = [prompt.strip() for prompt in prompts if isinstance(prompt, str) and prompt.strip()]
    if not prompts:
        raise UserError(f"{what}: holds no prompt. Give one a line, or a field {FIELD} in JSON lines or CSV.")
    return prompts
