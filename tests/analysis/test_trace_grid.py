"""Traces as grids and as text: figure 2's iteration, drawn."""

import re

import pytest

from harness.analysis.figures.iteration import SHADES
from harness.analysis.trace_grid import STATES, as_text, shortened, title, views
from harness.records.trace import Proposal, TracedIteration
from tests.builders.traces import iteration, trace

PACKED = """\
iteration 1: 1 of 3 draft tokens accepted, 2 emitted; 16 rows in 1 call, 4.0 ms
                  +1  +2  +3  +4
draft       … = │ ,   24  +
verifier          ,   25  -   2
                  =   ≠
drafter               25  -   9
                      ×   >   >"""


def packed(**changes) -> TracedIteration:
    """Figure 2: one draft token is accepted, the second is corrected, two proposals are kept."""
    values = {
        "prefix_tail": ["="],
        "draft": [",", "24", "+"],
        "verifier": [",", "25", "-", "2"],
        "positions": [7, 8],
        "accepted_drafts": 1,
        "proposals": [Proposal(0, 2, ["25", "-", "9"])],
        "calls": 1,
        "rows": 16,
        "seconds": 0.004,
    }
    return TracedIteration(**values | changes)


def states(view) -> dict[str, list[str | None]]:
    return {line.name: [cell and cell.state for cell in line.cells] for line in view.lines}


def test_an_iteration_of_packed_is_drawn_as_in_figure_2():
    drawn = as_text(trace(packed(), packed()), columns=100, in_colour=False)
    assert drawn.split("\n\n")[2] == PACKED


def test_colour_changes_no_character_of_the_tokens():
    one, two = (as_text(trace(packed(), packed()), 100, in_colour) for in_colour in (True, False))
    bare = re.sub(r"\x1b\[[\d;]*m", "", one).splitlines()
    marks = {"=   ≠", "×   >   >", "×   ×   ×"}
    assert "\x1b[" in one
    assert [line.rstrip() for line in bare[4:]] == [line for line in two.splitlines()[4:] if line.strip() not in marks]


def test_of_several_branches_the_selected_one_alone_keeps_proposals():
    branches = [Proposal(0, 2, ["a", "b"]), Proposal(1, 3, ["c", "d"]), Proposal(2, 4, ["e", "f"])]
    view, _ = views(trace(packed(proposals=branches), packed()))
    assert states(view) == {
        "draft": ["plain"] * 3,
        "verifier": ["accepted", "correction", "unreached", "unreached"],
        "branch 0": [None, "discarded", "discarded"],
        "branch 1": [None, None, "kept", "kept"],
        "branch 2": [None, None, None, "discarded", "discarded"],
    }


def test_the_last_iteration_keeps_nothing():
    assert states(views(trace(packed()))[0])["drafter"] == [None, "discarded", "discarded", "discarded"]


def test_a_draft_that_linear_makes_and_verifies_is_shown_once():
    drafted = Proposal(0, 1, [",", "24", "+"], is_draft=True)
    view, _ = views(trace(packed(proposals=[drafted], calls=2), packed()))
    assert list(states(view)) == ["draft", "verifier"]
    assert "in 2 calls" in view.title


def test_predictions_that_nobody_verifies_are_shown_plainly():
    native = packed(draft=[], verifier=[], accepted_drafts=0, proposals=[Proposal(0, 1, ["a", "b"], is_draft=True)])
    view, _ = views(trace(native, native))
    assert states(view) == {"draft": [], "verifier": [], "predicted": ["plain", "plain"]}


def test_a_token_behind_a_full_draft_is_a_bonus():
    full = packed(verifier=[",", "24", "+", "2"], positions=[7, 8, 9, 10], accepted_drafts=3)
    assert "=   =   =   +" in as_text(trace(full, full), 100, in_colour=False)


def test_offsets_that_do_not_fit_go_on_below():
    wide = packed(proposals=[Proposal(0, 2, [str(number) for number in range(10, 40)])])
    drawn = as_text(trace(wide, wide), columns=60, in_colour=False)
    assert max(map(len, drawn.split("\n\n")[2].splitlines()[1:])) <= 60
    assert all(f"+{offset}" in drawn for offset in range(1, 32))


def test_old_traces_without_rows_are_shown():
    (view,) = views(trace(iteration()))
    assert view.title == "iteration 1: 2 of 3 draft tokens accepted, 3 emitted"
    assert title(trace()).endswith("9 tokens in 1 iterations")


def test_iterations_that_are_left_out_are_counted():
    assert as_text(trace(packed(), packed(), packed()), 100, False, iterations=1).endswith("PARTIAL: 2 more iterations")


@pytest.mark.parametrize(
    ("token", "shown"), [(" a", "␣a"), ("\n", "⏎"), ("\x1b[2J", "□[2J"), ("abcdefghijk", "abcdefgh…")]
)
def test_tokens_are_shown_in_one_line_and_never_control_the_terminal(token, shown):
    assert shortened(token) == shown


def test_every_state_has_a_shade_in_figure_2():
    assert SHADES.keys() == STATES.keys()


def test_every_state_has_a_style_in_the_report():
    from importlib.resources import files

    css = (files("harness.analysis.report") / "templates" / "report.css").read_text()
    assert all(f".{name} " in css for name in STATES if name != "plain")
