"""`python -m harness probe` on the embedded model."""

import pytest

from harness.cli.main import main
from harness.records.record import read_records

FAST = ["warmups=0", "drift_prompts=0", "model.device=cpu", "task.max_new_tokens=12"]


def test_every_block_size_runs_on_the_same_prompts_and_the_fastest_are_named(tmp_path, capsys):
    arguments = ["probe", "blocks=4,2", "schedule=[linear,packed]", "limit=2", f"run_dir={tmp_path}", *FAST]
    assert main(arguments) == 0
    for block in (2, 4):
        records = list(read_records(tmp_path / f"block-{block}" / "records.jsonl"))
        assert {record.width for record in records} == {block - 1}
        assert {record.prompt_id for record in records} == {"toy_math/0", "toy_math/1"}
    out = capsys.readouterr().out
    assert "Table 3: block-size probe" in out
    last = out.splitlines()[-1]
    assert last.startswith("fastest: Linear-SS B = ")
    assert ", Packed-SS B = " in last


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("blocks=1,8", "blocks=1,8: need block sizes of at least 2"),
        ("blocks=x", "blocks=x: need block sizes"),
        ("model=setdlm_smax16", "model=setdlm_smax16: has windows, no blocks"),
    ],
)
def test_mistakes_get_one_line(argument, message, capsys):
    assert main(["probe", argument]) == 2
    assert message in capsys.readouterr().err
