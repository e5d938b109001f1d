"""What the three toy tasks share: examples drawn from a seed, and a train/test split that cannot leak.

A toy task is a small language with a generator. An example's *content* (the numbers and operations, never the
wording) is hashed, and the hash alone decides on which side of the split the example falls, so no test content can
occur in training data, however many examples are drawn. Nothing here knows models or grading.
"""

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from harness.tasks.task import DataSet, Item

Split = Literal["train", "test"]

TEST_SHARE = 1 / 8


@dataclass(frozen=True)
class ToyExample:
    """One example of a toy language.

    Attributes:
      content: what the example is about without its wording; equal contents are the same problem.
      prompt: what the user says.
      response: the answer that the models are trained on.
      reference: what a grader needs, as in the data sets of the real tasks.
    """

    content: str
    prompt: str
    response: str
    reference: Mapping[str, Any]


def split_of(content: str) -> Split:
    """The side of the split that `content` belongs to; one in eight contents is for testing."""
    digest = hashlib.sha256(content.encode()).digest()
    return "test" if digest[0] < 256 * TEST_SHARE else "train"


def examples(generate: Callable[[random.Random], ToyExample], split: Split, seed: int) -> Iterator[ToyExample]:
    """An endless stream of examples of one side of the split, the same for the same seed."""
    rng = random.Random(f"{split}/{seed}")
    while True:
        example = generate(rng)
        if split_of(example.content) == split:
            yield example


@dataclass(frozen=True)
class ToySource:
    """The first `count` test items of a toy language, the same everywhere and forever.

    Attributes:
      language: module of this package with a `generate` function.
      count: items to make.
    """

    language: str
    count: int

    def read(self) -> DataSet:
        """Items whose contents differ from one another and from everything in training."""
        generate = import_module(f"harness.tasks.{self.language}").generate
        items, contents = [], set()
        for example in examples(generate, "test", seed=0):
            if len(items) == self.count:
                break
            if example.content in contents:
                continue
            contents.add(example.content)
            items.append(Item(f"{self.language}/{len(items)}", {"prompt": example.prompt}, example.reference))
        return DataSet(items, {"generated": self.language, "items": len(items)})
