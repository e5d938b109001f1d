"""Plain text for people: aligned columns, cut lists, and the sign of what is missing."""

from collections.abc import Sequence

MISSING = "-"
SHOWN = 5  # of a list that could be long


def aligned(rows: Sequence[Sequence[str]], is_left: Sequence[bool]) -> list[str]:
    """Lines in which columns stand below each other, two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, is_left, strict=True)
        ).rstrip()
        for row in rows
    ]


def some(texts: Sequence[str]) -> str:
    """The first of `texts` in a line, with dots where there are more."""
    return ", ".join(texts[:SHOWN]) + (", ..." if len(texts) > SHOWN else "")
