"""The command line in a process of its own: forked, as everything that it needs is imported already."""

import os
import signal
import sys
import tempfile
from collections.abc import Callable
from multiprocessing import Process, get_context
from typing import NamedTuple

from harness.cli.main import main


class Ended(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def fork(work: Callable[[], int], stdout: int, stderr: int) -> Process:
    """Starts `work`, which gives an exit status, with file descriptors for what it prints."""

    def child() -> None:
        # A background job of a shell starts with Ctrl-C ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
        sys.exit(work())

    process = get_context("fork").Process(target=child)
    process.start()
    return process


def command(*arguments: str) -> Ended:
    """Runs a command to its end."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = fork(lambda: main(arguments), out.fileno(), err.fileno())
        process.join()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8"))
    return Ended(process.exitcode, *texts)
