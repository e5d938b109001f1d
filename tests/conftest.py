"""Settings of the whole suite: one thread a process (workers share the cores), and the folder of the real data sets."""

import os
from pathlib import Path

# Before torch is imported, and for the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the real data sets' files; tests that need it are skipped without it."""
    folder = os.environ.get("HARNESS_DATA_DIR")
    if not folder:
        pytest.skip("HARNESS_DATA_DIR is not set: no real data sets to test against")
    return Path(folder)


@pytest.fixture(autouse=True)
def data_lie_where_tests_say(request, monkeypatch):
    """Runs look into that folder too, where nothing else is said."""
    if "data_dir" in request.fixturenames:
        request.getfixturevalue("data_dir")
    monkeypatch.delenv("HARNESS_DATA_DIR", raising=False)
