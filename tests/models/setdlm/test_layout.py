"""The layouts of appendix D.2, against the paper's rules and row counts."""

import random

import pytest
import torch

from harness.models.setdlm import layout as layout_module
from harness.models.setdlm.layout import Layout, window_layout
from tests.builders.setdlm import paper_mask

RANKS = range(1, 17)


def full_mask(layout: Layout, drafted: list[bool]) -> torch.Tensor:
    mask = layout.sees.clone()
    if layout.draft_rows:
        mask[:, layout.draft_columns] = layout.sees_drafts(torch.tensor(drafted))
    return mask


def drawn(index: int) -> tuple[list[str], torch.Tensor]:
    """Row labels and matrix of one of the drawings beside the code."""
    text = layout_module.__doc__.split("\n\n")
    blocks = [block for block in text if all(line.startswith("        ") for line in block.splitlines())]
    rows = [line.split() for line in blocks[index].splitlines()[1:]]
    cells = [[cell == "x" for cell in row[1:] if cell != "|"] for row in rows]
    return [row[0] for row in rows], torch.tensor(cells)


def test_quadratic_equals_the_drawing_beside_the_code():
    labels, cells = drawn(0)
    assert labels == ["N", "O1", "O2", "M1", "M2", "R01", "R02", "R11", "R12"]
    assert torch.equal(full_mask(window_layout(2, 1, True, [0, 1]), [True, True]), cells)


def test_packed_and_linear_are_parts_of_the_drawing():
    _, cells = drawn(0)
    assert torch.equal(full_mask(window_layout(2, 1, True, [0]), [True, True]), cells[:7, :7])
    n_and_r, o_and_m = torch.tensor([0, 5, 6]), torch.tensor([1, 2, 3, 4])
    assert torch.equal(full_mask(window_layout(2, 1, False, [0]), []), cells[n_and_r][:, n_and_r])
    assert torch.equal(full_mask(window_layout(2, 0, True, []), [True, True]), cells[o_and_m][:, o_and_m])


def test_a_missing_draft_token_equals_the_drawing_beside_the_code():
    _, cells = drawn(1)
    assert torch.equal(full_mask(window_layout(3, 0, True, []), [True, False, True]), cells)


@pytest.mark.parametrize("context", [0, 1])
@pytest.mark.parametrize("ranks", RANKS)
def test_masks_follow_the_papers_rules_for_any_missing_drafts_and_branches(ranks, context):
    rng = random.Random(f"{ranks}/{context}")
    some = [0, *(branch for branch in range(1, ranks) if rng.random() < 0.3)]
    for branches in ([0], [*range(ranks)], some, []):
        layout = window_layout(ranks, context, True, branches)
        for _ in range(2):
            drafted = [rng.random() < 0.7 for _ in range(ranks)]
            assert torch.equal(full_mask(layout, drafted), paper_mask(ranks, context, branches, drafted))


@pytest.mark.parametrize("context", [0, 1])
@pytest.mark.parametrize("ranks", RANKS)
def test_rows_are_those_of_table_2(ranks, context):
    p, u = context, ranks
    assert window_layout(u, p, False, [0]).rows == p + u
    assert window_layout(u, 0, True, []).rows == 2 * u
    assert window_layout(u, p, True, [0]).rows == p + 3 * u
    assert window_layout(u, p, True, range(u)).rows == p + 2 * u + u * u


def test_the_papers_windows_give_its_maximum_rows():
    assert [window_layout(w, 1, True, [0]).rows for w in (8, 16)] == [25, 49]
    assert [window_layout(w, 1, True, range(w)).rows for w in (8, 16)] == [81, 289]


@pytest.mark.parametrize("ranks", [1, 5])
def test_the_rows_of_a_rank_share_its_position(ranks):
    layout = window_layout(ranks, 2, True, [0] if ranks == 1 else [0, 3])
    regions = 2 + (1 if ranks == 1 else 2)
    assert layout.slots.tolist() == [0, 1, *list(range(2, 2 + ranks)) * regions]


def test_proposals_that_survive_start_at_rank_2_when_the_call_verifies():
    verifying, drafting = window_layout(3, 1, True, [0, 2]), window_layout(3, 1, False, [0])
    assert (verifying.first_rank, verifying.proposal_rows.tolist()) == (2, [8, 9, 11, 12])
    assert (drafting.first_rank, drafting.proposal_rows.tolist()) == (1, [1, 2, 3])


def test_several_waiting_tokens_are_causal_among_themselves():
    """Native decoding: the tokens of the last call, then the window's masks."""
    layout = window_layout(2, 3, False, [0])
    assert layout.rows == 5
    assert torch.equal(layout.sees[:3, :3], torch.ones(3, 3).tril().bool())
    assert torch.equal(layout.sees[3:], torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 1]]).bool())


@pytest.mark.parametrize(
    ("ranks", "verifies", "branches"),
    [(0, True, [0]), (3, True, [3]), (3, True, [-1]), (3, False, [0, 1]), (3, False, [])],
)
def test_impossible_calls_are_refused(ranks, verifies, branches):
    with pytest.raises(ValueError, match="call:"):
        window_layout(ranks, 1, verifies, branches)
