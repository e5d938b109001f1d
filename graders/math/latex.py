r"""One spelling for short LaTeX answers that say the same thing.

The usual normalization of MATH answers in our own words: what changes the look and not the value goes away or gets
one form. It is about notation, not about algebra: `2x` and `x \cdot 2`, `1,-2` and `-2,1`, `1.8` and `9/5` stay
different. Answers longer than `LONGEST` keep their spelling, so no rule here ever works on a long text.

    layout      \left \right \! \, \; \quad $...$ \displaystyle, blanks, a final period
    spelling    \dfrac \tfrac -> \frac, \frac12 -> \frac{1}{2}, \sqrt3 -> \sqrt{3}, x^{2} -> x^2, -1/3 -> -\frac{1}{3},
                \frac{-1}{3} -> -\frac{1}{3}, \leq -> \le, bmatrix -> pmatrix, Unicode symbols -> commands
    lists       1 \text{ or } 2 -> 1,2
    numbers     10,\!080 -> 10080, .50 -> 0.5, 5.0 -> 5, and 0.5 -> \frac{1}{2} where it is the whole answer
    units       degrees, currency, percent, text behind a value: 5.4 \text{ cents} -> 5.4
    names       x = 5 -> 5, x \in [1,2] -> [1,2], \text{Evelyn} -> evelyn, (C) -> C
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

LONGEST = 2_000
ROW_END = "\x01"  # stands for a double backslash, whose second half would look like the start of a command
SYMBOLS = {
    "\u2212": "-",
    "\u00d7": r"\times ",
    "\u00b7": r"\cdot ",
    "\u03c0": r"\pi ",
    "\u03b8": r"\theta ",
    "\u221e": r"\infty ",
    "\u221a": r"\sqrt ",
    "\u00b1": r"\pm ",
    "\u222a": r"\cup ",
    "\u2229": r"\cap ",
    "\u2208": r"\in ",
    "\u2264": r"\le ",
    "\u2265": r"\ge ",
    "\u2260": r"\ne ",
    "\u00b0": r"^\circ",
    "\u00bd": r"\frac12 ",
    "\u00a0": " ",
    "\u2009": " ",
    "\u3000": " ",
    "\u2205": r"\emptyset ",
    ROW_END: "",
} | {chr(code + 0xFEE0): chr(code) for code in range(0x21, 0x7F)}  # full-width forms
TRANSLATION = str.maketrans(SYMBOLS)

Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]


def _rules(*pairs: tuple[str, str | Callable[[re.Match[str]], str]]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern), replacement) for pattern, replacement in pairs)


def _power(superscripts: re.Match[str]) -> str:
    return "^{" + unicodedata.normalize("NFKC", superscripts[0]).replace("\u2212", "-") + "}"


TEXT = r"\\(?:text|textrm|mbox|mathrm|rm)"
UNIT = (  # what may stand behind a value without changing it
    r"(?!\s*(?:pi|sqrt|root|plus|minus|times|squared|cubed|factorial|hundred|thousand|[mbtr]+illion)(?![a-z]))"
    r"(?![^{}]*(?<![a-z])(?:not|or|and|than)(?![a-z]))"
)
BEFORE_BRACES = _rules(
    ("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207b]+", _power),
    (r"\\(?:boldsymbol|bm|pmb|underline)(?![a-zA-Z])|\*\*|\\#|[\u00a2\u00a3\u20ac]", ""),
    (r"\\(?:textcolor|color|[hv]?phantom|[hv]space\*?) ?\{[^{}]*\}", " "),
    (r"\\(?:left|right|displaystyle|textstyle|limits|[bB]igg?[lr]?)(?![a-zA-Z])", ""),
    (r"\\[!,;:>]|\\q?quad(?![a-zA-Z])|~|\\ |\\[()\[\]]", " "),
    (r"\\[dtc](frac|binom)(?![a-zA-Z])", r"\\\1"),
    (r"\^ ?\{? ?\\circ ?\}?|\\degree(?![a-zA-Z])", ""),
    (r"\\?[$%]|\\(?:pounds|euro)(?![a-zA-Z])", ""),
    (r"\{([,:])\}", r"\1"),
    (r"\\(?:leq|leqslant|leqq)(?![a-zA-Z])", r"\\le"),
    (r"\\(?:geq|geqslant|geqq)(?![a-zA-Z])", r"\\ge"),
    (r"\\neq(?![a-zA-Z])", r"\\ne"),
    (r"\\lbrace(?![a-zA-Z])", r"\\{"),
    (r"\\rbrace(?![a-zA-Z])", r"\\}"),
    (r"\\varnothing(?![a-zA-Z])", r"\\emptyset"),
    (r"[(\[]\s*\\begin ?\{array\} ?\{[clr| ]*\}", r"\\begin{pmatrix}"),
    (r"\\end ?\{array\}\s*[)\]]", r"\\end{pmatrix}"),
    (r"\{[bB]matrix\}", "{pmatrix}"),
    (rf",?\s*{TEXT} ?\{{,?\s*(?:and|or)\s*\}}|(?<=[\d}}]),?\s+(?:and|or)(?=\s+[-\d\\])", ","),
    (rf"(?<=\S)\s*{TEXT} ?\{{{UNIT}[^{{}}!]*\}} ?(?:\^ ?\{{?\d\}}?)?\s*\.?\s*$", ""),
    (r"\\(?:text|textrm|textbf|textit|mbox|mathrm|mathbf|mathbb|mathcal|operatorname) ?\{([^{}]*)\}", r"\1"),
    (rf"(?<=[\d}}]) +{UNIT}[A-Za-z]{{2,}}(?: +[A-Za-z]+)*(?:\^\{{?\d\}}?)?\s*\.?\s*$", ""),  # 12 inches
)
NUMERATOR = r"\d*\\pi|\d*\\sqrt\{[^{}]*\}|\d+|[a-z]"
AFTER_BRACES = _rules(
    (r"\s+", ""),
    (r"(?<=.)\.$", ""),
    (r"^(?:m?\\angle)?[a-zA-Z]+(?:_\{?\w\}?)?(?:\([a-zA-Z]\))?(?:=|\\in(?![a-zA-Z]))(?=.)", ""),
    (r"^-?\d{1,3}(?:,\d{3})+(?![\d,])", lambda number: number[0].replace(",", "")),
    (r"(?<![\d}])\.(?=\d)", "0."),
    (r"(\d\.\d*?)0+(?!\d)", r"\1"),
    (r"(?<=\d)\.(?!\d)", ""),
    (r"([_^])\{(\w)\}", r"\1\2"),
    (rf"(?<![\w\\^])(?:(?<!\}})|(?<=matrix\}}))({NUMERATOR})/(\d+)(?![\w(]|\\(?!end))", r"\\frac{\1}{\2}"),
    (r"(?<![\w\\^)}])\(([^()]+)\)/(\d+)(?![\w(])", r"\\frac{\1}{\2}"),
    (r"\\frac\{-([^{}+-]+)\}", r"-\\frac{\1}"),
    (r"(\\frac\{[^{}]+\})\{-([^{}+-]+)\}", r"-\1{\2}"),
    (r"\\(?:cdot|times)(?=[\\a-zA-Z(])|(?<=[\d)])\*(?=[\\a-zA-Z(])", ""),
    (r"--", ""),
    (r"\+-", "-"),
    (r"(?<![^(\[{,])\+", ""),
    (r"^0\.5$", r"\\frac{1}{2}"),
    (r"^-0$", "0"),
    (r"^\(([A-Z])\)$", r"\1"),
)
COMMAND = re.compile(r"\\(?:frac|sqrt|binom)(?![a-zA-Z])")
ARGUMENT = re.compile(r"\\[a-zA-Z]+|[0-9a-zA-Z]")
RADICAND = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|[a-zA-Z]")
WORD = re.compile(r"[A-Za-z]{3,}|[Nn][Oo]")  # shorter ones are names of points and choices


def canonical(answer: str) -> str:
    """The one spelling of an answer that equal answers share; long answers only lose their blanks."""
    if len(answer) > LONGEST:
        return "".join(answer.split())
    text = answer.translate(TRANSLATION).replace(r"\\", ROW_END).strip().strip("$").strip()
    for pattern, replacement in BEFORE_BRACES:
        text = pattern.sub(replacement, text)
    text = _braced(text)
    for pattern, replacement in AFTER_BRACES:
        text = pattern.sub(replacement, text)
    text = _unwrapped(text).replace(ROW_END, r"\\")
    return text.lower() if WORD.fullmatch(text) else text


def _braced(text: str) -> str:
    r"""`text` with braces around every argument of `\frac`, `\binom` and `\sqrt`."""
    closing = _closing_braces(text)
    inserts: list[tuple[int, str]] = []
    for command in COMMAND.finditer(text):
        is_root = command[0] == r"\sqrt"
        place = _skip_blanks(text, command.end())
        if is_root and text.startswith("[", place):
            place = _skip_blanks(text, text.find("]", place) + 1 or len(text))
        for _ in range(1 if is_root else 2):
            if text.startswith("{", place):
                place = _skip_blanks(text, closing.get(place, len(text)) + 1)
                continue
            argument = (RADICAND if is_root else ARGUMENT).match(text, place)
            if argument is None:
                break
            inserts += [(argument.start(), "{"), (argument.end(), "}")]
            place = _skip_blanks(text, argument.end())
    pieces, end = [], 0
    for place, brace in sorted(inserts, key=lambda insert: insert[0]):
        pieces += [text[end:place], brace]
        end = place
    return "".join([*pieces, text[end:]])


def _closing_braces(text: str) -> dict[int, int]:
    """Position of the closing brace for every opening one that has it."""
    closing, opened = {}, []
    for brace in re.finditer(r"\\.|[{}]", text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            closing[opened.pop()] = brace.start()
    return closing


def _skip_blanks(text: str, place: int) -> int:
    while text.startswith(" ", place):
        place += 1
    return place


def _unwrapped(text: str) -> str:
    """`text` without braces that enclose all of it."""
    while text.startswith("{") and _closing_braces(text).get(0) == len(text) - 1:
        text = text[1:-1]
    return text
