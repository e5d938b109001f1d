"""`python -m harness trace`: decoding on the spot, and what a replayed run holds."""

import pytest

from harness.cli.main import main

KEYS = ["task.max_new_tokens=12", "model.device=cpu"]


def test_decodes_and_shows_every_schedule(capsys):
    assert main(["trace", *KEYS, "schedule=[linear,packed]", "prompts=[3]"]) == 0
    shown = capsys.readouterr().out
    assert "Linear-SS (W = 15), tiny_nemotron on toy_math, prompt toy_math/3: 12 tokens" in shown
    assert "Packed-SS (W = 15)" in shown
    assert "rows in 2 calls" in shown
    assert "\x1b[" not in shown
    assert " ms\n" in shown


def test_shows_what_a_replayed_run_holds(tmp_path, capsys):
    run = [f"run_dir={tmp_path}", "schedule=packed", "limit=1", "warmups=0", "drift_prompts=0"]
    assert main(["run", *KEYS, *run]) == 0
    assert main(["trace", str(tmp_path)]) == 2
    assert f"Write it: python -m harness replay {tmp_path}" in capsys.readouterr().err
    assert main(["replay", str(tmp_path)]) == 0
    assert main(["trace", str(tmp_path), "iterations=1", "colour=always"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b[1miteration 1" in shown
    assert "PARTIAL: " in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["colour=red"], "colour=red: no such colour"),
        (["iterations=x"], "iterations=x: need an integer"),
        (["nowhere"], "trace nowhere: name the folder of one replayed run"),
        (["acceptance=3"], "trace: synthetic acceptance and random weights"),
        (["schedule=pakced"], "schedule=pakced: no such schedule"),
    ],
)
def test_mistakes_get_one_line(arguments, said, capsys):
    assert main(["trace", *arguments]) == 2
    assert f"error: {said}" in capsys.readouterr().err
