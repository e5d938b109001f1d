"""The layouts of appendix D.1 and E.2, against the paper's matrices and row counts."""

import pytest
import torch

from harness.models.nemotron import layout as layout_module
from harness.models.nemotron.layout import prompt_layout, regular_layout

WIDTHS = [1, 2, 3, 7, 15, 31]


def test_packed_equals_the_drawing_beside_the_code():
    drawing = layout_module.__doc__.split("sees the row above):")[1].split("\n\n")[1]
    rows = [line.split()[1:] for line in drawing.splitlines()[1:]]
    drawn = torch.tensor([[cell == "x" for cell in row if cell != "|"] for row in rows])
    assert torch.equal(drawn, regular_layout(2, True, [0]).sees)


@pytest.mark.parametrize("width", WIDTHS)
def test_packed_is_a_triangle_beside_a_full_block(width):
    block = width + 1
    layout = regular_layout(width, True, [0])
    triangle, full = torch.ones(block, block).tril().bool(), torch.ones(block, block).bool()
    assert torch.equal(layout.sees, torch.block_diag(triangle.int(), full.int()).bool())
    assert layout.offsets.tolist() == [*range(block), *range(block)]
    assert layout.last_rows == [0, block]


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_an_iteration_are_those_of_table_2(width):
    block = width + 1
    linear = regular_layout(width, False, [0]).rows + regular_layout(width, True, []).rows
    assert linear == 2 * block
    assert regular_layout(width, True, [0]).rows == 2 * block
    assert regular_layout(width, True, range(width + 1)).rows == block * (block + 1)


def test_the_papers_block_sizes_give_64_and_72_rows():
    assert regular_layout(31, True, [0]).rows == 64
    assert regular_layout(7, True, range(8)).rows == 72


def test_autoregressive_calls_have_one_row():
    assert regular_layout(0, True, []).rows == 1


@pytest.mark.parametrize("branches", [[0, 1, 2, 3], [0, 2], [0, 3]])
def test_each_branch_sees_its_own_masks_and_the_verifier_rows_it_assumes(branches):
    width, block = 3, 4
    layout = regular_layout(width, True, branches)
    for index, branch in enumerate(branches):
        for row in range(block * (index + 1), block * (index + 2)):
            seen = set(layout.sees[row].nonzero().flatten().tolist())
            own = set(range(block * (index + 1), block * (index + 2)))
            assert seen == set(range(branch + 1)) | own
            assert layout.offsets[row] == branch + 1 + row - block * (index + 1)
    verifier = layout.sees[:block]
    assert torch.equal(verifier[:, :block], torch.ones(block, block).tril().bool())
    assert not verifier[:, block:].any()


@pytest.mark.parametrize("width", WIDTHS)
def test_proposal_rows_predict_the_offsets_they_are_keyed_by(width):
    for verifies, branches in [(True, [0]), (False, [0]), (True, list(range(width + 1)))]:
        layout = regular_layout(width, verifies, branches)
        predicted = layout.offsets[layout.proposal_rows].view(len(branches), -1)
        for branch, offsets in zip(branches, predicted.tolist(), strict=True):
            assert offsets == list(range(branch + layout.first_offset, branch + layout.first_offset + len(offsets)))


def test_prompt_call_is_causal_with_masks_that_see_everything():
    layout = prompt_layout(3, width=1, verifies=True, proposes=True)
    expected = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]
    assert layout.sees.int().tolist() == expected
    assert layout.offsets.tolist() == [-2, -1, 0, 1, 2]
    assert layout.verifier_row == 2
    # E.2: W + 1 masks, of which the first predicts the verifier's token and is dropped.
    assert layout.proposal_rows.tolist() == [4]


def test_a_call_that_asks_for_nothing_is_refused():
    with pytest.raises(ValueError, match="verifies nothing"):
        regular_layout(3, False, [])
