r"""GSM8K: is the number right?

`Gsm8k` reads the last boxed answer and, where there is none, the final number, and says which in its reason.
`SetdlmGsm8k` scores a response the way the SetDLM release does, with both of its filters.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Any

from graders.math.boxed import last_boxed
from graders.math.numbers import WINDOW, final_numeral, value
from graders.math.symbolic import SecondOpinions
from graders.turns import first_turn
from graders.verdict import Verdict

SETDLM_STOPS = ("Question:", "</s>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>")
SETDLM_STRICT = re.compile(r"#### (-?[0-9.,]+)")
SETDLM_FLEXIBLE = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+")
BLANK = re.compile(r"\s")  # no match of the filters spans one
INVALID = "[invalid]"


class Gsm8k:
    """Numeric equality with the last boxed answer, else with the final number."""

    def __init__(self) -> None:
        self.opinions = SecondOpinions()

    def grade(self, response: str, reference: Mapping[str, Any]) -> Verdict:
        """Judges a response to a word problem.

        Args:
          response: the model's text.
          reference: `gold`, either the bare number or the data set's `answer` field ending in `#### 18`.

        Returns:
          Reason `boxed`, `final number` or `no answer`; details `strict` (equal but for blanks) and, with
          math-verify installed, `symbolic`.
        """
        gold = gold_number(reference)
        expected = value(gold)
        if expected is None:
            return Verdict(None, f"infra\ngold {gold[:80]!r} states no number; correct the reference.")
        response = first_turn(response)
        answer, reason = last_boxed(response), "boxed"
        if answer is None:
            answer, reason = final_numeral(response), "final number"
        if answer is None:
            return Verdict(False, "no answer")
        found = value(answer)
        if found is None:
            reason += "\nnot a single number"
        return Verdict(found == expected, reason, answer, self.opinions.compare(answer, gold))


class SetdlmGsm8k:
    """The SetDLM release's scoring: its rewriting of the response and lm-eval's two filters.

    Args:
      primary: the filter that decides `correct`, `flexible` (last number) or `strict` (after `####` or in the
        box). The paper does not say which it reports, so both stand in the details.

    Raises:
      ValueError: another name for `primary`.
    """

    def __init__(self, primary: str = "flexible") -> None:
        if primary not in ("flexible", "strict"):
            raise ValueError(f"primary={primary}: no such filter. Known: flexible, strict.")
        self.primary = primary

    def grade(self, response: str, reference: Mapping[str, Any]) -> Verdict:
        """Judges a response as the release does; reference as for `Gsm8k`."""
        rewritten = _rewritten(response)
        stated = gold_number(reference)
        if value(stated) is None:
            return Verdict(None, f"infra\ngold {stated[:80]!r} states no number; correct the reference.")
        gold = _comparable(stated)
        strict = SETDLM_STRICT.search(rewritten)
        answers = {
            "strict": strict[1] if strict else INVALID,
            "flexible": _last_flexible(rewritten),
        }
        hits = {f"{name}_match": _comparable(answer) == gold for name, answer in answers.items()}
        answer = answers[self.primary]
        is_found = answer != INVALID
        return Verdict(
            correct=hits[f"{self.primary}_match"],
            reason=self.primary if is_found else "no answer",
            answer=answer if is_found else None,
            details={**hits, **{f"{name}_answer": text for name, text in answers.items()}},
        )


def gold_number(reference: Mapping[str, Any]) -> str:
    """The gold answer alone, without the worked solution GSM8K's `answer` field puts before it."""
    return str(reference["gold"]).rpartition("####")[2].strip()


def _rewritten(response: str) -> str:
    """The response cut at its first stop string, with its box turned into GSM8K's own mark.

    The release takes what stands between the first and the second `boxed{`, up to the first brace that closes, and
    deletes every dollar with a backslash behind it; in a response without a box it deletes nothing.
    """
    for stop in SETDLM_STOPS:
        response = response.partition(stop)[0]
    before, box, after = response.partition("boxed{")
    if not box:
        return response
    answer = after.partition("boxed{")[0].partition("}")[0]
    return f"{before}#### {answer}".replace("$\\", "")


def _last_flexible(text: str) -> str:
    """Last match of the flexible filter, in text of any length."""
    end = len(text)
    while end > 0:
        blank = BLANK.search(text, max(0, end - WINDOW), end) if end > WINDOW else None
        start = blank.start() if blank else 0
        last = deque(SETDLM_FLEXIBLE.finditer(text, start, end), maxlen=1)
        if last:
            return last[0][0]
        end = start
    return INVALID


def _comparable(answer: str) -> str:
    """An answer without commas, dollars, everything up to `#### ` and one trailing period, lower-cased."""
    answer = answer.replace(",", "").replace("$", "").rpartition("#### ")[2]
    return answer.removesuffix(".").lower()
