r"""What a short LaTeX answer says, whatever its spelling.

The usual normalization of MATH answers in our own words: what changes the look and not the value goes away or gets
one form. It is about notation, not about algebra: `2x` and `x \cdot 2`, `1,-2` and `-2,1`, `1.8` and `9/5` stay
different. Answers longer than `LONGEST` keep their spelling, so no rule here ever works on a long text.

    layout      \left \right \! \, \; \quad $...$ \displaystyle, fonts, blanks, a final period, spacing of rows
    spelling    \dfrac \tfrac -> \frac, \frac12 -> \frac{1}{2}, \sqrt3 -> \sqrt{3}, x^{2} -> x^2, -1/3 -> -\frac{1}{3},
                \frac{-1}{3} -> -\frac{1}{3}, \leq -> \le, bmatrix -> pmatrix, Unicode symbols -> commands
    lists       1 \text{ or } 2 -> 1,2
    numbers     10,\!080 -> 10080, .50 -> 0.5, 5.0 -> 5, 2 \text{ million} -> 2000000,
                0.3\overline{3} -> 0.\overline{3}, and 0.5 -> \frac{1}{2} where it is the whole answer
    products    2 \cdot \sqrt{5} -> 2\sqrt{5}, but 2 \cdot \frac{1}{2} stays a product and is no mixed number
    apart       units (degrees, currency, percent, text behind a value) and names (x = 5, x \in [1,2]), which one of two
                answers may lack; \text{Evelyn} -> evelyn, (C) -> C
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from graders.math.layout import LIST, ROW_END, UPRIGHT_FONT, closing_braces, one_layout, without_fonts
from graders.math.units import SIGNS, Unit, agree, scale, unit_of

LONGEST = 2_000

Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]


@dataclass(frozen=True)
class Answer:
    """What an answer says.

    Attributes:
      spelling: the one spelling of its value.
      unit: what it is measured in, if it says so.
      name: what it is an answer for (`x`, `f(x)`), if it says so.
    """

    spelling: str
    unit: Unit = frozenset()
    name: str = ""


def canonical(answer: str) -> str:
    """The one spelling of an answer's value that equal answers share; long answers only lose their blanks."""
    return read(answer).spelling


def is_same(answer: str, gold: str) -> bool:
    """Whether an answer says what the reference says: the same value, and neither another unit nor another name.

    Where the reference is a product of numbers (`2 \\cdot \\frac{1}{2}`), its value is right as well.
    """
    given, expected = read(answer), read(gold)
    if not agree(given.unit, expected.unit) or (given.name and expected.name and given.name != expected.name):
        return False
    if given.spelling == expected.spelling:
        return True
    product = _product(expected.spelling)
    return product is not None and _number(given.spelling) == product


def read(answer: str) -> Answer:
    """An answer taken apart; one that is too long for that only loses its blanks."""
    if len(answer) > LONGEST:
        return Answer("".join(answer.split()))
    text, unit = _without_units(one_layout(answer))
    text = _apply(SPELLINGS, text)
    text, behind = _without_words(text)
    text = _braced(_apply(COMMANDS, without_fonts(text, UPRIGHT_FONT)))
    text = _grouped("".join(text.split()))
    name, text = _named(text)
    text = _unwrapped(_apply(NUMBERS, text)).replace(LIST, ",").replace(ROW_END, r"\\")
    return Answer(text.lower() if WORD.fullmatch(text) else text, unit | behind, name)


def _rules(*pairs: tuple[str, str | Callable[[re.Match[str]], str]]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern), replacement) for pattern, replacement in pairs)


def _apply(rules: tuple[Rule, ...], text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def _power(superscripts: re.Match[str]) -> str:
    return "^{" + unicodedata.normalize("NFKC", superscripts[0]).replace("\u2212", "-") + "}"


def _scaled(match: re.Match[str]) -> str:
    """A number with a word that multiplies it, as a number: `2 \\text{ million}`, `2 thirds`."""
    factor = scale(match["word"])
    if factor is None:
        return match[0]
    number = Fraction(match["number"].replace(",", "").replace("{}", "")) * factor
    if factor < 1 and number.denominator != 1:
        numerator = Fraction(match["number"].replace(",", "").replace("{}", ""))
        if numerator.denominator != 1:
            return match[0]
        spelled = rf"\frac{{{numerator}}}{{{1 / factor}}}"
    else:
        spelled = str(number) if number.denominator == 1 else match[0]
    return f"{spelled} {match['open'] or ''}{match['rest'] or ''}"


TEXT = r"\\(?:text|textrm|mbox|mathrm|rm)"
FUNCTIONS = "arc(?:sin|cos|tan)|sinh|cosh|tanh|sin|cos|tan|sec|csc|cot|ln|log|exp|lim|max|min|gcd|lcm|det|deg"
UNIT = (  # what may stand behind a value without changing it
    r"(?!\s*(?:\\?pi|i|e|sqrt|root|plus|minus|times|squared|cubed|factorial|hundred|thousand|[mbtr]+illion)(?![a-zA-Z]))"
    r"(?!\s*(?:half|halves|thirds?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|(?:ten|hundred|thousand)ths?)(?![a-z]))"
    r"(?![^{}]*(?<![a-z])(?:not|or|and|than)(?![a-z]))"
)
GLUED = "cm|mm|km|kg|mg|ml|mL|ft|lbs?|mph|hrs?|mins?|secs?|AM|PM|am|pm"
SPELLINGS = _rules(
    ("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207b]+", _power),
    ("((?:\\d\u0305)+)", lambda bar: rf"\overline{{{bar[0].replace(chr(0x305), '')}}}"),
    (rf"{TEXT} ?\{{\s*(\\?pi|[ie])\s*\}}", r"\1 "),
    (r"(?<![a-zA-Z\\])pi(?![a-zA-Z])", r"\\pi "),
    (r"\\uppi(?![a-zA-Z])", r"\\pi"),
    (rf"\\(?:text|textrm|mathrm|operatorname\*?|mathop) ?\{{\s*({FUNCTIONS})\s*\}}", r"\\\1 "),
    (
        rf"(?<![\w.,}}])(?P<number>\d[\d,]*(?:\.\d+)?)\s*-?(?P<open>{TEXT} ?\{{)?\s*(?P<word>[A-Za-z]{{4,11}})"
        r"(?![A-Za-z])(?P<rest>[^{}]*\})?",
        _scaled,
    ),
    (rf"{TEXT} ?\{{\s*\}}", ""),
    (rf"[,{LIST}]?\s*{TEXT} ?\{{,?\s*(?:and|or)\s*\}}", LIST),
    (rf"(?<=[\d}}])[,{LIST}]?\s*(?<=[\s{LIST}])(?:and|or)(?=\s+[-\d\\a-z])", LIST),
)
BEHIND = re.compile(rf"(?<=\S)\s*{TEXT} ?\{{({UNIT}[^{{}}!]*)\}} ?(?:\^ ?\{{?\d\}}?)?\s*\.?\s*$")
PLAIN = re.compile(
    rf"(?:(?<=[\d}}]) +|(?<=\d)(?=(?:{GLUED})(?![A-Za-z])))({UNIT}[A-Za-z]{{2,}}(?:(?: +| ?/ ?)[A-Za-z]+)*)"
    r"(?:\^\{?\d\}?)?\s*\.?\s*$"
)
MERIDIEM = re.compile(r"(?<=\d)\s*([aApP]\.\s?[mM]\.?)\s*$")
COMMANDS = _rules(
    (r"\\[dtcls](frac|binom)(?![a-zA-Z])", r"\\\1"),
    (r"\\(?:bar|dot)(?= ?\{?\d)", r"\\overline"),
    (r"\\(?:leq|leqslant|leqq)(?![a-zA-Z])", r"\\le"),
    (r"\\(?:geq|geqslant|geqq)(?![a-zA-Z])", r"\\ge"),
    (r"\\neq(?![a-zA-Z])", r"\\ne"),
    (r"\\varnothing(?![a-zA-Z])", r"\\emptyset"),
    (r"\\times(?![a-zA-Z])|(?<=[\w)}])\s*\*\s*(?=[\\\w(])", r"\\cdot "),
    (r"(?<![\w.,}/])(\d+) +(\d+) ?/ ?(\d+)(?![\w/])", r"\1\\frac{\2}{\3}"),  # a mixed number
)
NUMERATOR = r"\d*\\pi|\d*\\sqrt\{[^{}]*\}|\d+|[a-z]"
BAR = r"\\overline"
NUMBERS = _rules(
    (r"(?<=.)\.$", ""),
    (rf"(?<![\d}}])\.(?=\d|{BAR})", "0."),
    (rf"(\d*\.\d*){BAR}\{{(\d+)\}}", lambda number: _recurring(number[1], number[2])),
    (rf"(\d\.\d*?)0+(?!\d|{BAR})", r"\1"),
    (rf"(?<=\d)\.(?!\d|{BAR})", ""),
    (r"([_^])\{(\w)\}", r"\1\2"),
    (rf"(?<![\w\\^])(?:(?<!\}})|(?<=matrix\}}))({NUMERATOR})/(\d+)(?![\w(]|\\(?!end))", r"\\frac{\1}{\2}"),
    (r"(?<![\w\\^)}])\(([^()]+)\)/(\d+)(?![\w(])", r"\\frac{\1}{\2}"),
    (r"\\frac\{-([^{}+-]+)\}", r"-\\frac{\1}"),
    (r"(\\frac\{[^{}]+\})\{-([^{}+-]+)\}", r"-\1{\2}"),
    (r"(?<!\d)\\cdot(?=[\\a-zA-Z(])|\\cdot(?=(?!\\frac)[\\a-zA-Z(])", ""),
    (r"--", ""),
    (r"\+-", "-"),
    (rf"(?<![^(\[{{,{LIST}])\+", ""),
    (r"^0\.5$", r"\\frac{1}{2}"),
    (r"^-0$", "0"),
    (r"^\(([A-Z])\)$", r"\1"),
)
NAME = re.compile(r"((?:m?\\angle)?\\?[a-zA-Z]+'?(?:_\{?\w+\}?)?(?:\([a-zA-Z]\))?)(?:=|\\in(?![a-zA-Z]))(?=.)")
GROUPS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
BRACKETS = re.compile(r"\\[{}]|[()\[\]]")
COMMAND = re.compile(r"\\(?:frac|sqrt|binom|overline)(?![a-zA-Z])")
ARGUMENT = re.compile(r"\\[a-zA-Z]+|[0-9a-zA-Z]")
RADICAND = re.compile(r"\\[a-zA-Z]+|\d+(?:\.\d+)?|[a-zA-Z]")
WORD = re.compile(r"[A-Za-z]{3,}|[Nn][Oo]")  # shorter ones are names of points and choices
FACTOR = r"-?(?:\d+(?:\.\d+)?(?!\\frac)|\\frac\{\d+\}\{\d+\})"
PRODUCT = re.compile(rf"{FACTOR}(?:(?:\\cdot|(?<=\}})(?=\\)){FACTOR})+")
NUMBER = re.compile(r"(-?)(\d+(?:\.\d+)?)?(?:\\frac\{(\d+)\}\{(\d+)\})?")
SIGN_UNITS = (
    (re.compile(r"\^ ?\{? ?\\circ ?\}?|\\(?:degree|deg)(?![a-zA-Z])"), "degree"),
    (re.compile(r"\\?%"), "percent"),
    (re.compile(r"\\\$|\\textdollar(?![a-zA-Z])"), "dollar"),
    (re.compile(r"\\(?:text)?cent(?![a-zA-Z])"), "cent"),
    (re.compile(r"\\(?:text)?euro(?![a-zA-Z])"), "euro"),
    (re.compile(r"\\(?:text)?(?:pounds|sterling)(?![a-zA-Z])"), "pound"),
    *((re.compile(re.escape(sign)), name) for sign, name in SIGNS.items() if sign != "$"),
)


def _without_units(text: str) -> tuple[str, Unit]:
    """`text` without signs of units, and what they name; an unpaired dollar is money, a pair encloses mathematics."""
    unit: set[str] = set()
    for sign, name in SIGN_UNITS:
        text, times = sign.subn("", text)
        unit |= {name} if times else set()
    if text.count("$") % 2:
        unit.add("dollar")
    return text.replace("$", ""), frozenset(unit)


def _without_words(text: str) -> tuple[str, Unit]:
    """`text` without the words of a unit behind its value, and the unit."""
    unit: Unit = frozenset()
    for pattern in (BEHIND, BEHIND, MERIDIEM, PLAIN):
        found = pattern.search(text)
        if found:
            text, unit = text[: found.start()], unit | unit_of(found[1])
    return text, unit


def _named(text: str) -> tuple[str, str]:
    """The name an answer begins with, and the answer without it, in each entry of a list."""
    found = NAME.match(text)
    if not found:
        return "", text
    name = found[1]
    rest = re.sub(rf"(?<=[,{LIST}]){re.escape(name)}=", "", text[found.end() :])
    return re.sub(r"[{}]", "", name).removeprefix("m"), rest


def _grouped(text: str) -> str:
    """`text` without the commas that group thousands.

    Within brackets a bare comma separates, unless the entries there are separated by commas with a blank.
    """
    brackets = list(BRACKETS.finditer(text))
    opened: list[int] = []
    inside: list[tuple[int, int]] = []
    for bracket in brackets:
        if bracket[0][-1] in "([{":
            opened.append(bracket.start())
        elif opened:
            inside.append((opened.pop(), bracket.end()))

    def without_commas(number: re.Match[str]) -> str:
        around = [span for span in inside if span[0] < number.start() < span[1]]
        innermost = max(around, default=None)
        if innermost and LIST not in text[slice(*innermost)]:
            return number[0]
        return number[0].replace(",", "")

    return GROUPS.sub(without_commas, text)


def _recurring(before: str, period: str) -> str:
    """A recurring decimal with the shortest period, as early as it can begin."""
    length = next(n for n in range(1, len(period) + 1) if period == period[:n] * (len(period) // n))
    period = period[:length]
    whole, _, part = before.partition(".")
    while part and part[-1] == period[-1]:
        part, period = part[:-1], period[-1] + period[:-1]
    return f"{whole}.{part}" + ("" if period == "0" else rf"\overline{{{period}}}")


def _product(spelling: str) -> Fraction | None:
    """The value of a product of numbers with a fraction in it; None for all else."""
    if not PRODUCT.fullmatch(spelling) or r"\frac" not in spelling:
        return None
    value = Fraction(1)
    for factor in re.findall(FACTOR, spelling):
        number = _number(factor)
        if number is None:
            return None
        value *= number
    return value


def _number(spelling: str) -> Fraction | None:
    """The value of a number: whole, decimal, a fraction or mixed."""
    found = NUMBER.fullmatch(spelling)
    if not found or not (found[2] or found[3]) or (found[4] and int(found[4]) == 0):
        return None
    value = Fraction(found[2] or 0) + (Fraction(int(found[3]), int(found[4])) if found[3] else 0)
    return -value if found[1] else value


def _braced(text: str) -> str:
    r"""`text` with braces around every argument of `\frac`, `\binom`, `\sqrt` and `\overline`."""
    closing = closing_braces(text)
    inserts: list[tuple[int, str]] = []
    for command in COMMAND.finditer(text):
        is_root = command[0] == r"\sqrt"
        place = _skip_blanks(text, command.end())
        if is_root and text.startswith("[", place):
            place = _skip_blanks(text, text.find("]", place) + 1 or len(text))
        for _ in range(1 if is_root or command[0] == r"\overline" else 2):
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


def _skip_blanks(text: str, place: int) -> int:
    while text.startswith(" ", place):
        place += 1
    return place


def _unwrapped(text: str) -> str:
    """`text` without braces that enclose all of it."""
    while text.startswith("{") and closing_braces(text).get(0) == len(text) - 1:
        text = text[1:-1]
    return text
