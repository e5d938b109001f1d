"""Files of runs, and what is counted in them: the only room that knows how they look.

`harness.records(PATHS)` reads the records of runs as a DataFrame, one row a response (`harness.records.frame`).
"""

import sys
import types
from typing import Any


def read(paths: Any, facts: Any = ()) -> Any:
    """The responses of all run folders at and below `paths`: see `harness.records.frame.read`."""
    # Imported on the first call: help and lists must not wait for pandas.
    from harness.records import frame

    return frame.read(paths, facts)


class _Room(types.ModuleType):
    """This package, which can be called: the name is the frame's and the room's."""

    def __call__(self, paths: Any, facts: Any = ()) -> Any:
        return read(paths, facts)


sys.modules[__name__].__class__ = _Room
