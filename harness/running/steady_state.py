"""Whether times can be trusted: warm-up until they settle, and the first prompts again at the end."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.records.record import Record
from schedules.response import Response

SETTLED = 0.05  # relative change of the time of one and the same response
WARM_AFTER_S = 10.0  # of decoding with one schedule
DRIFT_SHARE = 0.1  # of the prompts, at most; a run of fewer than ten would be lengthened by more


def settle(names: Iterable[str], seconds: Callable[[str], float], most: int) -> Mapping[str, Any]:
    """Warms schedules up in turns, each until two times in a row are alike, or took long enough to warm anything.

    Args:
      seconds: decodes with a schedule and gives the seconds it took.
      most: times that each schedule is called, at most.

    Returns:
      For each schedule `seconds`, the times in order, and `settled`.
    """
    times: dict[str, list[float]] = {name: [] for name in names}

    def is_settled(name: str) -> bool:
        before, last = times[name][-2:] if len(times[name]) > 1 else (0.0, 1.0)
        return abs(last - before) <= SETTLED * last

    def is_warm(name: str) -> bool:
        # The first response is left out: it may have waited for a compiler.
        return is_settled(name) or sum(times[name][1:]) >= WARM_AFTER_S

    for _ in range(most):
        for name in times:
            if not is_warm(name):
                times[name].append(seconds(name))
    return {
        name: {"seconds": [round(one, 6) for one in taken], "settled": is_settled(name)}
        for name, taken in times.items()
    }


def drift(
    records: Sequence[Record], again: Callable[[Record], tuple[Response, float]], most: int
) -> Mapping[str, Any] | None:
    """Decodes the first prompts once more, the first repetition of each.

    Args:
      records: of the whole run.
      again: decodes what a record is about; gives the response and the seconds it took.
      most: prompts, at most.

    Returns:
      `prompts`; for each schedule in `ratios` the time now over the time recorded; and `other_tokens`, how many
      responses differ from what was recorded. None where nothing was decoded again, as in runs of fewer than ten.
    """
    answered = [record for record in records if not record.is_skipped and record.repetition == 0]
    prompts = list(dict.fromkeys(record.prompt_id for record in answered))
    chosen = prompts[: min(most, int(DRIFT_SHARE * len(prompts)))]
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    other = 0
    for record in answered:
        if record.prompt_id in chosen:
            response, seconds = again(record)
            other += list(response.tokens) != list(record.token_ids)
            before[record.schedule] = before.get(record.schedule, 0.0) + record.wall_s
            after[record.schedule] = after.get(record.schedule, 0.0) + seconds
    if not chosen:
        return None
    return {
        "prompts": chosen,
        "ratios": {name: round(after[name] / before[name], 4) if before[name] else None for name in before},
        "other_tokens": other,
    }
