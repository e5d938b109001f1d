"""Grades many responses at once, in order, over the cores.

Threads suffice: programs run in processes of their own, and reading a mathematical answer takes microseconds.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from graders.verdict import Grader, Verdict

AHEAD = 4  # items taken from the source per worker before their verdicts are asked for


def grade_all(
    grader: Grader, items: Iterable[tuple[str, Mapping[str, Any]]], workers: int | None = None
) -> Iterator[Verdict]:
    """Verdicts on pairs of response and reference, in the order of the pairs.

    The source is read only a little ahead of the verdicts, so it may be endless. An item the grader cannot take
    (a reference without its gold answer) gives an `infra` verdict with the reason and does not end the rest.

    Args:
      grader: called from several threads at once.
      items: pairs of response and reference.
      workers: how many responses are graded at a time; the number of cores if None.

    Raises:
      ValueError: fewer than one worker.
    """
    workers = os.cpu_count() or 1 if workers is None else workers
    if workers < 1:
        raise ValueError(f"workers={workers}: at least 1.")
    return _in_order(grader, items, workers)


def _in_order(grader: Grader, items: Iterable[tuple[str, Mapping[str, Any]]], workers: int) -> Iterator[Verdict]:
    pending: deque[Future[Verdict]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for response, reference in items:
                pending.append(pool.submit(_graded, grader, response, reference))
                if len(pending) >= AHEAD * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def _graded(grader: Grader, response: str, reference: Mapping[str, Any]) -> Verdict:
    try:
        return grader.grade(response, reference)
    except Exception as error:
        return Verdict(None, f"infra\n{type(error).__name__}: {error}")
