"""Prompts of a training: from lists of our own and what the model makes of them, or from a user's file."""

import json

import pytest

from harness.errors import UserError
from harness.training.prompts import KINDS, Request, read_prompts, requests


def test_requests_are_the_same_for_a_seed_and_of_every_kind():
    made = requests(400, "0/0")
    assert made == requests(400, "0/0")
    assert made[:24] != requests(24, "0/1")
    endings = {request.ending for request in made}
    assert endings == {ending for kind in KINDS for ending in kind.endings}
    assert not any("{" in request.text + request.opening for request in made)


@pytest.mark.parametrize(
    ("written", "prompt"),
    [
        (" three apples. How many are left?\n\nSolution: 2", "Ada has three apples. How many are left? Be brief."),
        (" f{x} apples and {} pears, has she?", "Ada has f{x} apples and {} pears, has she? Be brief."),
        (" three apples and is cut in the", None),
        (" it.", None),
        ("", None),
    ],
)
def test_a_question_is_the_first_paragraph_when_it_is_whole(written, prompt):
    assert Request("Write a problem.", "Ada has", "{question} Be brief.").prompt(written) == prompt


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.txt", "One?\n\nTwo?\n"),
        ("mine.jsonl", "".join(json.dumps({"prompt": one, "more": 1}) + "\n" for one in ("One?", " Two? "))),
        ("mine.csv", "more,prompt\n1,One?\n2,Two?\n"),
    ],
)
def test_a_users_prompts_are_read(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_prompts(tmp_path / name) == ["One?", "Two?"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("mine.txt", "\n", "holds no prompt"),
        ("mine.jsonl", '{"question": "One?"}\n', "need a field prompt"),
        ("mine.jsonl", "One?\n", "need a field prompt"),
        ("mine.csv", "question\nOne?\n", "need a field prompt"),
        ("nowhere.txt", None, "cannot be read"),
    ],
)
def test_a_file_without_prompts_is_refused(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=said):
        read_prompts(tmp_path / name)
