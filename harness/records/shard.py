"""Shards: parts of a run's prompts that are decoded apart, and what a plan says of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UserError


@dataclass(frozen=True)
class Shard:
    """Part `index` (from 1) of `count` of a run's prompts: every `count`-th of them, so that parts are alike."""

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def part(self, of_all: Sequence[Any]) -> Sequence[Any]:
        """What of a selection belongs to this shard."""
        return of_all[self.index - 1 :: self.count]


WHOLE = Shard(1, 1)


def own_prompts(facts: Mapping[str, Any]) -> Sequence[str]:
    """Ids of the prompts that a run has, from what its manifest says of its plan; those of its shard if it is one.

    Raises:
      UserError: the shard is none.
    """
    return read_shard(facts["shard"]).part(facts["prompts"])


def shard_folder(run_dir: Path, shard: str | None) -> Path:
    """Where a run is written: shards of one run share a folder, and have one each inside it."""
    return run_dir / f"shard-{str(shard).replace('/', '-of-')}" if shard else run_dir


def read_shard(text: str | None) -> Shard:
    """The shard that "I/N" names; the whole for None.

    Raises:
      UserError: it names none.
    """
    if text is None:
        return WHOLE
    numbers = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", str(text))
    if not numbers or int(numbers[1]) > int(numbers[2]):
        raise UserError(f"shard={text}: need I/N with I from 1 to N, as in shard=3/8.")
    return Shard(int(numbers[1]), int(numbers[2]))
