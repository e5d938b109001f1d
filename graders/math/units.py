"""Units of measurement: which words behind a number are one, and when two of them are different.

A unit may be missing on one side, and any words that two answers share make them agree; but metres are not
centimetres, dollars not cents, and AM not PM. Powers of a unit are not compared.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

Unit = frozenset[str]

SPELLINGS = """
dollar usd buck textdollar; cent textcent; euro eur; pound lb lbs gbp; yen jpy; rupee inr; peso; franc
inch in inches; foot ft feet; yard yd yds; mile mi; millimeter mm millimetre; centimeter cm centimetre; decimeter dm
meter m metre; kilometer km kilometre; gram g; kilogram kg kilo; milligram mg; ounce oz; ton; tonne; liter l litre
milliliter ml millilitre; gallon gal; quart qt; pint; cup; acre; hectare ha; second s sec; minute min; hour h hr; day
week wk; month; year yr; degree deg; radian rad; percent pct percentage; am; pm; celsius c; fahrenheit f; kelvin k
newton n; joule j; watt w; volt v; penny pennies pence; nickel; dime; quarter
"""
NAMES = {name: names.split()[0] for names in re.split(r"[;\n]", SPELLINGS) for name in names.split()}
KNOWN = frozenset(NAMES.values()) | {"/"}
RATES = {"mph": "mile / hour", "kmh": "kilometer / hour", "kph": "kilometer / hour", "mps": "meter / second"}
FILLERS = frozenset(
    "unit square sq cubic cu of the a an total each only about exactly long wide tall old more less".split()
)
SIGNS = {"$": "dollar", "\u00a2": "cent", "\u20ac": "euro", "\u00a3": "pound", "\u00a5": "yen", "\u20b9": "rupee"}
WORD = re.compile(r"/|[^\W\d_]+")
POWERS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
PARTS = {
    part: number
    for number, parts in {
        2: "half halves", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth",
        10: "tenth", 100: "hundredth", 1000: "thousandth",
    }.items()
    for part in parts.split()
}  # fmt: skip


def unit_of(words: str) -> Unit:
    """The unit that some words or a sign name; empty where they name none.

    Args:
      words: text behind or before a number, without markup: " cents", "miles per hour", "p.m.".
    """
    words = re.sub(r"\b([ap])\.?\s?m\b\.?", r"\1m", unicodedata.normalize("NFKC", words).lower())
    words = "".join(f" {SIGNS[sign]} " if sign in SIGNS else sign for sign in words)
    found = [RATES.get(word, word) for word in WORD.findall(re.sub(r"\bper\b", "/", words))]
    singular = [_singular(word) for word in " ".join(found).split()]
    is_phrase = len(singular) > 1
    return frozenset(word for word in singular if word not in FILLERS and not (is_phrase and word == "in"))


def agree(one: Unit, other: Unit) -> bool:
    """Whether two answers may have these units and be the same."""
    if not one or not other or one == other:
        return True
    if ("/" in one) != ("/" in other):
        return False
    if one <= KNOWN and other <= KNOWN:
        return one <= other or other <= one
    return bool(one & other)


def scale(word: str) -> Fraction | None:
    """What a word behind a number multiplies it by: "million", "thirds"; None for any other word."""
    word = word.lower()
    for name in (word, word.removesuffix("s")):
        if name in POWERS:
            return Fraction(10 ** POWERS[name])
        if name in PARTS:
            return Fraction(1, PARTS[name])
    return None


def _singular(word: str) -> str:
    for name in (word, word.removesuffix("s")):
        if name in NAMES:
            return NAMES[name]
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word
