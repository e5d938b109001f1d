"""The toy languages: disjoint splits, right answers, the same items everywhere."""

import importlib
from itertools import islice

import pytest

from harness.config.compose import compose
from harness.running.build import build
from harness.tasks.toy import TEST_SHARE, ToySource, examples, split_of

LANGUAGES = ["toy_math", "toy_code", "toy_writing"]


def stream(language, split, seed, count):
    generate = importlib.import_module(f"harness.tasks.{language}").generate
    return list(islice(examples(generate, split, seed), count))


@pytest.mark.parametrize("language", LANGUAGES)
def test_training_and_test_contents_are_disjoint(language):
    training = {example.content for seed in range(3) for example in stream(language, "train", seed, 1500)}
    tested = {example.content for example in stream(language, "test", 0, 500)}
    assert not training & tested
    assert all(split_of(content) == "train" for content in training)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_test_prompt_never_occurs_in_training(language):
    training = {example.prompt for example in stream(language, "train", 1, 4000)}
    assert not training & {example.prompt for example in stream(language, "test", 0, 500)}


def test_about_one_content_in_eight_is_for_testing():
    share = sum(split_of(str(number)) == "test" for number in range(4000)) / 4000
    assert abs(share - TEST_SHARE) < 0.02


@pytest.mark.parametrize("language", LANGUAGES)
def test_items_are_the_same_every_time_and_distinct(language):
    first, second = (ToySource(language, 100).read().items for _ in range(2))
    assert first == second
    assert len({item.fields["prompt"] for item in first}) == 100
    assert [item.prompt_id for item in first[:2]] == [f"{language}/0", f"{language}/1"]


@pytest.mark.parametrize("language", ["toy_math", "toy_code"])
def test_the_training_answers_pass_their_grader(language):
    grader = build(compose([f"task={language}"]).task, "task").grader
    for example in stream(language, "test", 0, 12):
        assert grader.grade(example.response, example.reference).correct is True


def test_a_wrong_total_fails():
    grader = build(compose(["task=toy_math"]).task, "task").grader
    for example in stream("toy_math", "test", 0, 12):
        wrong = example.response.replace("boxed{", "boxed{1")
        assert grader.grade(wrong, example.reference).correct is False


def test_totals_stay_within_two_digits():
    for example in stream("toy_math", "train", 5, 500):
        totals = [int(step.split("=")[1]) for step in example.response.split(", ")[:-1]]
        assert all(0 <= total <= 99 for total in totals)
