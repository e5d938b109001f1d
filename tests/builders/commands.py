"""Command lines made of a common part and what a test changes in it."""

from collections.abc import Sequence


def changed(arguments: Sequence[str], *others: str) -> list[str]:
    """`arguments` and `others`, which take the place of those that set the same key: a key can stand there once."""
    keys = {other.partition("=")[0] for other in others}
    return [*(one for one in arguments if one.partition("=")[0] not in keys), *others]
