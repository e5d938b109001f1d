"""Mistakes of the user, as opposed to defects: one line that says what was asked, what was found, what to do."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Shown as one line without a traceback; the command ends with exit status 2."""


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a cluster sends it before it takes a machine away; handled like Ctrl-C."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that is not among `known`, with the nearest match suggested."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]}?" if near else ""
    return UserError(f"{kind}={name}: no such {kind}. Known: {', '.join(known)}.{hint}")
