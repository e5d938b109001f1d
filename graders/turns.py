"""Where a response ends, and what of it is said rather than thought.

Markers of chat and thought (`<|im_end|>`, `</s>`, `</think>`) are structure only where they stand as structure. In a
string, behind a `#`, in quotes, or as a word of a sentence they are text, and text they stay.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

Span = tuple[int, int]

ENDS = (  # of a turn, and the beginnings of another
    r"<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|end_of_turn|end_of_sentence|end|eos|return|EOT|endofturn"
    r"|im_start|start_header_id|user|system|human)\|>"
    r"|</s>|<end_of_turn>|<start_of_turn>|<eos>|<\uff5c(?:end\u2581of\u2581sentence|User)\uff5c>|\[INST\]"
)
END = re.compile(ENDS)
OPENING = re.compile(
    r"(?:\s*(?:<s>|<bos>|<\|(?:begin_of_text|startoftext|assistant|endoftext|bos)\|>|<\|im_start\|>(?:assistant)?"
    r"|<start_of_turn>(?:model)?|<\|start_header_id\|>assistant<\|end_header_id\|>|\[/INST\]))+"
)
CHANNEL = "<|channel|>final<|message|>"
THOUGHT = re.compile(r"<(/?)think(?:ing)?>")
MARKER = re.compile(rf"{ENDS}|{THOUGHT.pattern}|<\|[A-Za-z_ ]{{1,40}}\|>")
ROLE = re.compile(r"\s*(?:user|assistant|system|model|human)\b", re.IGNORECASE)
QUOTES = frozenset("`\"'\u2018\u2019\u201c\u201d")
OPENED = re.compile(r"\"\"\"|'''|\"|'|\#")
STRINGS = {quote: re.compile(rf"[^{quote}\\\n]*(?:\\.[^{quote}\\\n]*)*{quote}") for quote in "\"'"}
TRIPLE = {quote: re.compile(rf"(?:[^\\]|\\.)*?{quote}", re.DOTALL) for quote in ('"""', "'''")}
PREFIX = re.compile(r"(?<![A-Za-z0-9_])[rbfuRBFU]{1,2}$")


def first_turn(text: str, literals: Sequence[Span] = ()) -> str:
    """`text` up to the end of its turn, without the markers that open it; behind the last change to a final channel.

    Args:
      text: any text.
      literals: stretches in which markers are text, in order.
    """
    if not MARKER.search(text):
        return text
    opening = OPENING.match(text)
    start = opening.end() if opening else 0
    final = text.rfind(CHANNEL, start)
    start = final + len(CHANNEL) if final >= 0 else start
    for token in END.finditer(text, start):
        if _is_structure(text, token, literals) and text[start : token.start()].strip():
            return text[start : token.start()]
    return text[start:]


def without_thoughts(text: str, literals: Sequence[Span] = ()) -> str:
    """`text` without what stands between marks of thought; a first end of thought without a beginning opens the answer.

    A thought that is never closed stays, without its mark.
    """
    marks = [mark for mark in THOUGHT.finditer(text) if _is_structure(text, mark, literals)]
    kept, end, opened = [], 0, None
    for number, mark in enumerate(marks):
        is_closing = bool(mark[1])
        if not is_closing and opened is None:
            kept.append(text[end : mark.start()])
            opened = end = mark.end()
        elif is_closing:
            if number == 0 and text[mark.end() :].strip():
                kept = []
            elif opened is None:
                kept.append(text[end : mark.start()])
            opened, end = None, mark.end()
    return "".join([*kept, text[end:]])


def without_tokens(text: str, literals: Sequence[Span] = ()) -> str:
    """`text` without the special tokens that are neither text nor the end of a turn."""
    pieces, end = [], 0
    for token in MARKER.finditer(text):
        if token[0].startswith("<|") and _is_structure(text, token, literals):
            pieces.append(text[end : token.start()])
            end = token.end()
    return "".join([*pieces, text[end:]])


def literals(text: str) -> list[Span]:
    """Strings and comments, if `text` is read as Python; an apostrophe in prose opens no string."""
    found: list[Span] = []
    place, hopeless = 0, {}
    while opened := OPENED.search(text, place):
        mark, start, place = opened[0], opened.start(), opened.end()
        if mark == "#":
            end = text.find("\n", place)
            found.append((start, end if end >= 0 else len(text)))
        elif start < hopeless.get(mark, 0) or (len(mark) == 1 and _is_apostrophe(text, start)):
            continue
        else:
            closed = (TRIPLE if len(mark) == 3 else STRINGS)[mark].match(text, place)
            if closed is None:
                line_end = text.find("\n", place)
                hopeless[mark] = len(text) if len(mark) == 3 or line_end < 0 else line_end
                continue
            found.append((start, closed.end()))
        place = found[-1][1]
    return found


def holding(spans: Sequence[Span], place: int) -> Span | None:
    """The one of some ordered stretches in which a place lies."""
    number = bisect_right(spans, (place, 1 << 60)) - 1
    return spans[number] if number >= 0 and place < spans[number][1] else None


def merged(spans: Iterable[Span]) -> list[Span]:
    """Stretches in order, those that overlap made one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _is_structure(text: str, token: re.Match[str], literals: Sequence[Span]) -> bool:
    before, after = text[: token.start()][-2:], text[token.end() : token.end() + 2]
    if before[-1:] in QUOTES and after[:1] in QUOTES and before and after:
        return False
    literal = holding(literals, token.start())
    if literal:
        # An end that is stuck to a comment's last word is no part of the comment.
        is_comment = text[literal[0]] == "#" and END.fullmatch(token[0])
        return bool(is_comment and before[-1:].isalnum() and not after[:1].strip("\n"))
    is_word = before[:1].isalpha() and before[-1:] == " " and after[:1] == " " and after[1:].islower()
    if is_word and not ROLE.match(text, token.end()):
        return False
    line = text[text.rfind("\n", 0, token.start()) + 1 : token.start()]
    return not (token[0] == "</s>" and "<s>" in line.removeprefix("<s>"))


def _is_apostrophe(text: str, place: int) -> bool:
    before = text[max(0, place - 3) : place]
    return before[-1:].isalnum() and not PREFIX.search(before)
