"""Engines: the same tokens however a forward pass is executed."""

import json
import shutil

import pytest
import torch

from harness.cli.main import main
from harness.config.compose import compose
from harness.errors import UserError
from harness.models.execution.cache import KeyValueCache
from harness.models.execution.engine import Compiled, Eager, bucket, build_engine, written
from harness.models.execution.forward import forward_pass
from harness.running.build import build_model
from harness.tasks.toy import ToySource
from schedules import Autoregressive, Branches, Greedy, Linear, Packed, Quadratic, Stop

SCHEDULES = [Autoregressive(), Linear(7), Packed(7), Quadratic(3), Branches(7, [0, 2])]


class FixedShapes:
    """What compiled passes and recorded graphs compute, operation by operation."""

    has_fixed_shapes = True

    def __init__(self, pads_prompts: bool) -> None:
        self.pads_prompts = pads_prompts
        self.shapes: dict = {}

    def forward(self, backbone, cache, rows, shape):
        self.shapes.setdefault(shape, set()).add((rows.mask.shape, rows.kept.shape, cache.capacity))
        return forward_pass(backbone, cache.whole(written(cache, rows)), rows)


@pytest.fixture(scope="module")
def model():
    return build_model(compose(["model=tiny_nemotron", "model.device=cpu"]).model)


def decoded(model, engine, schedule, prompts):
    model.model.engine = engine
    items = ToySource("toy_math", 500).read().items[:prompts]
    try:
        return [
            schedule.decode(model.model, model.encode(item.fields["prompt"]), Greedy(), Stop(60, model.eos_ids))
            for item in items
        ]
    finally:
        model.model.engine = Eager()


@pytest.mark.parametrize("pads_prompts", [False, True], ids=["prompts_as_they_are", "prompts_padded"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda one: type(one).__name__)
def test_fixed_shapes_give_the_same_tokens_in_the_same_calls(model, schedule, pads_prompts):
    fixed = FixedShapes(pads_prompts)
    model.model.reserve(300)
    eager, other = (decoded(model, engine, schedule, prompts=3) for engine in (Eager(), fixed))
    assert [list(one.tokens) for one in eager] == [list(one.tokens) for one in other]
    assert [one.trace[1:] for one in eager] == [one.trace[1:] for one in other]
    assert all((one.trace[0] == other.trace[0]) != pads_prompts for one, other in zip(eager, other, strict=True))
    assert all(len(seen) == 1 for seen in fixed.shapes.values()), "shapes change within a run"


@pytest.mark.parametrize("mode", ["masked", "fused"])
def test_fixed_shapes_give_the_same_tokens_with_an_adapter(mode):
    adapted = build_model(
        compose(["model=tiny_nemotron", "model.device=cpu", "adapter=linear_spec_lora", f"adapter_mode={mode}"]).model
    )
    adapted.model.reserve(300)
    eager, padded = (decoded(adapted, engine, Packed(7), prompts=3) for engine in (Eager(), FixedShapes(True)))
    assert [list(one.tokens) for one in eager] == [list(one.tokens) for one in padded]
    assert [one.trace[1:] for one in eager] == [one.trace[1:] for one in padded]


@pytest.mark.parametrize(("length", "rows"), [(1, 64), (64, 64), (65, 128), (128, 128), (1000, 1024)])
def test_prompts_are_padded_to_a_power_of_two(length, rows):
    assert bucket(length) == rows


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++ on a CPU")
def test_compiled_passes_give_the_same_tokens(model):
    model.model.reserve(200)
    for schedule in (Packed(7),):
        eager, compiled = (decoded(model, engine, schedule, prompts=2) for engine in (Eager(), Compiled()))
        assert [list(one.tokens) for one in eager] == [list(one.tokens) for one in compiled]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++ on a CPU")
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda one: type(one).__name__)
def test_compiled_passes_give_the_same_tokens_under_every_schedule(model, schedule):
    model.model.reserve(200)
    eager, compiled = (decoded(model, engine, schedule, prompts=20) for engine in (Eager(), Compiled()))
    assert [list(one.tokens) for one in eager] == [list(one.tokens) for one in compiled]


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda one: type(one).__name__)
def test_recorded_graphs_give_the_same_tokens(schedule):
    model = build_model(compose(["model=tiny_nemotron", "model.device=cuda"]).model)
    graphs = build_engine("cudagraph", torch.device("cuda"))
    eager, replayed = (decoded(model, engine, schedule, prompts=20) for engine in (Eager(), graphs))
    assert [list(one.tokens) for one in eager] == [list(one.tokens) for one in replayed]


@pytest.mark.parametrize(
    ("name", "said"), [("cudagraph", "needs a CUDA device"), ("fast", "engine=fast: no such engine")]
)
def test_engines_that_are_not_to_be_had_are_refused(name, said):
    with pytest.raises(UserError, match=said):
        build_engine(name, torch.device("cpu"))


def test_a_family_that_has_no_engines_refuses_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "model=tiny_setdlm", "engine=compiled", "limit=1"]) == 2
    assert "error: engine=compiled: tiny_setdlm has no such choice" in capsys.readouterr().err


def test_the_engine_of_a_run_stands_in_its_manifest(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.models.execution.engine.Compiled", Eager)
    few = ["limit=1", "warmups=0", "drift_prompts=0", "task.max_new_tokens=4", "model.device=cpu", "run_dir=out"]
    assert main(["run", "engine=compiled", *few]) == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["config"]["engine"] == "compiled"


def test_a_cache_of_fixed_shape_writes_where_it_is_told_and_gives_everything():
    cache = KeyValueCache(1, 1, 1, torch.float32, torch.device("cpu"))
    cache.reserve(64)
    keys = torch.ones(1, 1, 2, 1)
    whole, _ = cache.whole(torch.tensor([3, 4])).update(keys, keys, 0)
    assert whole.shape[2] == cache.capacity
    assert whole.flatten().nonzero().flatten().tolist() == [3, 4]
