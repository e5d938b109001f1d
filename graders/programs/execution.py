"""Runs a tested program against its tests in a sandbox, and says how it ended.

The mechanism is in `graders.programs.sandbox`; here is the calling side: what goes in, and what the report means.
"""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graders.programs.reference import CodeReference, helpers, imports, split_setup
from graders.programs.sandbox import processes

PACKAGE_ROOT = str(Path(__file__).resolve().parents[2])
BOOTSTRAP = (
    "import sys; standard = list(sys.path); sys.path.append({root!r}); "
    "from graders.programs.sandbox.supervisor import start; start(standard)"
)
PATIENCE = 6  # a starved program gets up to this many times its wall limit
GRACE_S = 20.0
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # the order of sets must not decide a verdict
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Limits:
    """What one program may use.

    Attributes:
      cpu_s: processor seconds, for the program and for the tests each.
      wall_s: seconds on the clock, not counting those in which the program was ready and had no core.
      memory_bytes: address space of a process, and memory of all together.
      disk_bytes: all files in the private folder together, and each.
      processes: processes and threads.
      isolation: `full` takes away all the kernel allows; `limits` leaves resource limits only.

    Raises:
      ValueError: another kind of isolation.
    """

    cpu_s: int = 20
    wall_s: float = 40.0
    memory_bytes: int = 2 << 30
    disk_bytes: int = 64 << 20
    processes: int = 64
    isolation: str = "full"

    def __post_init__(self) -> None:
        if self.isolation not in ("full", "limits"):
            raise ValueError(f"isolation={self.isolation}: no such kind. Known: full, limits.")


@dataclass(frozen=True)
class Outcome:
    """How a program fared: `passed`, `failed`, `timeout`, `memory`, `crashed` or `infra`, and detail lines."""

    kind: str
    detail: str = ""


def execute(program: str, reference: CodeReference, limits: Limits) -> Outcome:
    """Runs `program`, then the tests of `reference` against it.

    Blocks until every process of the run is gone. May be called from several threads at once.

    Returns:
      `passed` only if the tests ran to their end in a process that no code of the program ever entered.
    """
    nonce = secrets.token_hex(16)
    before, setup = split_setup(reference.setup)
    case = {
        "nonce": nonce,
        "program": program,
        "before": before,
        "after": "\n".join(filter(None, map(imports, reference.tests))),
        "setup": "\n".join([helpers(reference.prompt, reference.entry_point), setup]),
        "tests": reference.tests,
        "entry_point": reference.entry_point,
        "cpu_s": limits.cpu_s,
    }
    folder = tempfile.mkdtemp(prefix="graders-")
    try:
        report = _supervise(case, folder, limits)
    finally:
        _remove(folder)
    return understand(report, nonce, limits)


def understand(report: Mapping[str, Any] | str, nonce: str, limits: Limits) -> Outcome:
    """What a supervisor's report means.

    Args:
      report: the supervisor's report, or a line on why there is none.
      nonce: must stand in the judge's decision.
      limits: the limits the program ran under.
    """
    if isinstance(report, str):
        return Outcome("infra", report)
    try:
        decision = json.loads(report["decision"] or "{}")
    except ValueError:
        decision = {}
    is_decided = report["ended"] == "decided" and decision.get("nonce") == nonce
    if is_decided and decision["outcome"] not in ("crashed", "infra"):
        return Outcome(decision["outcome"], decision["detail"])
    if report["ended"] == "abandoned":
        return Outcome("infra", "the grader went away")
    if report["ended"] == "memory":
        return Outcome("memory", f"more than {limits.memory_bytes >> 20} MiB in all its processes")
    if report["ended"] == "disk":
        return Outcome("failed", f"more than {limits.disk_bytes >> 20} MiB of files")
    cpu_s = max(report["cpu_s"], report["judge_cpu_s"])
    if report["ended"] == "cpu" or cpu_s >= limits.cpu_s:
        return Outcome("timeout", f"{limits.cpu_s} s of processor time")
    if report["ended"] == "wall":
        if report["wall_s"] - report["waiting_s"] < limits.wall_s:
            return Outcome("infra", f"starved: {cpu_s:.1f} s of processor time in {report['wall_s']:.0f} s")
        return Outcome("timeout", f"{limits.wall_s:g} s")
    if is_decided and decision["outcome"] == "infra":
        return Outcome("infra", decision["detail"])
    if report["player_signal"] == signal.SIGKILL and report["oom_kills"]:
        kind = "memory" if report["peak_bytes"] > limits.memory_bytes // 2 else "infra"
        return Outcome(kind, f"the machine ran out of memory; the program held {report['peak_bytes'] >> 20} MiB")
    if is_decided or not report["is_separate"]:
        return Outcome("crashed", _ending(report, decision))
    if report["judge_signal"] not in (0, signal.SIGKILL):
        return Outcome("crashed", f"an answer that ended the tests by {signal.Signals(report['judge_signal']).name}")
    return Outcome("infra", f"the judge ended by signal {report['judge_signal']}")


def _ending(report: Mapping[str, Any], decision: Mapping[str, Any]) -> str:
    where = decision.get("detail", "").partition("\n")[0]
    if report["player_exit"] is None:
        return where
    if report["player_signal"]:
        return f"{where}\n{signal.Signals(report['player_signal']).name}"
    return f"{where}\nexit status {report['player_exit']}"


def _supervise(case: Mapping[str, Any], folder: str, limits: Limits) -> Mapping[str, Any] | str:
    """Starts a supervisor for one case and waits for its report."""
    patience_s = PATIENCE * limits.wall_s
    settings = asdict(limits) | {"patience_s": patience_s, "folder": folder, "packages": _packages(), "guard": _guard()}
    listening, lifeline = os.pipe()
    command = [sys.executable, "-S", "-s", "-P", "-c", BOOTSTRAP.format(root=PACKAGE_ROOT)]
    try:
        supervisor = subprocess.Popen(
            [*command, json.dumps(settings), str(listening)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=ENVIRONMENT,
            cwd="/",
            pass_fds=[listening],
            start_new_session=True,
        )
    except OSError as error:
        os.close(lifeline)
        return f"the supervisor did not start: {error}"
    finally:
        os.close(listening)
    try:
        output, _ = supervisor.communicate(json.dumps(case).encode("ascii"), timeout=patience_s + GRACE_S)
        return json.loads(output)
    except subprocess.TimeoutExpired:
        return f"no report within {patience_s + GRACE_S:g} s"
    except (ValueError, OSError) as error:
        return f"the supervisor gave no report: {error}"
    finally:
        _end(supervisor)
        os.close(lifeline)


def _end(supervisor: subprocess.Popen) -> None:
    """Leaves no process of a supervisor that did not end by itself."""
    if supervisor.poll() is None:
        for pid in [*processes.descendants(supervisor.pid), supervisor.pid]:
            processes.signal_one(pid, signal.SIGKILL)
        supervisor.communicate()


def _packages() -> list[str]:
    """Folders of installed packages, which a tested program may import as well."""
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def _guard() -> str | None:
    """The file of evalplus' reliability guard, found without importing the package."""
    spec = importlib.util.find_spec("evalplus")
    if spec is None or spec.origin is None:
        return None
    return str(Path(spec.origin).parent / "eval" / "utils.py")


def _remove(folder: str) -> None:
    """Removes a private folder, whatever modes its contents were given."""
    os.chmod(folder, stat.S_IRWXU)
    for place, folders, _ in os.walk(folder):
        for name in folders:
            if not os.path.islink(os.path.join(place, name)):
                os.chmod(os.path.join(place, name), stat.S_IRWXU)  # before the walk goes there
    shutil.rmtree(folder, ignore_errors=True)
