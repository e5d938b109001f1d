"""From a model's text to the program it means.

Code is looked for in fences, in the bare text, as the continuation of the prompt, and between lines of prose, in
this order; what is found is pruned to what the tests need. evalplus' sanitizer sets the rule for pruning (imports,
and definitions that the entry point reaches) and has the last word on text nothing else makes sense of. It is not
used for the rest, because it tries every pair of lines (20 s on thousands of blank ones), drops decorated
functions, functions without `return` and statements that fill tables or raise the recursion limit, and keeps the
first of two definitions where Python keeps the last.

Every step is linear, or bounded by `SALVAGE_LINES` and `SANITIZER_LINES`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from graders import turns
from graders.programs.pruning import UNREADABLE, bound_names, parse, prune, segments
from graders.programs.reference import CodeReference

LONGEST_RESPONSE = 1_000_000  # characters; of a longer one the middle is not looked at
LONGEST_PROGRAM = 40_000
LONGEST_BODY = 5_000
MOST_BLOCKS = 50
SALVAGE_LINES = 600
SANITIZER_LINES = 80
SANITIZER_CHARACTERS = 8_000
MOST_BROKEN = 5  # blocks that are looked into though they are no programs
LONGEST_CUT = 12  # attempts at cutting an unfinished end off
CUT_CHARACTERS = 20_000  # that these attempts may parse together
PYTHON = frozenset({"", "python", "python3", "py", "py3", "ipython", "pycon", "python2"})

FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*\{?\.?([\w+#-]*)")
INLINE_FENCE = re.compile(r"```(?:python|py)?[ \t\n]?")
TAG = re.compile(r"[ \t]*(?:<[^<>\n]*>|\[[^\[\]\n]*\]|[.,;:!?)])")  # what may stand behind a fence that closes
CODE_START = re.compile(
    r"""@|(?:async[ ])?def[ ]|class[ ]|import[ ]|from[ ]|if[ ]|for[ ]|while[ ]|with[ ]|try:|del[ ]|assert[ ]
    |[A-Za-z_][\w.]*(?:\[[^\]\n]*\])?[ ]*(?:[-+*/|&]?=|:[ ]*\w+[ ]*=|\()|[#'"(\[{]""",
    re.VERBOSE,
)
CONTINUATION = re.compile(r"[ \t]|[)\]}]|(?:else|elif|except|finally)\b|$")


def extract(response: str, task: CodeReference) -> str | None:
    """The program of a response, with the prompt's imports and helpers before it.

    Args:
      response: the model's text.
      task: supplies the prompt an answer may continue, and the names the tests need.

    Returns:
      Python source, not necessarily correct or even parsable; None where the response holds nothing like code.
    """
    text = _readable(response)
    blocks = _blocks(text)
    text = text[:LONGEST_PROGRAM]
    blocks = blocks or [_undoctested(text)]
    for source in _complete(text, blocks):
        if task.entry_point in bound_names(source):
            return prune(_with_preamble(source, task), task.names)
    continued = _continued(text, blocks, task) if task.prompt else None
    if continued:
        return prune(continued, task.names)
    sanitized = _sanitized(text, task.entry_point)
    if sanitized:
        return _with_preamble(sanitized, task)
    return next((_with_preamble(block, task) for block in reversed(blocks) if _looks_like_code(block)), None)


def _readable(response: str) -> str:
    """The response without thoughts, chat markers and foreign line ends; a long one without blank lines.

    Lone surrogates go as well: no source text can hold them.
    """
    text = response
    if len(text) > LONGEST_RESPONSE:
        text = f"{text[: LONGEST_RESPONSE // 2]}\n{text[-LONGEST_RESPONSE // 2 :]}"
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.encode("utf-8", "ignore").decode("utf-8")
    text = _answer(text.replace("\ufeff", "").replace("\u200b", "").replace("\x00", ""))
    if len(text) > LONGEST_PROGRAM:
        text = re.sub(r"\n\s*\n", "\n", text)
    return text


def _answer(text: str) -> str:
    """What a response says in its own turn, behind its thoughts."""
    for cut in (turns.first_turn, turns.without_thoughts, turns.without_tokens):
        if turns.MARKER.search(text):
            text = cut(text, _texts(text))
    return text


def _texts(text: str) -> list[turns.Span]:
    """Stretches in which markers are text: strings, comments, and closed blocks that hold no Python."""
    others = [
        (fence.start, fence.end)
        for fence in _fences(text)
        if fence.is_closed and (fence.language not in PYTHON or not _begins_code(text[fence.start : fence.end]))
    ]
    return turns.merged([*turns.literals(text), *others])


def _begins_code(block: str) -> bool:
    """Whether a block is Python up to the first marker in it, or without any."""
    marker = turns.MARKER.search(block)
    return marker is None or (parse(textwrap.dedent(block[: marker.start()])) is not None)


@dataclass(frozen=True)
class Fence:
    """A fenced block: the language its fence names, where its content lies, whether a fence closes it."""

    language: str
    start: int
    end: int
    is_closed: bool


def _fences(text: str) -> list[Fence]:
    """The fenced blocks of a text. A fence within a string of the block does not close it."""
    found: list[Fence] = []
    fence, language, start = "", "", 0
    place = attempts = 0
    for line in text.split("\n"):
        line_start, place = place, place + len(line) + 1
        opening = FENCE.match(line)
        if not fence:
            if opening and not TAG.match(line, opening.end()):
                fence, language, start = opening[1], opening[2].lower(), place
            continue
        is_opening = bool(opening and opening[2] and line.startswith(fence)) and not _is_closing(line, fence)
        if not is_opening and not _is_closing(line, fence):
            if line.endswith(fence):
                found.append(Fence(language, start, place - 1 - len(fence), True))
                fence = ""
            continue
        if attempts < MOST_BLOCKS and _is_within_string(text, start, line_start):
            attempts += 1
            continue
        found.append(Fence(language, start, max(start, line_start - 1), not is_opening))
        fence = ""
        if is_opening:  # the fence before was never closed
            fence, language, start = opening[1], opening[2].lower(), place
    if fence:
        found.append(Fence(language, start, len(text), False))
    return found


def _is_within_string(text: str, start: int, place: int) -> bool:
    """Whether `place` lies in a string of the block that begins at `start`, one that ends behind it."""
    block = text[start:place]
    if len(block) > LONGEST_PROGRAM or not ('"""' in block or "'''" in block) or parse(textwrap.dedent(block)):
        return False
    return turns.holding(turns.literals(text[start : start + LONGEST_PROGRAM]), len(block)) is not None


def _is_closing(line: str, fence: str) -> bool:
    """Whether a line is a closing fence, alone or with a tag or a sentence behind it."""
    stripped = line.lstrip(" \t>")
    if not stripped.startswith(fence):
        return False
    rest = stripped.lstrip(fence[0])
    first = rest.split(maxsplit=1)[:1]
    is_sentence = rest[:1] in (" ", "\t") and len(rest.split()) > 1 and first[0].lower() not in PYTHON
    return not rest.strip(" \t>`~") or TAG.match(rest) is not None or is_sentence


def _blocks(text: str) -> list[str]:
    """The fenced blocks of Python or of no language; of any language if there are no such ones."""
    found = [(fence.language, text[fence.start : fence.end]) for fence in _fences(text)]
    found = [(language, block) for language, block in found if block.strip()]
    python = [_undoctested(block) for language, block in found if language in PYTHON]
    kept = [block[:LONGEST_PROGRAM] for block in python or [block for _, block in found]][-MOST_BLOCKS:]
    while sum(map(len, kept)) > LONGEST_PROGRAM:
        del kept[0]
    return kept


def _undoctested(block: str) -> str:
    """An interactive session as the program typed into it."""
    if not block.lstrip().startswith(">>> "):
        return block
    typed = [line.strip() for line in block.split("\n")]
    return "\n".join(line[4:] for line in typed if line.startswith((">>> ", "... ")))


def _complete(text: str, blocks: list[str]) -> Iterator[str]:
    """Candidates for a program that stands on its own, the most trustworthy first."""
    dedented = [textwrap.dedent(block) for block in blocks]
    parsable = [block for block in dedented if parse(block)]
    if parsable:
        yield "\n\n".join(parsable)
    yield "\n\n".join(filter(None, map(_salvaged, dedented[-MOST_BROKEN:])))
    inline = INLINE_FENCE.split(text)
    if len(inline) > 1:
        yield "\n\n".join(filter(parse, map(textwrap.dedent, inline[1::2])))
    indented = "\n".join(_indented_program(text))
    for candidate in dict.fromkeys([text, indented, text.replace("\u00a0", " ").replace("\u3000", " ")]):
        if [candidate] != dedented:
            yield _salvaged(candidate)


def _salvaged(text: str) -> str:
    """The top-level statements in a text that parse, without the prose between them.

    A statement runs from a line at the margin that looks like code to the next such line; where that does not
    parse alone (decorators, strings with lines at the margin), it is continued.
    """
    if parse(text):
        return text
    chunks: list[list[str]] = []
    for line in text.split("\n")[:SALVAGE_LINES]:
        if CONTINUATION.match(line) and chunks:
            chunks[-1].append(line)
        elif not CONTINUATION.match(line):
            chunks.append([line])
    kept, pending = [], []
    for chunk in chunks:
        source = "\n".join(chunk)
        is_start = CODE_START.match(chunk[0])
        if not pending and not is_start:
            continue
        joined = "\n".join([*pending, source])
        if parse(joined):
            kept.append(joined)
            pending = []
        elif is_start and parse(source):
            kept.append(source)
            pending = []
        else:
            pending = [*pending, source][-8:] if pending or is_start else []
    return "\n".join(kept)


def _indented_program(text: str) -> list[str]:
    """The lines of the first definition that stands indented among prose, moved to the margin."""
    lines = text.split("\n")[:SALVAGE_LINES]
    for number, line in enumerate(lines):
        margin = re.match(r"[ \t]+(?=def |class |import |from |@)", line)
        if margin:
            return [
                following[margin.end() :]
                for following in lines[number:]
                if not following.strip() or following.startswith(margin[0])
            ]
    return []


def _continued(text: str, blocks: list[str], task: CodeReference) -> str | None:
    """The prompt with the answer as the body of its last function."""
    indented = re.search(r"^[ \t]+\S", text, re.MULTILINE)
    bodies = [*blocks[-MOST_BROKEN:], text, text[indented.start() :] if indented else ""]
    best = None
    for body in filter(str.strip, bodies):
        stripped = body.strip("\n")[:LONGEST_BODY]
        for attempt in (stripped, "    " + stripped.lstrip(" "), textwrap.indent(textwrap.dedent(stripped), "    ")):
            program = _parsable_start(task.prompt.rstrip() + "\n" + attempt)
            if program and _has_body(program, task) and (best is None or len(program) > len(best)):
                best = program
        if best:
            return best
    return None


def _parsable_start(source: str) -> str | None:
    """`source` without the lines at its end that keep it from parsing; of a long one only a few are tried."""
    for _ in range(min(LONGEST_CUT, 1 + CUT_CHARACTERS // len(source))):
        try:
            ast.parse(source)
        except SyntaxError as error:
            lines = source.split("\n")
            last = min(error.lineno or 0, len(lines)) - 1
            source = "\n".join(lines[:last])
        except (ValueError, RecursionError, MemoryError):
            return None
        else:
            return source
    return None


def _has_body(source: str, task: CodeReference) -> bool:
    """Whether the entry point does more than its head in the prompt does."""
    length = {}
    for name, text in (("answer", source), ("prompt", task.prompt)):
        tree = parse(text)
        functions = [node for node in tree.body if getattr(node, "name", "") == task.entry_point] if tree else []
        length[name] = len(functions[-1].body) if functions else 0
    return length["answer"] > length["prompt"]


def _with_preamble(source: str, task: CodeReference) -> str:
    """A complete answer after the prompt's imports and helpers; future imports stay first."""
    tree = parse(task.prompt)
    if tree is None:
        return source
    helpers = [text for node, text in segments(task.prompt, tree) if getattr(node, "name", "") != task.entry_point]
    future = [line for line in source.split("\n") if line.startswith("from __future__ ")]
    rest = "\n".join(line for line in source.split("\n") if not line.startswith("from __future__ "))
    return "\n".join([*future, *helpers, rest])


def _sanitized(text: str, entry_point: str) -> str | None:
    """What evalplus' sanitizer makes of a short text, if it then defines the entry point."""
    is_short = text.count("\n") <= SANITIZER_LINES and len(text) <= SANITIZER_CHARACTERS
    if not is_short or not re.search(rf"\b{re.escape(entry_point)}\b", text):
        return None
    try:
        from evalplus.sanitize import sanitize

        program = sanitize(text, entry_point)
    except (ImportError, *UNREADABLE):
        return None
    return program if entry_point in bound_names(program) else None


def _looks_like_code(text: str) -> bool:
    """Whether a text that defines nothing of use is an attempt at a program rather than prose."""
    return re.search(r"^[ \t]*(?:def|class|import|from|return|for|while|if)\b|=", text, re.MULTILINE) is not None
