"""Measured methods beside the fastest Packed and Quadratic."""

import pytest

from harness.analysis.atlas.confirmation import confirmation_table
from harness.errors import UserError
from harness.records.frame import as_frame
from tests.builders.synthetic_runs import record


def made(schedule: str, width: int, wall_s: float, prompts: int = 4) -> list:
    return [
        record(schedule=schedule, width=width, prompt_id=f"p{index}", tokens=60, nfe=12, rows=480, wall_s=wall_s)
        for index in range(prompts)
    ]


def test_rivals_are_the_fastest_widths_and_shared_prompts_alone_count():
    records = [*made("packed", 7, 2.0), *made("packed", 15, 1.0), *made("mine", 7, 0.8, prompts=3)]
    table = confirmation_table(as_frame(records))
    assert [column.name for column in table.columns[6:]] == ["Tokens/s / Packed-SS W = 15", "Tokens/s / Quadratic-SS"]
    frame = table.frame
    assert frame["Responses"].tolist() == [3, 3, 3]
    mine = frame.iloc[2]
    rates = mine[["Method", "Tokens/NFE", "Rows/NFE", "Tokens/s"]].tolist()
    assert rates == ["mine", 5, 40, pytest.approx(75)]
    assert frame["Tokens/s / Packed-SS W = 15"].tolist() == pytest.approx([0.5, 1, 1.25])
    assert mine["Tokens/s / Packed-SS W = 15 low"] == pytest.approx(1.25)
    assert frame["Tokens/s / Quadratic-SS"].isna().all()


def test_methods_without_a_common_prompt_are_not_compared():
    other = [record(schedule="linear", width=7, prompt_id="elsewhere")]
    with pytest.raises(UserError, match="0 prompts were answered by every method"):
        confirmation_table(as_frame([*made("packed", 7, 1.0), *other]))
