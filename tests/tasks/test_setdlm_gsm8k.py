"""GSM8K as the SetDLM checkpoints are evaluated on it: prompt, stop texts and scoring reach the run."""

import json

import pytest
import torch
from omegaconf import OmegaConf

from harness.config.compose import compose
from harness.errors import UserError
from harness.models.language_model import LanguageModel
from harness.records.folder import RunFolder
from harness.records.manifest import identity
from harness.records.record import read_records
from harness.running.build import build
from harness.running.plan import plan
from harness.running.runner import Runner
from schedules.response import Response
from scripts.tiny_tokenizer import train_tokenizer

QUESTION = "Two boxes hold {3} pens each. How many pens are there?"
THINKING_OFF = "{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"


class Silent:
    """An observer that shows nothing."""

    def started(self, total, done): ...

    def paced(self, longest_s): ...

    def recorded(self, record): ...

    def finished(self): ...


class Spy:
    """A schedule that answers with the marker and keeps what it was told."""

    width = 8

    def decode(self, model, prompt, rule, stop, order=None) -> Response:
        self.prompt, self.stop = prompt, stop
        return Response(tokens=[*stop.markers[0]], trace=[], stop_reason="marker")


@pytest.fixture
def language_model() -> LanguageModel:
    tokenizer = train_tokenizer(["Question: one and two", "<think>\n\n</think>\n\n"], vocab_size=300)
    tokenizer.chat_template += THINKING_OFF

    class Stub:
        device, is_same_position = torch.device("cpu"), True

        def reserve(self, tokens):
            pass

    return LanguageModel("setdlm", Stub(), tokenizer, frozenset([tokenizer.eos_token_id]), context_length=2048)


@pytest.fixture
def run_of(tmp_path, language_model):
    """Runs the task on one question and gives what the schedule was told and the record."""
    data = tmp_path / "test.jsonl"
    data.write_text(json.dumps({"question": QUESTION, "answer": "Twice three.\n#### 6"}) + "\n")

    def run(*overrides: str):
        data_and_times = [f"task.data_files={data}", "warmups=0", "drift_prompts=0"]
        config = compose(["task=gsm8k_setdlm", *data_and_times, *overrides])
        task = build(config.task, "task")
        spy = Spy()
        prepared = plan(config, task, {"spy": spy}, build(config.order, "order"))
        folder = RunFolder(tmp_path / "run")
        with folder.working(identity(OmegaConf.to_container(config), prepared.facts(), {})):
            Runner(prepared, language_model, folder).run(Silent())
        return spy, next(iter(read_records(folder.records_file)))

    return run


def test_the_prompt_is_the_instruction_and_the_question_without_a_think_block(run_of, language_model):
    spy, _ = run_of()

    assert language_model.tokenizer.decode(spy.prompt) == (
        "<|im_start|>user\n"
        rf"Please reason step by step, and put your final answer within $\boxed{{}}$. {QUESTION}<|im_end|>"
        "\n<|im_start|>assistant\n"
    )


def test_thinking_off_is_handed_to_the_chat_template(run_of, language_model):
    spy, _ = run_of("task.thinking=false")

    assert language_model.tokenizer.decode(spy.prompt).endswith("assistant\n<think>\n\n</think>\n\n")


def test_stop_texts_become_token_sequences_and_1024_positions_are_open(run_of, language_model):
    spy, record = run_of()

    assert spy.stop.max_new_tokens == 1024
    texts = [language_model.tokenizer.decode(marker) for marker in spy.stop.markers]
    assert texts == ["Question:", "</s>", "<|eot_id|>"]
    assert all(len(marker) > 1 for marker in spy.stop.markers)
    assert (record.task, record.stop_reason, record.text) == ("gsm8k", "marker", "Question:")


def test_scoring_is_the_releases_with_both_filters_kept(run_of):
    _, record = run_of()

    assert record.verdict["correct"] is False
    assert {"flexible_match", "strict_match"} <= set(record.verdict)


def test_stop_texts_are_refused_for_a_causal_verifier(run_of, language_model):
    type(language_model.model).is_same_position = False

    with pytest.raises(UserError, match=r"task\.stop_texts=\['Question:'.*SetDLM models only, setdlm is none"):
        run_of()


@pytest.mark.parametrize("value", ["Question", '[""]', "[3]"])
def test_stop_texts_that_are_no_list_of_texts_are_refused(run_of, value):
    with pytest.raises(UserError, match=r"task\.stop_texts=.*need a list of texts"):
        run_of(f"task.stop_texts={value}")
