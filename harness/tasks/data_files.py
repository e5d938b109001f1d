"""Reads data sets in their published layouts, from a local file or from the hub, and says exactly what is wrong."""

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import UserError
from harness.system.hub import caches_alone, out_of_reach

Row = Mapping[str, Any]

GZIP_MAGIC = b"\x1f\x8b"
FOLDER_VARIABLE = "HARNESS_DATA_DIR"
COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True)
class HubSet:
    """Where a data set lies on the hub."""

    repository: str
    configuration: str | None
    split: str


@dataclass(frozen=True)
class Table:
    """Rows of a data set.

    Attributes:
      rows: in the order of the file.
      origin: the file or the hub's name, for messages.
      facts: for the manifest.
      notices: what a user should know about where the rows come from.
    """

    rows: Sequence[Row]
    origin: str
    facts: Mapping[str, Any]
    notices: Sequence[str] = field(default=())

    def check_texts(self, *keys: str) -> None:
        """Raises `UserError` where a row's value under one of `keys` is missing or no text."""
        for number, row in enumerate(self.rows, start=1):
            for key in keys:
                if not isinstance(row.get(key), str):
                    found = f"{key} of type {type(row[key]).__name__}" if key in row else f"no {key}"
                    raise UserError(f"{self.origin}: object {number} has {found}, need text.")


@dataclass(frozen=True)
class Files:
    """Where a data set's own file may lie.

    Attributes:
      data_files: the file itself, if a user named one.
      data_dir: the folder with it, if a user named one.
      names: that it may have there, the usual one first.
      variable: environment variable that names the file where a user did not.
    """

    data_files: str | None
    data_dir: str | None
    names: Sequence[str]
    variable: str = ""

    def locate(self) -> "Located | None":
        """The file; None where nothing says that there is one.

        Raises:
          UserError: the named folder has no file of this data set.
        """
        if self.data_files is not None:
            return Located(str(self.data_files), f"task.data_files={self.data_files}")
        named = os.environ.get(self.variable) if self.variable else None
        if named:
            return Located(named, f"{self.variable}={named}", [f"data: {self.variable} is set, reading {named}"])
        if self.data_dir is not None:
            found = self._in(self.data_dir)
            if found is None:
                raise UserError(
                    f"data_dir={self.data_dir}: has no {' or '.join(self.names)}. Put the file there, or name it with "
                    "task.data_files=PATH."
                )
            return Located(found, f"data_dir={found}")
        found = self._in(os.environ.get(FOLDER_VARIABLE))
        notice = f"data: {FOLDER_VARIABLE} is set, reading {found}"
        return Located(found, f"{FOLDER_VARIABLE}={found}", [notice]) if found else None

    def _in(self, folder: str | None) -> str | None:
        paths = [Path(folder) / name for name in self.names] if folder else []
        return next((str(path) for path in paths if path.is_file()), None)


class Located(NamedTuple):
    """A data set's file, what messages call it, and what a user should know."""

    path: str
    origin: str
    notices: Sequence[str] = ()


def read_table(files: Files, hub: HubSet, revision: str, required: Sequence[str]) -> Table:
    """A data set from a local file, or else from the hub.

    Args:
      revision: the hub commit to read.
      required: keys that every object must have.

    Raises:
      UserError: as `Files.locate`, `read_json_lines` and `read_hub`.
    """
    located = files.locate()
    if located:
        rows, digest = read_json_lines(located.path, required, located.origin)
        return Table(rows, located.origin, {"file": located.path, "sha256": digest}, located.notices)
    rows, revision = read_hub(hub.repository, hub.configuration, hub.split, revision)
    return Table(rows, f"hub: {hub.repository}", {"hub": hub.repository, "revision": revision})


def count_notices(name: str, items: int, expected: int) -> Sequence[str]:
    """One line where a data set has not as many items as its published form."""
    return [] if items == expected else [f"{name}: {items} items, the published set has {expected}"]


def read_json_lines(path: str | Path, required: Sequence[str], where: str) -> tuple[Sequence[Row], str]:
    """The objects of a JSON-lines file (.gz is unpacked) and the SHA-256 of the file as it lies there.

    Args:
      required: keys that every object must have.
      where: what messages begin with.

    Raises:
      UserError: the file is missing, not readable or empty, a line is not a JSON object, or lacks a key; with file
        and line.
    """
    content = read_bytes(Path(path), where)
    rows = []
    for number, line in numbered_lines(content, where):
        rows.append(row_of(line, f"{where}: line {number}"))
        check_keys(rows[-1], required, f"{where}: line {number}")
    if not rows:
        raise UserError(f"{where}: the file is empty, need one JSON object a line.")
    return rows, hashlib.sha256(content).hexdigest()


def read_bytes(path: Path, where: str) -> bytes:
    """A file's content as it lies there.

    Args:
      where: what messages begin with.

    Raises:
      UserError: the file is missing or cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{where}: no such file.") from None
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error}).") from None


def numbered_lines(content: bytes, where: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers; gzip is unpacked, blank lines are passed over.

    Args:
      where: what messages begin with.

    Raises:
      UserError: damaged gzip.
    """
    try:
        content = gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{where}: cannot be read ({error}).") from None
    # Not splitlines(): JSON strings may hold raw line separators other than the newline.
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            yield number, line


def row_of(line: bytes, where: str) -> Row:
    """The object that a line of JSON holds.

    Args:
      where: file and line, which messages begin with.

    Raises:
      UserError: the line is not a JSON object.
    """
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise UserError(f"{where} is not UTF-8 text ({error.reason}).") from None
    # Beside broken JSON: numbers of more digits than Python reads (ValueError), and deep nesting.
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where} is not JSON ({error}).") from None
    if not isinstance(row, dict):
        raise UserError(f"{where} holds a {type(row).__name__}, need a JSON object.")
    return row


def check_keys(row: Row, required: Sequence[str], where: str) -> None:
    """Raises `UserError` where a row lacks one of the `required` keys."""
    lacking = [key for key in required if key not in row]
    if lacking:
        raise UserError(f"{where} lacks {', '.join(lacking)}; it has {', '.join(list(row)[:8]) or 'nothing'}.")


def read_hub(repository: str, configuration: str | None, split: str, revision: str) -> tuple[Sequence[Row], str]:
    """The rows of a hub data set at a pinned revision, and that revision; a commit where it was found in the cache.

    Raises:
      UserError: neither the hub nor a cached copy can be reached, or the copy is another; names both ways out.
    """
    from datasets import load_dataset
    from datasets.utils.logging import disable_progress_bar, set_verbosity_error

    disable_progress_bar()
    set_verbosity_error()
    silence = out_of_reach()
    try:
        with caches_alone() if silence else nullcontext():
            data = load_dataset(repository, configuration, split=split, revision=revision)
    # The hub's client raises a different class for each way of being offline; all mean the same to a user.
    except (OSError, ValueError, RuntimeError) as error:
        reason = silence or (str(error).splitlines()[0] if str(error) else type(error).__name__)[:120]
        raise UserError(
            f"task: {repository} cannot be had from the hub or its cache: {reason}. Go online, or give the data set's "
            "own file with task.data_files=PATH."
        ) from None
    if silence:
        # Without a network, `datasets` takes the latest copy that it has, whatever revision is asked for.
        held = Path(data.cache_files[0]["filename"]).parent.name
        if COMMIT.fullmatch(revision) and held != revision:
            raise UserError(
                f"task: {repository} at {revision[:12]} is not in the hub's cache, which has {held[:12]}: {silence}. "
                "Go online, or give the data set's own file with task.data_files=PATH."
            )
        revision = held
    return list(data), revision
