r"""Numbers as people and models write them, and their exact values.

Reads thousands separators, currency, units, percent, decimals, fractions, mixed numbers, full-width and other
Unicode digits, and LaTeX around them. Words ("eighteen", "million"), powers and scientific notation are not
numbers here. Every step is linear in the length of the text: digit strings are only handed to `int` when they
are short, and nothing is ever evaluated.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
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
MARKUP = (
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\[dt]?frac ?\{([^{}]{1,200})\} ?\{([^{}]{1,200})\}"), r" \1/\2 "),
    (re.compile(r"\\frac ?(\d) ?(\d)"), r" \1/\2 "),
    (re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|textit|operatorname)\b|\\!|\\left|\\right"), ""),
    (re.compile(r"\\approx|\\simeq"), "="),
    (re.compile(r"\^ ?\{?\\circ\}?"), " "),
    (re.compile(r"([A-Za-z]\}?)\^ ?\{?\d\}?"), r"\1 "),  # m^2 is a unit, not a second number
    (re.compile(r"\\([$%])"), r"\1"),
    (re.compile(r"\\[A-Za-z]+|\\."), " "),
    (re.compile(r"[{}*]"), " "),
    (re.compile(r"(?<![\d.,])(\d{1,3})((?: \d{3})+)(?![\d,])"), lambda m: m[1] + m[2].replace(" ", "")),
)
FRACTION = re.compile(r"(?:(\d{1,100}) +)?(\d{1,100}) ?/ ?(\d{1,100})(?![\d/])")

Value = Fraction | str
"""An exact rational, or the canonical digits of a number too long to be worth one."""


def value(expression: str) -> Value | None:
    """What a short expression that states one number is worth.

    Of a chain of equations the last member counts. Text in parentheses is ignored if there is a number outside.

    Args:
      expression: content of a box, a data set's gold answer, and the like.

    Returns:
      The value, or None where the expression holds no number or more than one.
    """
    if len(expression) > LONGEST_EXPRESSION:
        return None
    plain = expression.translate(LOOKALIKES)
    for pattern, replacement in MARKUP:
        plain = pattern.sub(replacement, plain)
    plain = plain.rpartition("=")[2].strip()
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
