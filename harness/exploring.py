"""From schedules as configs name them to replays of an atlas; the rest about atlases is in `harness.analysis`."""

from collections.abc import Sequence
from typing import Any

from harness.analysis.atlas_tables import Method, paper_method
from harness.building import build_schedules
from harness.config import compose
from harness.errors import UserError
from schedules.linear import Linear
from schedules.one_call import OneCall


def own_methods(overrides: Sequence[str], widths: Sequence[int]) -> Sequence[Method]:
    """The schedules that `overrides` name, at their own width if that was recorded.

    Args:
      overrides: as for a run: schedule=..., schedules.NAME.KEY=..., schedule._target_=...

    Raises:
      UserError: unknown names, or a schedule whose calls do not follow from the draft's length.
    """
    if not overrides:
        return []
    config = compose(["schedule=[]", *overrides])
    built = build_schedules(config.schedules)
    for name, schedule in built.items():
        if schedule.width not in widths:
            raise UserError(
                f"schedules.{name}.width={schedule.width}: not in the atlas, which has {', '.join(map(str, widths))}. "
                "Choose one of them, or record an atlas with that width."
            )
    return [_method(name, schedule) for name, schedule in built.items()]


def _method(name: str, schedule: Any) -> Method:
    if isinstance(schedule, Linear):
        return paper_method("linear", schedule.width)._replace(schedule=name)
    if isinstance(schedule, OneCall) and type(schedule).decode is OneCall.decode:
        return Method(name, schedule.width, lambda replay: replay.one_call(schedule.width, schedule.branches))
    raise UserError(
        f"schedules.{name}: has a loop of its own, which cannot be replayed. Subclasses of OneCall that say no more "
        "than their branches can; others have to be run."
    )
