r"""The last boxed answer of a response.

Understands `\boxed{...}` and `\fbox{...}` with balanced braces, and the brace-less `\boxed 7`. Braces escaped
by a backslash are text and do not count. The work is linear in the length of the response: a box that a later
box opens inside of, and that one never closes, cannot close either, so each box is searched only up to the next.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import accumulate, repeat
from operator import indexOf

MOST_BOXES = 1_000  # looked at, from the last one back
BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])[ \t]*(?:\n[ \t]*)?")
BARE = re.compile(r"(?:\\[a-zA-Z]+|[^\s$\\{},;]|,(?=\d)|\{[^{}$]*\})+")
DEPTH_CHANGE = {"{": 1, "}": -1}


def last_boxed(text: str) -> str | None:
    r"""Content of the last complete box in `text`, stripped of outer blanks.

    Boxes that are empty (an instruction repeated) or never closed (a response cut by its length limit) are passed
    over. A box within a box is the later one.

    Args:
      text: any text, of any length and content.

    Returns:
      The content, or None if there is no complete box with something in it.
    """
    end = len(text)
    for start, box_end in reversed(deque((box.span() for box in BOX.finditer(text)), maxlen=MOST_BOXES)):
        content = _content(text, box_end, end)
        if content and not content.isspace():
            return content.strip()
        end = start
    return None


def _content(text: str, start: int, end: int) -> str | None:
    """What the box whose opening ends at `start` holds, looking no further than `end`."""
    if not text.startswith("{", start):
        bare = BARE.match(text, start, end)
        return bare.group() if bare else None
    if text.find("}", start, end) < 0:
        return None
    visible = text[start:end].replace(r"\\", "  ").replace(r"\{", "  ").replace(r"\}", "  ")
    depths = accumulate(map(DEPTH_CHANGE.get, visible, repeat(0)))
    try:
        length = indexOf(depths, 0)
    except ValueError:
        return None
    return text[start + 1 : start + length]
