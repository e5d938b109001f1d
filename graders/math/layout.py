r"""LaTeX without what only changes its look: spacing, fonts, sizes, kinds of brackets, Unicode for commands.

Blanks that are left separate words; `LIST` stands for a comma that separates entries of a list (one with a blank
behind it), `ROW_END` for the end of a matrix row.
"""

from __future__ import annotations

import re

ROW_END = "\x01"  # a double backslash, whose second half would look like the start of a command
LIST = "\x02"
SYMBOLS = {
    "\u2212": "-",
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": "-",
    "\u2014": "-",
    "\ufe63": "-",
    "\u00d7": r"\times ",
    "\u00b7": r"\cdot ",
    "\u22c5": r"\cdot ",
    "\u2219": r"\cdot ",
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
    "\u00bc": r"\frac14 ",
    "\u00be": r"\frac34 ",
    "\u2153": r"\frac13 ",
    "\u2154": r"\frac23 ",
    "\u2044": "/",
    "\u2205": r"\emptyset ",
    "\u2032": "'",
    ROW_END: "",
    LIST: "",
} | {chr(code + 0xFEE0): chr(code) for code in range(0x21, 0x7F)}  # full-width forms
SYMBOLS |= dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\u2061\u2062\u2063\ufeff", "")
TRANSLATION = str.maketrans(SYMBOLS)

LONGEST_COMMAND = 40
LENGTH = r"-? ?[\d.]+ ?(?:pt|em|ex|mm|cm|in|mu|bp|pc|sp)"
BLANK = (
    r"q?quad|enspace|enskip|thinspace|medspace|thickspace|space|nobreakspace|hfill?|hss|null|strut|mathstrut|relax"
    r"|nobreak|allowbreak|noindent|newline|linebreak|par|smallskip|medskip|bigskip|ignorespaces|nonumber|notag|hline"
)
CLOSE = r"negthinspace|negmedspace|negthickspace"
# Fonts that say nothing about what they hold; those of upright text may hold a unit, and go later.
PLAIN_FONT = re.compile(
    r"\\(?:mathbf|mathit|mathsf|mathtt|mathnormal|mathup|mathbb|mathcal|mathscr|mathfrak|mathbin|mathord|mathrel"
    r"|mathopen|mathclose|mathpunct|mathinner|textbf|textit|textsf|texttt|textnormal|textup|textmd|textsl|textsc|emph"
    r"|boldsymbol|bm|pmb|underline|uline|ensuremath)(?![a-zA-Z]) ?"
)
UPRIGHT_FONT = re.compile(r"\\(?:text|mathrm|textrm|mbox|hbox|rm|operatorname\*?|mathop|boxed|fbox)(?![a-zA-Z]) ?")
DECLARED = re.compile(
    r"\\(?:bf|it|sf|tt|cal|sl|sc|bfseries|itshape|rmfamily|sffamily|ttfamily|upshape|normalfont|boldmath"
    r"|tiny|scriptsize|footnotesize|small|normalsize|large|Large|LARGE|huge|Huge"
    r"|displaystyle|textstyle|scriptstyle|scriptscriptstyle|limits|nolimits)(?![a-zA-Z]) ?"
)
ARRAY = r"\\begin ?\{(?:array|matrix|smallmatrix|[bB]?matrix\*)\} ?(?:\{[clr|@{} ]*\}|\[[clr]\])?"
ARRAY_END = r"\\end ?\{(?:array|matrix|smallmatrix|[bB]?matrix\*)\}"
RULES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"{ROW_END} ?\*? ?\[ ?{LENGTH} ?\]|\\(?:cr|tabularnewline)(?![a-zA-Z])", ROW_END),
        (r"\\(?:text ?\{\s*\\?\$\s*\})", r"\\$"),
        (r"\\!|\\(?:" + CLOSE + r")(?![a-zA-Z]) ?", "\x03"),
        (r",(?:\s*\x03)+\s*(?=\d{3}(?!\d))|\{,\}\s*\x03*\s*(?=\d{3}(?!\d))", ","),
        (r"\x03", ""),
        (r"\{([,:])\}", r"\1"),
        (r"\*\*|\\#|\\/|\\-", ""),
        (r"\\(?:textcolor|color|[hv]?phantom|[hvm]space\*?|rule) ?(?:\[[^\[\]]*\])? ?\{[^{}]*\}", " "),
        (rf"\\(?:[hm]skip|[m]?kern) ?{LENGTH}", " "),
        (r"\\(?:left|right|middle) ?\.", ""),
        (r"\\(?:left|right|middle|[bB]igg?[lrm]?)(?![a-zA-Z])", ""),
        (rf"\\[,;:> \n\t]|\\(?:{BLANK})(?![a-zA-Z])|~|\\[()\[\]]|&nbsp;", " "),
        (r"\\lbrace(?![a-zA-Z])", r"\\{"),
        (r"\\rbrace(?![a-zA-Z])", r"\\}"),
        (r"\\lparen(?![a-zA-Z])", "("),
        (r"\\rparen(?![a-zA-Z])", ")"),
        (r"\\lbrack(?![a-zA-Z])", "["),
        (r"\\rbrack(?![a-zA-Z])", "]"),
        (r"\\[lr]?vert(?![a-zA-Z])", "|"),
        (rf"[(\[]\s*{ARRAY}", r"\\begin{pmatrix}"),
        (rf"{ARRAY_END}\s*[)\]]", r"\\end{pmatrix}"),
        (r"\{[bBp]?matrix\*?\}(?: ?\[[clr]\])?", lambda kind: kind[0] if kind[0] == "{matrix}" else "{pmatrix}"),
        (r"\\begin ?\{pmatrix\}", r"\\begin{pmatrix}"),
        (rf"\s*{ROW_END}\s*(?=\\end)", ""),
        (r",\s+", LIST),
    )
)


def one_layout(text: str) -> str:
    """`text` in one layout; its value, units and names are as they were."""
    text = text.translate(TRANSLATION).replace(r"\\", ROW_END).strip()
    if len(text) > 1 and text.startswith("$") and text.endswith("$") and not text.endswith(r"\$"):
        text = text.strip("$").strip()
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return DECLARED.sub("", without_fonts(text, PLAIN_FONT)).strip()


def closing_braces(text: str) -> dict[int, int]:
    """Position of the closing brace for every opening one that has it."""
    closing, opened = {}, []
    for brace in re.finditer(r"\\.|[{}]", text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            closing[opened.pop()] = brace.start()
    return closing


def without_fonts(text: str, fonts: re.Pattern[str]) -> str:
    """`text` without commands for fonts; their braces go too, unless they hold an exponent or an argument."""
    closing = closing_braces(text)
    cuts: list[tuple[int, int]] = []
    for font in fonts.finditer(text):
        cuts.append((font.start(), font.end()))
        before = text[max(0, font.start() - LONGEST_COMMAND) : font.start()].rstrip()
        is_argument = before.endswith(("^", "_", "}")) or re.search(r"\\[a-zA-Z]+$", before)
        if font.end() in closing and not is_argument:
            cuts += [(font.end(), font.end() + 1), (closing[font.end()], closing[font.end()] + 1)]
    pieces, end = [], 0
    for start, stop in sorted(cuts):
        pieces.append(text[end:start])
        end = stop
    return "".join([*pieces, text[end:]])
