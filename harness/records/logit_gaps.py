"""Gaps between the top two logits where greedy outputs of two schedules part (F.6): logit_gaps.json beside the records.

Records hold no logits; `python -m harness replay` evaluates the diverging positions again and writes

    {"schema": 1, "gaps": [{"prompt_id": "...", "position": 17, "gap": 0.03}]}

`position` counts output tokens from 1; the context is the output before it, which both schedules share.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import UserError

GAPS = "logit_gaps.json"
SCHEMA = 1


def first_difference(one: Sequence[int], other: Sequence[int]) -> Sequence[tuple[int, tuple[int | None, int | None]]]:
    """The first position that differs with the tokens there; nothing for equal outputs."""
    shorter = min(len(one), len(other))
    differing = np.flatnonzero(np.not_equal(one[:shorter], other[:shorter]))
    if len(one) == len(other) and not differing.size:
        return []
    index = int(differing[0]) if differing.size else shorter
    tokens = tuple(int(output[index]) if index < len(output) else None for output in (one, other))
    return [(index + 1, tokens)]


def gaps_json(gaps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Gaps as the value of their file."""
    return {"schema": SCHEMA, "gaps": list(gaps)}


def read_gaps(file: Path) -> Mapping[tuple[str, int], float]:
    """The gaps of a file, by prompt and position.

    Raises:
      UserError: it is none of this schema.
    """
    try:
        values = json.loads(file.read_text())
        if values["schema"] != SCHEMA:
            raise UserError(f"{file}: schema {values['schema']}, this version reads {SCHEMA}.")
        return {(gap["prompt_id"], gap["position"]): gap["gap"] for gap in values["gaps"]}
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise UserError(f"{file}: no logit gaps ({error!r}). Replay them again.") from None
