"""Reads the cases of this folder, which are data: name, input, expected, why."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "graders" / "cases"


def cases(name: str) -> list[Any]:
    """The cases of one file as parameters, each under its name."""
    return [pytest.param(case, id=case["name"]) for case in json.loads((FOLDER / f"{name}.json").read_text())]


def text(pieces: str | list | None) -> str | None:
    """Text of a case: itself, or its pieces joined, of which `["a", 3]` is `aaa`."""
    if pieces is None or isinstance(pieces, str):
        return pieces
    return "".join(piece if isinstance(piece, str) else piece[0] * piece[1] for piece in pieces)
