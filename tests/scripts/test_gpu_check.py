"""The GPU check at a tiny size on a CPU: what it measures, fits and writes."""

import json
import sys
import warnings
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import device_checks
import gpu_check

from harness.models.nemotron.layout import regular_layout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("check")
    assert gpu_check.main(["--models", "tiny_nemotron", "--sizes", "4,8", "--out", str(folder)]) == 0
    return folder


def test_packed_and_separate_calls_are_equal_and_every_point_is_measured(folder):
    report = json.loads((folder / "gpu_check.json").read_text())
    model = report["models"]["tiny_nemotron"]
    assert model["equality"]["float32"]["is_equal"]
    assert model["equality"]["float32"]["verifier"]["rows"] == 31
    assert model["equality"]["float32"]["proposals"]["rows"] == 30
    measured = {(point["schedule"], point["block_size"]): point for point in model["points"]}
    sizes = {"linear": (4, 8, 32), "packed": (4, 8, 32), "quadratic": (4, 8)}
    assert set(measured) == {(name, size) for name, every in sizes.items() for size in every}
    assert not model["left_out"]
    # 12 iterations of 72 rows and the prompt's 128 + 8, over 13 calls (table 2).
    assert measured["quadratic", 8]["rows"] == pytest.approx((12 * 72 + 136) / 13)
    assert measured["quadratic", 8]["is_paper"]
    assert all(0 < point["model_ms"] <= point["wall_ms"] for point in measured.values())
    assert model["fit"]["points"] == 8
    assert model["bandwidth_limit_ms"] > 0


def test_proposals_that_see_the_draft_are_found(monkeypatch):
    """Branch 0 assumes that nothing of the draft is accepted, so its rows must not see any of it (appendix D.1)."""

    def leaking(*shape):
        layout = regular_layout(*shape)
        layout.sees[layout.proposal_start :, 1:3] = True
        return layout

    monkeypatch.setattr("harness.models.nemotron.model.NemotronModel._regular_layout", staticmethod(leaking))
    found = gpu_check._equality(gpu_check._load("tiny_nemotron"), gpu_check.FLOAT32_BOUND)
    assert not found["is_equal"]
    assert found["verifier"]["largest_difference"] < gpu_check.FLOAT32_BOUND


def test_the_report_reads_as_markdown(folder):
    text = (folder / "gpu_check.md").read_text()
    assert "| packed | 32 (p) |" in text
    assert "tau = " in text
    assert "PARTIAL" not in text
    assert "the 10 exact ones give the right tokens\n" in text


def test_every_way_to_decode_is_tried_first(folder):
    report = json.loads((folder / "gpu_check.json").read_text())
    ways = {one["way"]: one for one in report["ways"]}
    assert ways["tiny_nemotron packed, greedy"]["tokens_are_right"]
    assert {"tiny_setdlm native", "tiny_setdlm packed, greedy, confidence", "tiny_nemotron linear, top-p"} <= set(ways)
    # A CPU has no transfers, and no graphs are recorded on it.
    assert all(one["waits"] is None for one in ways.values())
    assert not any("recorded" in way for way in ways)


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        ({"tokens_are_right": False}, "- one: WRONG TOKENS"),
        ({"tokens_are_right": True, "waits": 9, "most_waits": 8}, "waited 9 times, 8 allowed: TOO MANY"),
        ({"error": "no kernel image"}, "- one: FAILED (no kernel image)"),
    ],
)
def test_what_is_wrong_on_a_device_is_said(finding, said):
    right = device_checks.Finding("other", True, 8, 8)
    wrong = device_checks.Finding("one", **finding)
    (line,) = device_checks.lines([right._asdict(), wrong._asdict()])
    assert said in line
    assert not wrong.is_right
    (line,) = device_checks.lines([right._asdict()])
    assert "the host waits for the device no more often than it must" in line


def test_the_host_waits_as_often_as_pytorch_says(monkeypatch):
    modes = []
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)

    def work():
        for _ in range(3):
            warnings.warn(f"{device_checks.WAITED} (Triggered internally)", UserWarning, stacklevel=1)
        warnings.warn("something else", UserWarning, stacklevel=1)
        return "done"

    assert device_checks.waits_for(torch.device("cuda"), work) == ("done", 3)
    assert modes == ["warn", "default"]
    assert device_checks.waits_for(torch.device("cpu"), lambda: "done") == ("done", None)


def test_the_fit_finds_the_line_that_points_lie_on():
    points = [gpu_check.Point("packed", 4, rows, 3.0 + 0.02 * rows, 9.0, None) for rows in (8, 16, 64, 128)]
    far = gpu_check.Point("quadratic", 64, 4160, 500.0, 500.0, None)
    fit = gpu_check._fit([*points, far])
    assert (fit.tau_ms, fit.delta_us, fit.points) == (pytest.approx(3.0), pytest.approx(20.0), 4)
    assert fit.worst_error < 1e-9
    assert gpu_check._fit(points[:1]) is None


def test_what_there_was_no_time_for_is_said(tmp_path):
    arguments = ["--models", "tiny_nemotron", "--sizes", "4", "--out", str(tmp_path), "--minutes", "0"]
    assert gpu_check.main(arguments) == 0
    assert "PARTIAL: no time for linear at B = 4, linear at B = 32" in (tmp_path / "gpu_check.md").read_text()
