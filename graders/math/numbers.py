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

from graders.math.layout import PLAIN_FONT, UPRIGHT_FONT, without_fonts
from graders.math.units import scale

LONGEST_EXPRESSION = 20_000  # characters; longer "numbers" are no numbers
LONGEST_EXACT = 400  # digits; longer ones are compared as digit strings
ANY_DIGIT = re.compile("[\\d\u00bc-\u00be\u2150-\u215e]")
WINDOW = 65_536  # characters looked at around the last digit of a text

MINUS = "\u2212\u2010\u2011\u2012\u2013\u2014\u2015\u02d7\u2796\ufe58\ufe63\uff0d"
DASHES = "\u2012\u2013\u2014\u2015"  # those that prose uses between words
BLANKS = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000~"
LOOKALIKES = str.maketrans(
    dict.fromkeys(MINUS, "-")
    | dict.fromkeys(BLANKS, " ")
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", "")
    | dict(zip("\uff0c\uff0e\uff04\uff05\uff0f\u2044\uff1d\u2248", ",.$%//==", strict=True))
)
NUMERAL = re.compile(r"([-+] ?)?(?:\$ ?)?([-+])?(\d[\d,]*(?:\.\d+)?|\.\d+)")
PART = r"[-+]? ?\$?(?:\d[\d,]{0,99}(?:\.\d{1,100})?|\.\d{1,100})"
FRACTION = re.compile(rf"(?<![\d/.,])(?:(\d{{1,100}}) +)?({PART}) ?/ ?({PART})(?![\d/])")
GROUPS = re.compile(r"(?<![\d.,])(\d{1,3})((?:[ '\u2019]\d{3})+)(?![\d,])")
SPACE = r"\\(?:[,;:!> ]|(?:thin|med|thick|negthin|negmed|negthick)space(?![A-Za-z])|q?quad(?![A-Za-z]))"
PROSE_GROUPS = re.compile(rf"(?<![\d.,])\d{{1,3}}(?:(?:[{BLANKS}]|{SPACE}|\{{,\}}|,\\!)\d{{3}})+(?![\d,])")
VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e]")
SCALED = re.compile(
    r"""(?<![\d.,])(\d{1,12}(?:,\d{3})*(?:\.\d{1,12})?)
    (?: (?:\ *(?:\\times|\\cdot|\*|\u00d7)\ *10\ *\^\ *|e) ([-+]?\ *\d{1,2}) (?!\d)
      | (?:(k)|((?:[\ -]*(?:hundred|thousand|million|billion|trillion)s?)+)) (?![A-Za-z]) )""",
    re.IGNORECASE | re.VERBOSE,
)
PARTS = re.compile(
    r"(?<![\d.,/])(\d{1,12})[ -]+(half|halves|(?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|hundredth)s?)\b"
)
POWERS = {"k": 3, "hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
OPERATION = re.compile(
    r"""\\(?:[dtc]?frac(?=\ *-?\d)|sqrt|log|ln|exp|pi|neq?|geq?|leq?|gt|lt|cdot|times|div|int|sum|prod|overline|bar
        |binom|pm) (?![A-Za-z])
    | (?<![-=])[<>] | [\u2264\u2265\u2260\u221a\u03c0\u00b1\u00d7\u222b\u00b7\u22c5\u00f7]
    | \d\ *! | \^\ *-?\d | _\ *\d | -[\ (]*- | \d\ *\+\ *$ | [A-Za-z]\ ?/\ ?\d
    | \b(?:not|twice|half\ of|and\ a\ half|squared|cubed|wrong|incorrect)\b""",
    re.VERBOSE,
)
BEFORE_SIGN = "is|was|are|be|equals|to|of|at|by|about|answer"  # words behind which "minus" is a sign
UNWORKED = "\x01"  # stands for an operation
# Parentheses right behind or before a number multiply; a remark has a word in it.
FACTOR = re.compile(r"[\d)] ?\((?![^()]*[A-Za-z]{2})[^()]*\)|\((?![^()]*[A-Za-z]{2})[^()]*\) ?[\d(]")
BEHIND_LAST = 60  # characters behind the last numeral that may belong to it
BEFORE_LAST = 160


def _decimal(scaled: re.Match[str]) -> str:
    """A number with its power of ten, an exponent or words, as one decimal."""
    words = re.findall(r"[a-z]+", (scaled[3] or scaled[4] or "").lower())
    power = int(scaled[2].replace(" ", "")) if scaled[2] else sum(POWERS[word.removesuffix("s")] for word in words)
    return f"{Decimal(scaled[1].replace(',', '')).scaleb(power):f}"


def _part(parts: re.Match[str]) -> str:
    return f"{parts[1]}/{1 / scale(parts[2])}"


def _spelled(vulgar: re.Match[str]) -> str:
    return " " + unicodedata.normalize("NFKC", vulgar[0]).translate(LOOKALIKES)


ARGUMENT = r"(?: ?\{([^{}]{1,200})\}| ?(\d))"
# Read in prose as well as in a box.
READING = (
    (VULGAR, _spelled),
    (re.compile(r"\{,\}|,\\!"), ","),
    (re.compile(r"\\!|\\negthinspace(?![A-Za-z])"), ""),
    (re.compile(SPACE), " "),
    (re.compile(r"\\[hv]?phantom ?\{[^{}]{0,200}\}"), " "),
    (
        re.compile(rf"\\(?:[dtcs]|nice)?frac{ARGUMENT}{ARGUMENT}"),
        lambda fraction: f" {fraction[1] or fraction[2]}/{fraction[3] or fraction[4]} ",
    ),
    (re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|textit|operatorname)\b|\\left|\\right"), ""),
    (re.compile(r"\\approx|\\simeq"), "="),
    (re.compile(r"\^ ?\{?\\circ\}?"), " "),
    (re.compile(r"([A-Za-z]\}?)\^ ?\{?\d\}?"), r"\1 "),  # m^2 is a unit, not a second number
    (re.compile(r"\\([$%])"), r"\1"),
    (re.compile("[\u20ac\u00a3\u00a5\u20b9]|(?:US|CA|AU|[A-Z]{3} ?)(?=\\$)|\\b(?:USD|EUR|GBP|Rs\\.?) ?(?=\\d)"), ""),
    (re.compile(r"[{}]"), " "),
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r"\b[Nn]egative (?=[$(]?\d)"), "-"),
    (re.compile(rf"(^|[=:(,;*$\n>] ?|\b(?:{BEFORE_SIGN}) |\A )[Mm]inus (?=[$(]?\d)"), r"\1-"),
    (re.compile(r"(?<![\d)%] )(?<![\w)%])- ?\( ?(\$?\d[\d.,]*) ?\)"), r"-\1"),
    (SCALED, _decimal),
    (PARTS, _part),
)
WORKING = (
    (OPERATION, UNWORKED),
    (re.compile(r"\\[A-Za-z]+|\\.|\*"), " "),
    (GROUPS, lambda number: number[1] + re.sub(r"\D", "", number[2])),
    (FACTOR, UNWORKED),
    (re.compile(r" +"), " "),
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
    plain = _applied(WORKING, _reading(expression))
    plain = plain.rpartition("=")[2].strip()
    if UNWORKED in plain:
        return None
    for candidate in (plain, re.sub(r"\([^()]*\)", " ", plain)):
        stated = _stated(candidate)
        if stated is not None:
            return stated
    return None


def final_numeral(text: str) -> str | None:
    """The last number in running text, in ASCII; behind the last `####` the first one.

    A fraction, a mixed number and a number with a word for a power of ten are one number. A minus sign counts where it
    cannot be a hyphen or a subtraction.
    """
    marked = text.rpartition("####")
    if marked[1]:
        found = NUMERAL.search(_prose(marked[2][:WINDOW]))
        if found:
            line_end = found.string.find("\n", found.end())
            line = found.string[: line_end if line_end >= 0 else None]
            if len(line) > BEFORE_LAST + BEHIND_LAST:
                return _signed(found)
            return _number_in(_applied(WORKING[1:3], _reading(line)), is_first=True) or _signed(found)
    last = deque(NUMERAL.finditer(_prose(_around_last_digit(text))), maxlen=1)
    if not last:
        return None
    (found,) = last
    if found.end() - found.start() > BEFORE_LAST:
        return _signed(found)
    before = max(0, found.start() - BEFORE_LAST)
    around = found.string[before : found.end() + BEHIND_LAST]
    if before:
        around = re.sub(r"^\S*", "", around)  # the cut may go through a number
    return _number_in(_applied(WORKING[1:2], _reading(around)), is_first=False) or _signed(found)


def _prose(text: str) -> str:
    """Running text with the digits of each number together, and signs only where a number follows at once."""
    text = PROSE_GROUPS.sub(lambda number: re.sub(r"\D", "", number[0]), text)
    text = re.sub(f"[{DASHES}](?!\\\\?\\$?\\d)", " ", text)
    return VULGAR.sub(_spelled, text.translate(LOOKALIKES))


def _reading(text: str) -> str:
    """`text` without markup, numbers with words for powers of ten written out."""
    plain = text.translate(LOOKALIKES)
    for fonts in (PLAIN_FONT, UPRIGHT_FONT):
        plain = without_fonts(plain, fonts)
    return _applied(READING, plain)


def _applied(rules: tuple, text: str) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def _number_in(plain: str, is_first: bool) -> str | None:
    """The first or last number of some text without markup, fractions whole."""
    numerals = list(NUMERAL.finditer(plain))
    if not numerals:
        return None
    numeral = numerals[0 if is_first else -1]
    for fraction in FRACTION.finditer(plain):
        if fraction.start() <= numeral.end() <= fraction.end():
            first = NUMERAL.search(plain, max(0, fraction.start() - 3))
            sign = "-" if first and _signed(first).startswith("-") else ""
            return sign + re.sub(r"[$,]", "", fraction[0]).strip().lstrip("-+ ")
    return _signed(numeral)


def _stated(plain: str) -> Value | None:
    """The value of `plain` if it holds exactly one number, possibly a fraction."""
    fraction = FRACTION.search(plain)
    if fraction:
        rest = plain[: fraction.start()] + plain[fraction.end() :]
        over, under = _part_value(fraction[2]), _part_value(fraction[3])
        if NUMERAL.search(rest) or not under or over is None:
            return None
        if fraction[1] and fraction[2].startswith(("-", "+")):
            return None
        is_negative = plain[: fraction.start()].rstrip(" $").endswith("-")
        return (int(fraction[1] or 0) + over / under) * (-1 if is_negative else 1)
    numerals = list(NUMERAL.finditer(plain))
    if len(numerals) != 1 or not _is_grouped(numerals[0][3]):
        return None
    return _exact(_signed(numerals[0]))


def _part_value(part: str) -> Fraction | None:
    """The value of a numerator or denominator."""
    digits = part.lstrip("-+ $")
    if not _is_grouped(digits):
        return None
    value = Fraction(digits.replace(",", ""))
    return -value if part.startswith("-") else value


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
        if operand == "$" and not before[-2:-1].isalnum():  # opens mathematics
            return "-" + digits if sign == "-" else digits
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
        if ANY_DIGIT.search(text, start, start + WINDOW):
            return text[max(0, start - WINDOW) : start + WINDOW]
    return ""
