"""What happens to long work that is stopped: it says how to go on, and nothing that was recorded is lost."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from harness.errors import Terminated


@contextlib.contextmanager
def goes_on_with(path: Path, key: str = "run_dir") -> Iterator[None]:
    """Ctrl-C and SIGTERM abandon what is under way; the exception's note says how to go on in the folder `path`,
    which the command calls `key`.
    """
    # A cluster's launcher has its own handler, which starts the job again elsewhere.
    is_ours = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if is_ours:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except KeyboardInterrupt as error:
        error.add_note(f"go on with the same command and {key}={path}")
        raise
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: object) -> None:
    raise Terminated
