"""Reads data sets in their published layouts, from a local file or from the hub, and says exactly what is wrong."""

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UserError

Row = Mapping[str, Any]


def read_json_lines(path: str | Path, required: Sequence[str]) -> tuple[Sequence[Row], str]:
    """The objects of a JSON-lines file (.gz is unpacked) and the SHA-256 of the file as it lies there.

    Args:
      required: keys that every object must have.

    Raises:
      UserError: the file is missing, not readable or empty, a line is not a JSON object, or lacks a key; with file
        and line.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except FileNotFoundError:
        raise UserError(f"task.data_files={path}: no such file.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"task.data_files={path}: not UTF-8 text ({error}).") from None
    except (OSError, EOFError) as error:
        raise UserError(f"task.data_files={path}: cannot be read ({error}).") from None
    rows = list(_rows(path, text, required))
    if not rows:
        raise UserError(f"task.data_files={path}: the file is empty, need one JSON object a line.")
    return rows, hashlib.sha256(content).hexdigest()


def _rows(path: Path, text: str, required: Sequence[str]) -> Iterator[Row]:
    # Not splitlines(): JSON strings may hold raw line separators other than the newline.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"task.data_files={path}: line {number}"
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise UserError(f"{where} is not JSON ({error}).") from None
        if not isinstance(row, dict):
            raise UserError(f"{where} holds a {type(row).__name__}, need a JSON object.")
        lacking = [key for key in required if key not in row]
        if lacking:
            raise UserError(f"{where} lacks {', '.join(lacking)}; it has {', '.join(list(row)[:8]) or 'nothing'}.")
        yield row


def read_hub(repository: str, configuration: str | None, split: str, revision: str) -> tuple[Sequence[Row], str]:
    """The rows of a hub data set at a pinned revision, and that revision.

    Raises:
      UserError: neither the hub nor a cached copy can be reached; names both ways out.
    """
    from datasets import load_dataset
    from datasets.utils.logging import disable_progress_bar, set_verbosity_error

    disable_progress_bar()
    set_verbosity_error()
    try:
        data = load_dataset(repository, configuration, split=split, revision=revision)
    # The hub's client raises a different class for each way of being offline; all mean the same to a user.
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(
            f"task: {repository} cannot be had from the hub ({reason[:120]}). Go online, or give the data set's "
            "own file with task.data_files=PATH."
        ) from None
    return list(data), revision
