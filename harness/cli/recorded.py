"""What the verbs that read records share: their arguments, and the study that these stand for."""

from pathlib import Path

from harness.analysis.study.runs import Facts
from harness.analysis.study.study import Study, read_study
from harness.cli.arguments import Given, Words
from harness.cli.keys import Names
from harness.errors import UserError
from harness.records.places import RECORDS, REFERENCE, RESULTS, RUNS

PATHS = Words()
SCHEDULES = Names("schedules", example="linear,packed")
MIX = Names("mix", known=Facts._fields, example="device,code")


def study_of(given: Given) -> Study:
    """The study of the paths, schedules and mix that were given.

    Raises:
      UserError: there is no such folder.
    """
    return read_study(given.paths or [default_path()], given["mix"], given["schedules"])


def default_path() -> Path:
    """The user's own runs; without any, those of the embedded models that are part of the repository.

    Raises:
      UserError: there are no results at all.
    """
    for path in (RUNS, REFERENCE):
        if any(path.rglob(RECORDS)):
            return path
    if not RESULTS.is_dir():
        raise UserError(f"{RESULTS}: no such folder here. Name folders that hold runs, or run something first.")
    return RESULTS
