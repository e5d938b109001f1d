"""What the analysis verbs can be told: folders, and KEY=VALUE pairs as everywhere on the command line."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.study.runs import Facts
from harness.errors import UserError, unknown
from harness.records.places import RECORDS, REFERENCE, RESULTS, RUNS


@dataclass(frozen=True)
class Options:
    """Parsed arguments.

    Attributes:
      paths: where to look for run folders.
      values: of the keys that were given, split at commas.
    """

    paths: Sequence[Path]
    values: Mapping[str, Sequence[str]]

    def get(self, key: str) -> Sequence[str]:
        """Values of a key; none if it was not given."""
        return self.values.get(key, ())

    def one(self, key: str, default: str) -> str:
        """The only value of a key.

        Raises:
          UserError: it has several.
        """
        values = self.get(key) or [default]
        if len(values) != 1:
            raise UserError(f"{key}={','.join(values)}: name one.")
        return values[0]


def parse(arguments: Sequence[str], keys: Collection[str]) -> Options:
    """Folders and KEY=A,B pairs in any order.

    Raises:
      UserError: an unknown key, or an unknown name in mix=.
    """
    paths, values = [], {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        # The runs of a sweep have names like task=gsm8k,schedule=packed.
        if not equals or Path(argument).exists():
            paths.append(Path(argument))
            continue
        if key not in keys:
            raise unknown("key", key, keys)
        values[key] = [part.strip() for part in value.strip("[]").split(",") if part.strip()]
    for name in values.get("mix", ()):
        if name not in Facts._fields:
            raise unknown("mix", name, Facts._fields)
    return Options(paths or [_default_path()], values)


def _default_path() -> Path:
    """The user's own runs; without any, those of the embedded models that are part of the repository."""
    for path in (RUNS, REFERENCE):
        if any(path.rglob(RECORDS)):
            return path
    if not RESULTS.is_dir():
        raise UserError(f"{RESULTS}: no such folder here. Name folders that hold runs, or run something first.")
    return RESULTS
