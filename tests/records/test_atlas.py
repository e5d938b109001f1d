"""The atlas' files and what is derived from them."""

import numpy as np
import pytest

from harness.errors import UserError
from harness.records.atlas import MANIFEST, PROMPTS, PromptAtlas, Proposed, read_atlas, read_prompt
from tests.builders.atlases import made_prompt


def test_proposals_are_right_where_they_are_the_emitted_token_and_nowhere_behind_the_end():
    tokens = np.array([4, 5, 6], dtype=np.int32)
    proposals = np.array([[4, 5, 9], [5, 6, 6], [6, 6, 4]], dtype=np.int32)
    prompt = PromptAtlas("p", 1, tokens, np.ones(3), {("fresh", 3): Proposed(proposals, np.ones((3, 3)))})
    assert prompt.correct("fresh", 3).tolist() == [[True, True, False], [True, True, False], [True, False, False]]


def test_what_is_saved_is_read_again(tmp_path):
    prompt = made_prompt(np.random.default_rng(0).random((5, 4)) < 0.5, ends=True)
    prompt.save(tmp_path / "one.npz")
    again = read_prompt(tmp_path / "one.npz")
    assert (again.prompt_id, again.prompt_tokens, again.widths) == ("p0", 1, [3])
    np.testing.assert_equal(again.__dict__, prompt.__dict__)
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 torn", b"text"])
def test_a_damaged_prompt_is_named(tmp_path, damage):
    (tmp_path / "one.npz").write_bytes(damage)
    with pytest.raises(UserError, match=r"one\.npz: no prompt of an atlas"):
        read_prompt(tmp_path / "one.npz")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (None, "cannot be read .* Record one"),
        ("{", "no manifest of an atlas"),
        ('{"config": {"model": {"name": "m"}, "task": {"name": "t"}}, "plan": {"prompts": ["p0"]}}', "without prompts"),
    ],
)
def test_a_folder_that_is_no_atlas_is_named(tmp_path, manifest, said):
    if manifest is not None:
        (tmp_path / MANIFEST).write_text(manifest)
    (tmp_path / PROMPTS).mkdir()
    with pytest.raises(UserError, match=said):
        read_atlas(tmp_path)
