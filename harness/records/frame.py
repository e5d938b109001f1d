"""Records as one pandas DataFrame, one row a response: what every table and figure is a function of.

column                      dtype    meaning
run                         str      folder of the run
model, task, schedule, order, prompt_id, text, stop_reason, started_at       str, as in `Record`
adapter, costs_only         str      missing where there is none
width, repetition, seed, prompt_tokens, tokens, nfe, rows, adapter_rows_selected, adapter_rows_evaluated     int64
top_k, memory_bytes         Int64    missing where there is none
temperature, wall_s, model_s, top_p      float64; seconds; top_p is NaN where there is none
token_ids, accepted         object   int64 arrays
correct                     boolean  the verdict; missing where a response is not scored
reason                      str      of the verdict; missing before grading
"""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import pandas as pd
import simdjson

from harness.errors import UserError
from harness.records.manifest import MANIFEST, read_manifest
from harness.records.places import RECORDS
from harness.records.record import FAILED, SCHEMA, SKIPPED, Record, last_line, read_records, torn_bytes, unsealed

log = logging.getLogger(__name__)

LISTS = ("token_ids", "accepted")
KINDS = get_type_hints(Record)
SCALARS = tuple(field.name for field in fields(Record) if field.name not in (*LISTS, "verdict", "schema"))
COLUMNS = ("run", *SCALARS, *LISTS, "correct", "reason")
# What fields are that a record lacks: those of later versions have a default, and no record has that of the others.
DEFAULTS = {field.name: field.default for field in fields(Record) if field.name in SCALARS}
DTYPES = {int: "int64", float: "float64", str: "str", str | None: "str", int | None: "Int64", float | None: "float64"}
# Types of JSON values by those of fields: a whole number is a number too.
ALLOWED = {
    kind: {float: {int, float}, float | None: {int, float, type(None)}}.get(kind, set(get_args(kind) or (kind,)))
    for kind in DTYPES
}


def read(paths: str | Path | Iterable[str | Path], facts: Sequence[str] = ()) -> pd.DataFrame:
    """The responses of all run folders at and below `paths`, in the order of the folders' names and of the records.

    Args:
      facts: places in the runs' manifests that become columns, such as "model.device" or "config.engine"; missing where
        a manifest does not say.

    Returns:
      Columns and dtypes as above, `facts` behind them.

    Raises:
      UserError: one of `paths` does not exist, or a manifest or record is damaged; a torn last line is a notice.
    """
    paths = [paths] if isinstance(paths, str | Path) else paths
    frames = [_with_facts(folder, facts) for folder in run_folders(map(Path, paths))]
    return pd.concat(frames, ignore_index=True) if frames else as_frame([]).reindex(columns=[*COLUMNS, *facts])


def run_folders(paths: Iterable[Path]) -> Sequence[Path]:
    """Folders with records at and below `paths`, in order, but for shards inside the run that they became.

    Raises:
      UserError: one of `paths` does not exist.
    """
    folders: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UserError(f"{path}: no such folder. Give run folders, or folders that hold some.")
        folders |= {file.parent for file in path.rglob(RECORDS)}
    whole = {folder for folder in folders if _is_merged(folder)}
    return sorted(folder for folder in folders if whole.isdisjoint(folder.parents) or not _is_shard(folder))


class RunRecords(NamedTuple):
    """Records of one run up to the first that cannot be read.

    Attributes:
      damage: what cannot be read; empty where all can.
      is_torn: whether the last line is, as that of a run that was killed.
    """

    frame: pd.DataFrame
    damage: str = ""
    is_torn: bool = False


def read_run(folder: Path) -> RunRecords:
    """The records of the run in `folder`.

    Raises:
      OSError: its file cannot be read.
    """
    file = folder / RECORDS
    quick = _quickly(file, folder)
    if quick is not None:
        return RunRecords(quick)
    columns = _Columns()
    try:
        for record in read_records(file):
            columns.add(record)
    except UserError as error:
        return RunRecords(columns.frame(folder), damage=str(error))
    return RunRecords(columns.frame(folder), is_torn=torn_bytes(last_line(file)) > 0)


def as_frame(records: Iterable[Record], folder: Path = Path()) -> pd.DataFrame:
    """`records` of a run in `folder` as a frame."""
    columns = _Columns()
    for record in records:
        columns.add(record)
    return columns.frame(folder)


def answered(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that are responses: not those of prompts that did not fit, nor where memory ran out."""
    return frame[~frame["stop_reason"].isin((SKIPPED, FAILED))]


class _Columns:
    """Records, column by column; lists become arrays at once, which take a tenth of the memory."""

    def __init__(self) -> None:
        self._values: list[tuple[Any, ...]] = []
        self._arrays: list[tuple[np.ndarray, ...]] = []
        self._verdicts: list[tuple[bool | None, str | None]] = []

    def add(self, record: Record) -> None:
        verdict = record.verdict or {"correct": None, "reason": None}
        lists = tuple(np.array(getattr(record, name), dtype=np.int64) for name in LISTS)
        scalars = tuple(_encodable(getattr(record, name)) for name in SCALARS)
        self.append(scalars, lists, verdict["correct"], _encodable(verdict.get("reason", "")))

    def append(
        self, values: tuple[Any, ...], arrays: tuple[np.ndarray, ...], correct: bool | None, reason: str | None
    ) -> None:
        """One response: values of `SCALARS` and of `LISTS`, and its verdict."""
        self._values.append(values)
        self._arrays.append(arrays)
        self._verdicts.append((correct, reason))

    def has_right_types(self) -> bool:
        """Whether every value is of a type that its field has in a record."""
        for name, values in zip(SCALARS, _transposed(self._values, len(SCALARS)), strict=True):
            if not ALLOWED[KINDS[name]].issuperset(map(type, values)):
                return False
        correct, reasons = _transposed(self._verdicts, 2)
        return {bool, type(None)}.issuperset(map(type, correct)) and {str, type(None)}.issuperset(map(type, reasons))

    def frame(self, folder: Path) -> pd.DataFrame:
        columns: dict[str, Any] = {"run": pd.array([str(folder)] * len(self._values), dtype="str")}
        for name, values in zip(SCALARS, _transposed(self._values, len(SCALARS)), strict=True):
            columns[name] = pd.array(values, dtype=DTYPES[KINDS[name]])
        for name, arrays in zip(LISTS, _transposed(self._arrays, len(LISTS)), strict=True):
            columns[name] = np.fromiter(arrays, dtype=object, count=len(arrays))
        correct, reasons = _transposed(self._verdicts, 2)
        columns |= {"correct": pd.array(correct, dtype="boolean"), "reason": pd.array(reasons, dtype="str")}
        return pd.DataFrame(columns)


def _quickly(file: Path, folder: Path) -> pd.DataFrame | None:
    """The records of a file in which nothing is amiss; None where `read_records` has to look.

    The parser takes lists of numbers from a line without making a Python object of each: a whole paper's records are
    read in a third of the time.
    """
    columns, parser = _Columns(), simdjson.Parser()
    try:
        with file.open("rb") as lines:
            for line in lines:
                body = unsealed(line)
                if body is None:
                    return None
                values = parser.parse(body)
                if values["schema"] != SCHEMA:
                    return None
                arrays = tuple(np.frombuffer(values[name].as_buffer(of_type="i"), dtype=np.int64) for name in LISTS)
                # No verdict, or an object: the parser's own, which must not outlive the next line.
                verdict = values["verdict"]
                known = (verdict["correct"], verdict.get("reason", "")) if verdict is not None else (None, None)
                columns.append(tuple([values.get(name, default) for name, default in DEFAULTS.items()]), arrays, *known)
                del values, verdict
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError):
        return None
    if not columns.has_right_types():
        return None
    frame = columns.frame(folder)
    numbers = frame.select_dtypes("number")
    return None if ((numbers < 0) | (numbers == math.inf)).any(axis=None) else frame


def _encodable(value: Any) -> Any:
    """`value`; of a text, halves of surrogate pairs become U+FFFD, since the frame's texts are UTF-8."""
    return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if isinstance(value, str) else value


def _is_merged(folder: Path) -> bool:
    """Whether a run was put together from shards: every session in its manifest says of which."""
    return "shard" in _manifest(folder)


def _is_shard(folder: Path) -> bool:
    return _manifest(folder).get("plan", {}).get("shard") is not None


def _manifest(folder: Path) -> Mapping[str, Any]:
    """As it is, or nothing: what is wrong with it is found where it is used."""
    try:
        return read_manifest(folder / MANIFEST)
    except UserError:
        return {}


def _transposed(rows: Sequence[tuple[Any, ...]], width: int) -> Sequence[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * width


def _with_facts(folder: Path, facts: Sequence[str]) -> pd.DataFrame:
    run = read_run(folder)
    if run.damage:
        raise UserError(run.damage)
    if run.is_torn:
        log.warning("PARTIAL: %s: its last line is torn; the %d records before it are used", folder, len(run.frame))
    manifest = read_manifest(folder / MANIFEST) if facts else {}
    return run.frame.assign(**{fact: _fact(manifest, fact) for fact in facts})


def _fact(manifest: Mapping[str, Any], place: str) -> Any:
    value: Any = manifest
    for key in place.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return str(value) if isinstance(value, list | dict) else value
