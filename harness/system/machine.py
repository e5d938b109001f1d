"""The machine that a run is made on: what it is, and what may slow it down just now."""

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

# Fields of nvidia-smi's --query-gpu, read at start and end of a run.
GPU_FIELDS = ("name", "driver_version", "clocks.sm", "clocks.max.sm", "power.draw", "power.limit", "temperature.gpu")
CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq")
BUSY_SHARE = 0.25


def description() -> Mapping[str, Any]:
    """What the machine is: host, system, processor, and the accelerators that the driver names."""
    return {
        "host": socket.gethostname(),
        "system": platform.platform(),
        "processor": _processor(),
        "accelerator": ", ".join(sorted({gpu["name"] for gpu in _gpus()})) or None,
    }


def command() -> list[str]:
    """The command line of this process."""
    return psutil.Process().cmdline()


def state() -> Mapping[str, Any]:
    """What decides its speed now, as far as it can be read: load, clocks in MHz, power in W, temperatures in C."""
    return {
        "load": round(os.getloadavg()[0], 2),
        "cpu_mhz": _mhz(CPU / "scaling_cur_freq"),
        "cpu_max_mhz": _mhz(CPU / "cpuinfo_max_freq"),
        "cpu_governor": _text(CPU / "scaling_governor"),
        "temperatures": {
            _text(zone / "type") or zone.name: int(value) / 1000
            for zone in sorted(Path("/sys/class/thermal").glob("thermal_zone*"))
            if (value := _text(zone / "temp"))
        },
        "gpus": _gpus(),
    }


def processor_flags() -> frozenset[str]:
    """Instruction sets and features of the processor, by Linux' names; none where the system does not tell."""
    return frozenset(" ".join(_cpuinfo("flags", "Features")[:1]).split())


def hints(state: Mapping[str, Any]) -> list[str]:
    """What a user should know about `state` before trusting times, one line each."""
    cores = os.cpu_count() or 1
    found = []
    if state["load"] > BUSY_SHARE * cores:
        found.append(f"other work runs on this machine (load {state['load']:g} on {cores} cores); times will be noisy")
    if state["cpu_governor"] == "powersave":
        found.append("the CPU frequency governor is powersave; times may drift")
    for gpu in state["gpus"]:
        if gpu["clocks.sm"] and gpu["clocks.max.sm"] and gpu["clocks.sm"] < 0.5 * gpu["clocks.max.sm"]:
            found.append(f"{gpu['name']} idles at {gpu['clocks.sm']:g} of {gpu['clocks.max.sm']:g} MHz before warm-up")
    return found


def _gpus() -> list[dict[str, Any]]:
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return []
    return [
        dict(zip(GPU_FIELDS, map(_value, line.split(", ")), strict=False)) for line in done.stdout.splitlines() if line
    ]


def _value(text: str) -> str | float | None:
    """A number where it is one; None where the driver does not tell."""
    if text.startswith("["):
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _mhz(path: Path) -> float | None:
    """Linux gives kHz."""
    text = _text(path)
    return int(text) / 1000 if text and text.isdigit() else None


def _processor() -> str:
    names = _cpuinfo("model name")
    return f"{names[0]} x {len(names)}" if names else platform.processor()


def _cpuinfo(*fields: str) -> list[str]:
    """What Linux says under any of `fields`, for each core."""
    lines = (_text(Path("/proc/cpuinfo")) or "").splitlines()
    return [line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() in fields]
