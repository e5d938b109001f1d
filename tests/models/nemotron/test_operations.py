"""The host's part of an iteration: few tensor operations, one transfer, whatever the width and what was accepted."""

import pytest
from harness.bench.operations import operations_per_iteration

from harness.building import build_model
from harness.config import compose
from harness.tasks.toy import ToySource


@pytest.fixture(scope="module")
def model():
    return build_model(compose(["model=tiny_nemotron", "model.device=cpu"]).model)


def counted(model, schedule, prompt=0):
    item = ToySource("toy_math", 500).read().items[prompt]
    return operations_per_iteration(model.model, model.backbone_calls, schedule, model.encode(item.fields["prompt"]))
