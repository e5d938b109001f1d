"""From the command to the first recorded response."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from harness.analysis.table import Column, Table
from harness.bench.embedded import beside
from harness.system.clock import stopwatch

REPEATS = 3
POLL_S = 0.02
IMPORTING = "importing torch and the backbone's class"
IMPORTS = "import torch, transformers; transformers.Ministral3ForCausalLM"
# Of a `Timed`.
COLUMNS = (
    Column("what", "", lambda one: one.name),
    Column("seconds", "", lambda one: one.time, decimals=2),
    Column("x imports", "", lambda one: one.ratio, decimals=2),
)


def steps() -> int:
    """How often `startup_part` notes a measurement."""
    return 2 * REPEATS


def startup_part(note: Callable[[], None]) -> Table:
    """Seconds to the first record, beside those that importing the libraries takes.

    Args:
      note: called once a measurement.
    """
    imports, runs = [], []
    for _ in range(REPEATS):
        imports.append(stopwatch(lambda: subprocess.run([sys.executable, "-c", IMPORTS], check=True))[1])
        note()
        runs.append(stopwatch(_first_record)[1])
        note()
    return Table(
        name="startup",
        title="Start-up",
        columns=COLUMNS,
        items=beside(IMPORTING, {IMPORTING: median(imports), "run, to its first record": median(runs)}),
        notes=["tiny_nemotron, toy_math, packed, one prompt without warm-up; medians of new processes."],
    )


def _first_record() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "harness", "run", "limit=1", "warmups=0", f"run_dir={folder}/run"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        records = Path(folder) / "run" / "records.jsonl"
        while process.poll() is None and not (records.exists() and records.stat().st_size):
            time.sleep(POLL_S)
        process.wait()
