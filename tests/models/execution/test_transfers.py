"""What passes between host and device while decoding: counted on the pretend accelerator, for every way to decode."""

from pathlib import Path

import pytest
import torch

from harness.models.loading.placement import placement
from tests.builders.device_decoding import SHOWN, WAYS, Way, build, counted, rows
from tests.builders.pretend_accelerator import MixedDevices, device, watched

PAGE = Path(__file__).parents[3] / "docs" / "speed.md"


@pytest.fixture(scope="module")
def models():
    """Builds each model once."""
    built = {}

    def get(way: Way, is_on_device: bool):
        key = (way.family, way.adapter, is_on_device)
        if key not in built:
            built[key] = build(*key)
        return built[key]

    return get


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_device_gives_the_hosts_tokens_with_few_transfers(models, way):
    on_host = way.decode(models(way, is_on_device=False))
    found = counted(way, models(way, is_on_device=True))
    assert found.response == on_host
    # What was accepted goes to the host. The prompt goes to the device, and what a window is about.
    assert found.traffic.to_host == found.iterations
    assert found.traffic.to_device <= 1 + found.iterations * (way.family == "setdlm")


def test_the_page_has_the_transfers_that_are_counted():
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text().splitlines()]
    shown = {row[0]: (row[2], row[4]) for row in cells if len(row) == 7}
    counts = {name: (to_host, to_device) for name, to_host, to_device, _ in rows(SHOWN)}
    assert counts.items() <= shown.items()


def test_nobody_gets_the_pretended_device_who_does_not_name_it():
    before = placement("auto", "float32").device
    assert torch.ones(1, device=device()).device != before
    assert placement("auto", "float32").device == before
    assert before.type != device().type


def test_tensors_of_host_and_device_do_not_mix():
    one, other = torch.ones(2, device=device()), torch.ones(2)
    for mix in (lambda: one + other, lambda: torch.cat([one, other]), lambda: torch.where(one > 0, one, other)):
        with pytest.raises(MixedDevices):
            mix()
    assert (one + 1).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("work", "to_host", "to_device"),
    [
        (lambda _: torch.tensor([1, 2], device=device()), 0, 1),
        (lambda _: torch.ones(2).to(device()), 0, 1),
        (lambda one: one.copy_(torch.ones(4)), 0, 1),
        (lambda one: one[[0, 1]], 0, 1),
        (lambda one: one[torch.tensor([0])], 0, 1),
        (lambda one: torch.where(one > 0, one, torch.tensor(2.0)), 0, 1),
        (lambda one: torch.where(one > 0, one, 2.0), 0, 0),
        (lambda one: one.tolist(), 1, 0),
        (lambda one: one.cpu(), 1, 0),
        (lambda one: one.sum().item(), 1, 0),
        (lambda one: bool(one.any()), 1, 0),
        (lambda one: one[one > 0], 1, 0),
        (lambda one: one.nonzero(), 1, 0),
        (lambda one: one[one.argmax()], 1, 0),
        (lambda one: torch.ones(4).copy_(one), 1, 0),
        (lambda one: (one[1:] * 2 + one.sum()).clone(), 0, 0),
        (lambda one: one.index_select(0, torch.arange(2, device=device())), 0, 0),
    ],
)
@pytest.mark.parametrize("is_inference", [False, True], ids=["", "inference"])
def test_every_transfer_is_counted(work, to_host, to_device, is_inference):
    with torch.inference_mode(is_inference):
        one = torch.ones(4, device=device())
        with watched() as traffic:
            work(one)
    assert (traffic.to_host, traffic.to_device) == (to_host, to_device)
    assert traffic.operations >= 1
