"""A verb's own keys, one class for each kind of value: how a text is read as one, and what is said where it is none."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from harness.errors import UserError, unknown


@dataclass(frozen=True)
class Key(ABC):
    """A key of a verb's own. Subclasses are the kinds of its value.

    Attributes:
      default: its value where it is not given, read already.
      example: a text that is of this kind, for messages.
    """

    name: str
    default: Any = None
    example: str = field(default="", kw_only=True)

    is_list: ClassVar[bool] = False

    @abstractmethod
    def read(self, text: str) -> Any:
        """The value that `text` says.

        Raises:
          UserError: `text` is of another kind.
        """

    def refused(self, text: str, need: str) -> UserError:
        """The error for a text that is not of this kind."""
        return UserError(f"{self.name}={text}: need {need}, as in {self.name}={self.example}.")


@dataclass(frozen=True)
class PathKey(Key):
    """A path. One with a comma in its name has to exist, as commas stand between the values of other keys."""

    example: str = field(default="some/folder", kw_only=True)

    def read(self, text: str) -> Path:
        if not text.strip():
            raise self.refused(text, "a path")
        if "," in Path(text).name and not os.path.exists(text):
            raise UserError(f"{self.name}={text}: name one path.")
        return Path(text)


@dataclass(frozen=True)
class Integer(Key):
    """An integer of at least `least`."""

    least: int = 0

    def read(self, text: str) -> int:
        value = _integer(text)
        if value is None or value < self.least:
            raise self.refused(text, f"an integer of at least {self.least}")
        return value


@dataclass(frozen=True)
class Integers(Key):
    """Integers of at least `least` with commas between them; read as a list in ascending order, each one once.

    Attributes:
      what: they are, in the plural.
    """

    least: int = 0
    what: str = "integers"

    is_list: ClassVar[bool] = True

    def read(self, text: str) -> Sequence[int]:
        values = [_integer(part.strip()) for part in text.strip("[]").split(",")]
        found = [value for value in values if value is not None and value >= self.least]
        if len(found) < len(values):
            raise self.refused(text, f"{self.what} of at least {self.least}")
        return sorted({*found})


@dataclass(frozen=True)
class Number(Key):
    """A number of at least 0.

    Attributes:
      unit: in the plural.
    """

    unit: str = "units"

    def read(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise self.refused(text, f"{self.unit} of at least 0")
        return value


@dataclass(frozen=True)
class Names(Key):
    """Names with commas between them.

    Attributes:
      known: all that there are; empty where only the verb can tell.
    """

    default: Sequence[str] = ()
    known: Collection[str] = ()

    is_list: ClassVar[bool] = True

    def read(self, text: str) -> Sequence[str]:
        names = [part.strip() for part in text.strip("[]").split(",") if part.strip()]
        if not names:
            raise self.refused(text, "names")
        for name in names:
            if self.known and name not in self.known:
                raise unknown(self.name, name, self.known)
        return names


@dataclass(frozen=True)
class Choice(Key):
    """One name of those in `known`."""

    known: Collection[str] = ()

    def read(self, text: str) -> str:
        if text not in self.known:
            raise unknown(self.name, text, self.known)
        return text


def _integer(text: str) -> int | None:
    # int() reads more than this, such as 1_0 and digits of other scripts, and refuses thousands of digits.
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
