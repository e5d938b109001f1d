"""What stands inside the timed part of a response, and what does not."""

from types import SimpleNamespace

import pytest
import torch

from harness.system.clock import TimedModel


@pytest.fixture
def told(monkeypatch) -> list[str]:
    """In order, what a clock asks of a device that counts its memory."""
    seen: list[str] = []

    def tells(name, value=None):
        return lambda *_: seen.append(name) or value

    monkeypatch.setattr("torch.cuda.reset_peak_memory_stats", tells("reset"))
    monkeypatch.setattr("torch.cuda.max_memory_allocated", tells("peak", 123))
    monkeypatch.setattr("torch.accelerator.synchronize", tells("synchronize"))
    monkeypatch.setattr("harness.system.clock.time.perf_counter", tells("clock", 1.0))
    return seen


def timed(device: str, work):
    model = SimpleNamespace(device=torch.device(device), is_same_position=False)
    return TimedModel(model).time(work)[1]


def test_peak_memory_of_a_response_is_read_outside_of_its_timed_part(told):
    assert timed("cuda", lambda: told.append("work")).memory_bytes == 123
    assert told == ["reset", "synchronize", "clock", "work", "synchronize", "clock", "peak"]


def test_a_device_that_does_not_count_has_no_peak(told):
    assert timed("cpu", lambda: told.append("work")).memory_bytes is None
    assert told == ["clock", "work", "clock"]
