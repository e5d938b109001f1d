"""Notices: what the rooms below have to say while they work, a line each on stderr."""

import logging
import sys


class _Stderr(logging.Handler):
    """Writes to what is stderr at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"notice: {record.getMessage()}", file=sys.stderr)


def show_notices() -> None:
    """Shows them from now on; once, however often it is called."""
    ours = logging.getLogger("harness")
    if not any(isinstance(handler, _Stderr) for handler in ours.handlers):
        ours.addHandler(_Stderr(logging.WARNING))
        ours.propagate = False
