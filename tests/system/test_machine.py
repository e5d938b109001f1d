"""What a manifest says of the machine, and what a user is told before trusting times."""

import json

import pytest

from harness.system import machine

QUIET = {"load": 0.0, "cpu_governor": None, "gpus": []}
GPU = {"name": "Some GPU", "clocks.sm": 1400.0, "clocks.max.sm": 1410.0}


def test_description_and_state_can_be_written_as_json():
    described = json.loads(json.dumps(machine.description()))
    assert described["host"]
    assert described["processor"]
    state = json.loads(json.dumps(machine.state()))
    assert state["load"] >= 0
    assert {"cpu_mhz", "cpu_governor", "temperatures", "gpus"} <= state.keys()


def test_processor_flags_are_read_on_x86_and_arm(monkeypatch):
    for name in ("flags\t\t", "Features\t"):
        monkeypatch.setattr(machine, "_text", lambda path, name=name: f"processor\t: 0\n{name}: fp bf16\n\n{name}: fp")
        assert machine.processor_flags() == {"fp", "bf16"}


def test_a_quiet_machine_gets_no_hint():
    assert machine.hints(QUIET | {"gpus": [GPU]}) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"load": 1000.0}, "other work runs on this machine (load 1000"),
        ({"cpu_governor": "powersave"}, "governor is powersave"),
        ({"gpus": [GPU | {"clocks.sm": 210.0}]}, "Some GPU idles at 210 of 1410 MHz"),
    ],
)
def test_what_makes_times_noisy_is_said(change, said):
    hints = machine.hints(QUIET | change)
    assert len(hints) == 1
    assert said in hints[0]


def test_the_drivers_answer_is_read_field_by_field(monkeypatch):
    line = "Some GPU, 550.1, 1400, 1410, 250.5, 400.00, [N/A]\n"
    monkeypatch.setattr(machine.shutil, "which", lambda name: name)
    done = machine.subprocess.CompletedProcess([], 0, stdout=line)
    monkeypatch.setattr(machine.subprocess, "run", lambda *arguments, **options: done)
    (gpu,) = machine.state()["gpus"]
    assert gpu["name"] == "Some GPU"
    assert (gpu["clocks.sm"], gpu["power.draw"], gpu["temperature.gpu"]) == (1400.0, 250.5, None)
