"""Schedules of one's own on the command line: what is wrong with them is said in one line."""

import pytest

from harness.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["schedule.width=3"], "schedule.width=3: sets up a schedule of your own, by schedule._target_=MODULE.CLASS"),
        (["schedule._target_=nowhere.X"], "schedules.x: Error loading 'nowhere.X'"),
        (["schedule._target_=a.B,c.D"], "schedule._target_=a.B,c.D: sets up a schedule of your own"),
        (["schedule._target_=schedules.Packed"], "schedule._target_=schedules.Packed: would be called packed"),
        (["schedule._target_=schedules.OneCall"], "schedules.one_call: "),
        (["schedule._target_=schedules.Stop"], "schedules.stop"),
    ],
)
def test_mistakes_about_own_schedules_get_one_line(arguments, said, capsys):
    assert main(["run", *arguments, "limit=1"]) == 2
    error = capsys.readouterr().err
    assert f"error: {said}" in error
    assert "Traceback" not in error
