"""What the verbs that read records share: their arguments, and the study that these stand for."""

from collections.abc import Sequence
from pathlib import Path

from harness.analysis.study.runs import MIXABLE
from harness.analysis.study.study import Study, read_study
from harness.cli.arguments import Given, Words
from harness.cli.keys import Names
from harness.errors import UserError
from harness.records.places import RECORDS, REFERENCE, RESULTS, RUNS

PATHS = Words()
SCHEDULES = Names("schedules", example="linear,packed")
MIX = Names("mix", known=MIXABLE, example="device,code")


def study_of(given: Given) -> Study:
    """The study of the paths, schedules and mix that were given.

    Raises:
      UserError: there is no such folder.
    """
    return read_study(paths_of(given), given["mix"], given["schedules"])


def paths_of(given: Given) -> Sequence[Path]:
    """The paths that were given; else the user's own runs, or those that are part of the repository.

    Raises:
      UserError: none were given, and there are no results at all.
    """
    return given.paths or [_default_path()]


def _default_path() -> Path:
    for path in (RUNS, REFERENCE):
        if any(path.rglob(RECORDS)):
            return path
    if not RESULTS.is_dir():
        raise UserError(f"{RESULTS}: no such folder here. Name folders that hold runs, or run something first.")
    return RESULTS
