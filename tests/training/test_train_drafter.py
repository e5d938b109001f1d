"""A drafter is trained on what the model says; killed anywhere it goes on; what it then drafts is verified exactly."""

import json
import multiprocessing
import os
import signal
import time

import pytest
import torch
from safetensors.torch import load_file

from harness.cli.main import main
from harness.models.causal.loader import CausalLoader
from schedules import Autoregressive, Branches, Greedy, Linear, Packed, Quadratic, Stop
from tests.builders.causal import checkpoint

# Random weights write no questions: all prompts are a user's here.
SETTINGS = ("model=causal", "model.dtype=float32", "model.device=cpu", "prompts=0", "tokens=24", "rank=4", "width=4")


def arguments(base, out, *more):
    """Of a training on 26 prompts that stand beside the model."""
    file = base / "prompts.jsonl"
    file.write_text("".join(json.dumps({"prompt": f"Question {number}?"}) + "\n" for number in range(26)))
    return ["train-drafter", *SETTINGS, f"model.path={base}", f"data={file}", f"out={out}", *more]


def train(base, out, *more):
    return main(arguments(base, out, *more))


def start(given) -> multiprocessing.Process:
    """A training in a process of its own; forked, as everything that it needs is imported already."""

    def child():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.dup2(2, 1)
        torch.set_num_threads(1)  # threads of the parent are not there
        main(given)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    return process


@pytest.fixture(scope="module", params=["Qwen3", "Mistral"])
def trained(request, tmp_path_factory):
    """A small random model, and its drafter after a few steps."""
    folder = tmp_path_factory.mktemp(request.param)
    base = checkpoint(folder / "base", request.param)
    assert train(base, folder / "drafter", "steps=30") == 0
    return base, folder / "drafter"


def loaded(base, drafter=None):
    return CausalLoader(
        name="mine", path=str(base), dtype="float32", device="cpu", drafter=drafter and str(drafter)
    ).load()


def test_decoding_with_a_trained_drafter_is_exact(trained):
    base, out = trained
    bare, drafting = loaded(base), loaded(base, out)
    assert drafting.facts["notices"] == []
    stop = Stop(30, bare.eos_ids)
    for question in ("Two and two?", "Write a story about a fox."):
        prompt = bare.encode(question)
        expected = Autoregressive().decode(bare.model, prompt, Greedy(), stop).tokens
        for schedule in (Linear(4), Packed(4), Quadratic(4), Branches(4, [0, 2])):
            assert schedule.decode(drafting.model, prompt, Greedy(), stop).tokens == expected


def test_its_description_says_how_to_repeat_it_and_how_it_went(trained):
    _, out = trained
    said = json.loads((out / "drafter.json").read_text())
    training = said["training"]
    assert (said["convention"], said["rank"], training["steps"], training["width"]) == ("next", 4, 30, 4)
    assert "train-drafter" in training["commands"][0]
    assert training["losses"][-1]["step"] == 30
    assert len(training["evaluations"][-1]["right"]) == 4
    assert list(said["base_model"]["weights_sha256"]) == ["model.safetensors"]


def test_a_killed_training_ends_as_if_nothing_had_happened(trained, tmp_path, monkeypatch):
    base, whole = trained
    monkeypatch.setattr("harness.training.train.SECONDS_A_CHECKPOINT", 0.0)
    out = tmp_path / "drafter"
    for _ in range(4):
        process = start(arguments(base, out, "steps=30"))
        # Through the prompts and responses, then into the steps.
        deadline = time.monotonic() + 60
        before = _stamp(out)
        while _stamp(out) == before and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()
    assert train(base, out, "steps=30") == 0
    one, other = load_file(whole / "drafter.safetensors"), load_file(out / "drafter.safetensors")
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (out / "training/responses.jsonl").read_text() == (whole / "training/responses.jsonl").read_text()


def _stamp(out):
    """What says that another part of the work was kept."""
    return sorted((one.name, one.stat().st_mtime_ns) for one in out.rglob("*") if one.suffix in (".jsonl", ".pt"))


def test_other_settings_are_refused_and_more_steps_are_not(trained, capsys):
    base, out = trained
    assert train(base, out, "steps=30", "seed=1") == 2
    assert "other settings: seed was 0, is 1" in capsys.readouterr().err
    assert train(base, out, "steps=32") == 0
    assert "accepted on average" in capsys.readouterr().out
    assert json.loads((out / "drafter.json").read_text())["training"]["steps"] == 32


def test_it_trains_on_the_models_own_greedy_responses(trained):
    base, out = trained
    line = json.loads((out / "training" / "responses.jsonl").read_text().splitlines()[0])
    model = loaded(base)
    prompt, response = line["examples"][0]
    assert prompt == model.encode("Question 0?")
    assert response == Autoregressive().decode(model.model, prompt, Greedy(), Stop(24, model.eos_ids)).tokens


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["model=smollm2"], "needs out=DIR"),
        (["model=tiny_nemotron", "out=x"], "drafts by itself"),
        (["model=tiny_nemotron", "out=x", "rank=0"], "need an integer of at least 1"),
        (["model=tiny_nemotron", "out=x", "task=gsm8k"], "no such key"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(tmp_path, monkeypatch, capsys, given, said):
    monkeypatch.chdir(tmp_path)
    assert main(["train-drafter", *given]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
