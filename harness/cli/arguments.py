"""The one parser of the command line: a verb says in one value what it takes, and gets what it was given, read.

What a verb takes are words (paths, or names), keys of its own, flags, and overrides: the KEY=VALUE of a run, which go
on to Hydra (`harness.config.compose`) as they are. They may stand in any order. An argument that exists on disk is a
path, even with a "=" in it. Whatever cannot be understood is refused in one line; whether a run has a key, and
whether its value is of the right kind, is found where configs are composed.
"""

import difflib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from harness.cli.keys import Key
from harness.errors import UserError, unknown

# Keys of a run that hold a path; nothing behind the "=" is a variable of the shell that was not set.
RUNS_PATHS = ("run_dir", "task.data_files", "model.path", "adapter", "drafter")
EVERY_KEY = ("*",)
NEAR_FLAG = 0.75  # of difflib: --dryrun is near --dry-run, --mode is not near -m
NEAR_KEY = 0.6


@dataclass(frozen=True)
class Words:
    """The arguments without a key that a verb takes.

    Attributes:
      least, most: how many; None for any number.
      ask: what to say where there are too few or too many, e.g. "name the folder of one run".
      are_paths: whether an argument that exists on disk is one of them, even with a "=" in it.
      what: one of them is, where `known` says all that there are.
    """

    least: int = 0
    most: int | None = None
    ask: str = ""
    are_paths: bool = True
    what: str = ""
    known: Collection[str] = ()


@dataclass(frozen=True)
class Overrides:
    """Which keys of a run a verb takes.

    Attributes:
      only: patterns of those that it takes.
      refused: patterns of those that make no sense with it, and what to say then.
    """

    only: Collection[str] = EVERY_KEY
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Given:
    """The arguments of a verb, read; `given["out"]` is the value of its own key `out`, or its default.

    Attributes:
      words: in their order.
      values: of all of the verb's own keys.
      flags: as they were written.
      overrides: as they were written, in their order.
    """

    words: Sequence[str]
    values: Mapping[str, Any]
    flags: Sequence[str]
    overrides: Sequence[str]

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def paths(self) -> Sequence[Path]:
        """The words, where they are paths."""
        return [Path(word) for word in self.words]

    def sets(self, key: str) -> bool:
        """Whether `key` is among the overrides."""
        return any(_split(one)[0] == key for one in self.overrides)


@dataclass(frozen=True)
class Takes:
    """What a verb takes.

    Attributes:
      keys: of its own.
      flags: all spellings, e.g. "--dry-run".
      overrides: None where it takes no keys of a run.
    """

    verb: str
    words: Words = Words(most=0)
    keys: Sequence[Key] = ()
    flags: Sequence[str] = ()
    overrides: Overrides | None = None

    @property
    def own(self) -> Mapping[str, Key]:
        """Its own keys by name."""
        return {key.name: key for key in self.keys}

    def read(self, arguments: Sequence[str]) -> Given:
        """Sorts and reads `arguments`.

        Raises:
          UserError: some are not taken, given twice, or of the wrong kind.
        """
        words, flags, pairs = [], [], []
        for place, argument in enumerate(arguments):
            if argument in self.flags:
                flags.append(argument)
            elif argument.startswith("-"):
                raise self._no_flag(argument, arguments[place + 1 :])
            elif self._is_word(argument):
                words.append(argument)
            else:
                pairs.append(argument)
        own = self.own
        self._check_once(pairs)
        values = {key: one.default for key, one in own.items()}
        overrides = []
        for argument in pairs:
            key, text = _split(argument)
            if key in own:
                values[key] = own[key].read(text)
            else:
                self._check_override(argument)
                overrides.append(argument)
        self._check_words(words)
        return Given(words, values, flags, overrides)

    def asks(self, words: Sequence[str]) -> UserError:
        """The error for words that are not what the verb needs."""
        what = f"{self.words.ask}." if self.words.ask else self._nothing_but_keys()
        return UserError(f"{' '.join([self.verb, *words])}: {what}")

    def _is_word(self, argument: str) -> bool:
        if "=" not in argument:
            return not (self.overrides and argument.startswith("~"))
        return self.words.are_paths and self.words.most != 0 and os.path.exists(argument)

    def _check_once(self, pairs: Sequence[str]) -> None:
        before: dict[str, str] = {}
        for argument in pairs:
            key, text = _split(argument)
            # Hydra adds or removes with these; the same key can stand there again.
            if key.startswith(("+", "~")):
                continue
            if key in before:
                other = before[key]
                is_list = key in self.own and self.own[key].is_list
                rather = (
                    f"Give one list, as in {key}={_split(other)[1].strip('[]')},{text.strip('[]')}."
                    if is_list
                    else "Name one."
                )
                raise UserError(f"{other} {argument}: given twice. {rather}")
            before[key] = argument

    def _check_override(self, argument: str) -> None:
        key, text = _split(argument)
        bare = key.lstrip("+~")
        if not self.keys and not self.overrides:
            raise self.asks([argument])
        if not self.overrides or not _matches(bare, self.overrides.only):
            taken = {one.rstrip(".*") for one in self.overrides.only} if self.overrides else ()
            raise unknown("key", key, [*self.own, *taken])
        for pattern, why in self.overrides.refused.items():
            if _matches(bare, [pattern]):
                raise UserError(f"{argument}: {why}")
        if bare in RUNS_PATHS and not text.strip() and not key.startswith("~"):
            raise UserError(f"{argument}: need a path, as in {key}=some/folder. Leave it out where none is meant.")

    def _check_words(self, words: Sequence[str]) -> None:
        takes = self.words
        if not all(word.strip() for word in words):
            raise UserError(f"{self.verb}: an argument is empty. Leave it out, or say what is meant.")
        if len(words) < takes.least or (takes.most is not None and len(words) > takes.most):
            raise self.asks(words)
        for word in words:
            if takes.known and word not in takes.known:
                raise unknown(takes.what, word, takes.known)

    def _no_flag(self, argument: str, following: Sequence[str]) -> UserError:
        """The error for an option as other programs have them: --limit 5, --limit=5, -limit 5."""
        option, text = _split(argument)
        name = option.lstrip("-").replace("-", "_")
        if name not in self.own:
            near_flag = difflib.get_close_matches(option, self.flags, n=1, cutoff=NEAR_FLAG)
            if near_flag:
                known = ", ".join(self.flags)
                return UserError(f"{option}: no such flag. Known: {known}. Did you mean {near_flag[0]}?")
            near_key = difflib.get_close_matches(name, self.own, n=1, cutoff=NEAR_KEY)
            if near_key:
                name = near_key[0]
            elif not self.overrides or not _matches(name, self.overrides.only):
                return UserError(f"{self.verb} {option}: no such option.{self._written_as() or ' It takes none.'}")
        if not text and following and not _is_option(following[0]):
            argument, text = f"{argument} {following[0]}", following[0]
        return UserError(f"{argument}: options are written KEY=VALUE here, as in {name}={text or 'VALUE'}.")

    def _nothing_but_keys(self) -> str:
        written_as = self._written_as()
        return f"takes no words without a key.{written_as}" if written_as else "takes no arguments."

    def _written_as(self) -> str:
        """How options of this verb are written; nothing where it takes none."""
        examples = [f"{key.name}={key.example}" for key in self.keys]
        if self.overrides and self.overrides.only == EVERY_KEY:
            examples.append("limit=5")
        return f" Options are written KEY=VALUE here, as in {', '.join(examples)}." if examples else ""


def _split(argument: str) -> tuple[str, str]:
    key, _, text = argument.partition("=")
    return key, text


def _is_option(argument: str) -> bool:
    return argument.startswith("-") or "=" in argument


def _matches(key: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)
