r"""Numbers as people and models write them, and their exact values.

Reads thousands separators, currency, units, percent, decimals, fractions, mixed numbers, powers of ten ("2 million",
`3 \times 10^4`), full-width and other Unicode digits, and LaTeX around them. Numbers in words ("eighteen") and what
would have to be worked out (a root, a factorial, an inequality) are not numbers here. Every step is linear in the
length of the text: digit strings are only handed to `int` when they are short, and nothing is ever evaluated.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from decimal import Decimal
from fractions import Fraction

LONGEST_EXPRESSION = 20_000  # characters; longer "numbers" are no numbers
LONGEST_EXACT = 400  # digits; longer ones are compared as digit strings
WINDOW = 65_536  # characters looked at around the last digit of a text

LOOKALIKES = str.maketrans(
    dict.fromkeys("\u2212\u2010\u2011\ufe63\uff0d", "-")
    | dict.fromkeys("\u00a0\u2009\u202f\u3000~", " ")
    | dict(zip("\uff0c\uff0e\uff04\uff05\uff0f\u2044\uff1d\u2248", ",.$%//==", strict=True))
)
NUMERAL = re.compile(r"([-+] ?)?(?:\$ ?)?([-+])?(\d[\d,]*(?:\.\d+)?|\.\d+)")
FRACTION = re.compile(r"(?:(\d{1,100}) +)?(\d{1,100}) ?/ ?(\d{1,100})(?![\d/])")
GROUPS = re.compile(r"(?<![\d.,])(\d{1,3})((?:[ '\u2019]\d{3})+)(?![\d,])")
VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e]")
SCALED = re.compile(
    r"""(?<![\d.,])(\d{1,12}(?:,\d{3})*(?:\.\d{1,12})?)
    (?: (?:\ *(?:\\times|\\cdot|\*|\u00d7)\ *10\ *\^\ *|e) ([-+]?\d{1,2}) (?!\d)
      | (?:(k)|\ *(hundred|thousand|million|billion|trillion)s?) (?![A-Za-z]) )""",
    re.IGNORECASE | re.VERBOSE,
)
POWERS = {"k": 3, "hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
OPERATION = re.compile(
    r"""\\(?:[dtc]?frac(?=\ *-?\d)|sqrt|log|ln|exp|pi|neq?|geq?|leq?|gt|lt|cdot|times|int|sum|prod|overline|bar|binom
        |pm) (?![A-Za-z])
    | (?<![-=])[<>] | [\u2264\u2265\u2260\u221a\u03c0\u00b1\u00d7\u222b]
    | \d\ *! | \^\ *-?\d | _\ *\d | -[\ (]*- | \d\ *\+\ *$
    | \b(?:not|twice|half\ of|and\ a\ half|squared|cubed|wrong|incorrect)\b""",
    re.VERBOSE,
)
UNWORKED = "\x01"  # stands for an operation


def _decimal(scaled: re.Match[str]) -> str:
    """A number with its power of ten, an exponent or a word, as one decimal."""
    power = int(scaled[2]) if scaled[2] else POWERS[(scaled[3] or scaled[4]).lower()]
    return f"{Decimal(scaled[1].replace(',', '')).scaleb(power):f}"


def _spelled(vulgar: re.Match[str]) -> str:
    return " " + unicodedata.normalize("NFKC", vulgar[0]).translate(LOOKALIKES)


MARKUP = (
    (VULGAR, _spelled),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\[dtc]?frac ?\{([^{}]{1,200})\} ?\{([^{}]{1,200})\}"), r" \1/\2 "),
    (re.compile(r"\\[dtc]?frac ?(\d) ?(\d)"), r" \1/\2 "),
    (re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|textit|operatorname)\b|\\!|\\left|\\right"), ""),
    (re.compile(r"\\approx|\\simeq"), "="),
    (re.compile(r"\^ ?\{?\\circ\}?"), " "),
    (re.compile(r"([A-Za-z]\}?)\^ ?\{?\d\}?"), r"\1 "),  # m^2 is a unit, not a second number
    (re.compile(r"\\([$%])"), r"\1"),
    (re.compile(r"[{}]"), " "),
    (SCALED, _decimal),
    (OPERATION, UNWORKED),
    (re.compile(r"\\[A-Za-z]+|\\.|\*"), " "),
    (GROUPS, lambda number: number[1] + re.sub(r"\D", "", number[2])),
)

Value = Fraction | str
"""An exact rational, or the canonical digits of a number too long to be worth one."""


def value(expression: str) -> Value | None:
    """What a short expression that states one number is worth.

    Of a chain of equations the last member counts. Text in parentheses is ignored if there is a number outside.

    Args:
      expression: content of a box, a data set's gold answer, and the like.

    Returns:
      The value, or None where the expression holds no number, more than one, or something to work out.
    """
    if len(expression) > LONGEST_EXPRESSION:
        return None
    plain = expression.translate(LOOKALIKES)
    for pattern, replacement in MARKUP:
        plain = pattern.sub(replacement, plain)
    plain = plain.rpartition("=")[2].strip()
    if UNWORKED in plain:
        return None
    for candidate in (plain, re.sub(r"\([^()]*\)", " ", plain)):
        stated = _stated(candidate)
        if stated is not None:
            return stated
    return None


def final_numeral(text: str) -> str | None:
    """The last numeral in running text, as written; behind the last `####` the first one.

    A minus sign counts where it cannot be a hyphen or a subtraction.
    """
    marked = text.rpartition("####")
    if marked[1]:
        found = NUMERAL.search(marked[2][:WINDOW].translate(LOOKALIKES))
        if found:
            return _signed(found)
    last = deque(NUMERAL.finditer(_around_last_digit(text).translate(LOOKALIKES)), maxlen=1)
    return _signed(last[0]) if last else None


def _stated(plain: str) -> Value | None:
    """The value of `plain` if it holds exactly one number, possibly a fraction."""
    fraction = FRACTION.search(plain)
    if fraction:
        rest = plain[: fraction.start()] + plain[fraction.end() :]
        numerals = [fraction[group] for group in (1, 2, 3)]
        if NUMERAL.search(rest) or int(numerals[2]) == 0:
            return None
        whole, over, under = (int(numeral or 0) for numeral in numerals)
        is_negative = plain[: fraction.start()].rstrip(" $").endswith("-")
        return (whole + Fraction(over, under)) * (-1 if is_negative else 1)
    numerals = list(NUMERAL.finditer(plain))
    if len(numerals) != 1 or not _is_grouped(numerals[0][3]):
        return None
    return _exact(_signed(numerals[0]))


def _exact(numeral: str) -> Value:
    """The value of a numeral as `_signed` writes them."""
    whole, _, part = numeral.lstrip("-").partition(".")
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    digits = f"{whole}.{part}" if part else whole
    is_negative = numeral.startswith("-") and digits != "0"
    signed = f"-{digits}" if is_negative else digits
    return Fraction(signed) if len(signed) <= LONGEST_EXACT else signed


def _signed(numeral: re.Match[str]) -> str:
    """A numeral in ASCII without separators; of a comma list ("12,15") the last member."""
    digits = numeral[3].rstrip(",")
    digits = digits.replace(",", "") if _is_grouped(digits) else digits.rpartition(",")[2]
    if not digits.isascii():
        digits = "".join(digit if digit == "." else str(unicodedata.decimal(digit)) for digit in digits)
    sign = (numeral[1] or "").strip()
    before = numeral.string[: numeral.start()][-2:]
    if sign and (numeral[1].endswith(" ") or before[-1:] != " "):
        operand = before.rstrip()[-1:]
        sign = "" if operand.isalnum() or operand in set(")]%$") else sign
    return "-" + digits if "-" in (sign, numeral[2]) else digits


def _is_grouped(digits: str) -> bool:
    """Whether the commas in `digits` separate thousands (or Indian lakhs) and nothing else."""
    first, *groups = digits.rstrip(",").partition(".")[0].split(",")
    if not groups:
        return True
    return len(first) <= 3 and len(groups[-1]) == 3 and all(len(group) in (2, 3) for group in groups)


def _around_last_digit(text: str) -> str:
    """A stretch of `text` that ends after its last digit, at most two windows long."""
    for start in range((len(text) - 1) // WINDOW * WINDOW, -1, -WINDOW):
        if re.search(r"\d", text[start : start + WINDOW]):
            return text[max(0, start - WINDOW) : start + WINDOW]
    return ""
