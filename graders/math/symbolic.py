"""Second opinions on a mathematical answer, kept in the record beside the primary verdict.

`strict` compares the two texts without their blanks. `symbolic` asks math-verify, where that package is installed;
it may take any time and memory on odd input, so it works in a child process that is bounded and replaced when it
hangs. Neither decides whether an answer is correct.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

LONGEST = 1_000  # characters worth a symbolic comparison
ANSWER_S = 1.0  # for one comparison; a loaded machine turns opinions into None, never into wrong ones
START_S = 60.0
MEMORY_BYTES = 4 << 30
PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
SERVE = f"import sys; sys.path.append({PACKAGE_ROOT!r}); from graders.math.symbolic import serve; serve()"


class SecondOpinions:
    """Compares answers by other measures than the primary one; safe to share between threads."""

    def __init__(self) -> None:
        self._is_installed = importlib.util.find_spec("math_verify") is not None
        self._lock = threading.Lock()
        self._child: subprocess.Popen | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return type(self), ()

    def compare(self, answer: str, gold: str) -> dict[str, Any]:
        """Details for the verdict.

        Returns:
          `strict`: equal but for blanks. `symbolic`, only with math-verify installed: equal as mathematics, None
          where that took too long or the answer is too long to try.
        """
        details: dict[str, Any] = {"strict": "".join(answer.split()) == "".join(gold.split())}
        if self._is_installed:
            details["symbolic"] = self._symbolic(answer, gold)
        return details

    def _symbolic(self, answer: str, gold: str) -> bool | None:
        if max(len(answer), len(gold)) > LONGEST:
            return None
        with self._lock:
            if self._child is None or self._child.poll() is not None:
                self._start()
            try:
                self._child.stdin.write(json.dumps([answer, gold]).encode("ascii") + b"\n")
                self._child.stdin.flush()
                return self._reply(ANSWER_S + 1.0)
            except OSError:
                return None

    def _start(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        weakref.finalize(self, _stop, self._child)
        self._reply(START_S)

    def _reply(self, timeout_s: float) -> bool | None:
        """The child's next reply; a child that gives none in time is ended."""
        waiting = select.poll()  # select cannot watch descriptors beyond 1023
        waiting.register(self._child.stdout, select.POLLIN)
        readable = waiting.poll(1000 * timeout_s)
        line = self._child.stdout.readline() if readable else b""
        if not line:
            _stop(self._child)
        return json.loads(line) if line else None


def _stop(child: subprocess.Popen) -> None:
    child.kill()
    with contextlib.suppress(OSError, ValueError):
        child.communicate()


def serve() -> None:
    """The child: answers pairs of expressions, one JSON list a line, until its input ends.

    sympy takes a second to load and may hang or swell on one expression, so it is loaded once and every pair is
    compared in a fork, which is ended when its time is over.
    """
    _are_equal("0.5", r"\frac{1}{2}")  # loads what sympy loads late
    print("true", flush=True)
    for line in sys.stdin:
        print(json.dumps(_in_fork(*json.loads(line))), flush=True)


def _in_fork(answer: str, gold: str) -> bool | None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            os.write(writing, b"1" if _are_equal(answer, gold) else b"0")
        finally:
            os._exit(0)
    os.close(writing)
    readable, _, _ = select.select([reading], [], [], ANSWER_S)
    reply = os.read(reading, 1) if readable else b""
    os.close(reading)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return reply == b"1" if reply else None


def _are_equal(answer: str, gold: str) -> bool:
    from math_verify import parse, verify

    expressions = [parse(f"${text.strip().strip('$')}$", parsing_timeout=None) for text in (gold, answer)]
    return bool(verify(*expressions, timeout_seconds=None))
