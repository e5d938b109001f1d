"""From the command to the first recorded response."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from harness.analysis.table import Column, Number, Table
from harness.system.clock import stopwatch

REPEATS = 3
POLL_S = 0.02
IMPORTS = "import torch, transformers; transformers.Ministral3ForCausalLM"


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
    base = median(imports)
    return Table(
        name="startup",
        title="Start-up",
        columns=[Column("what"), Column("seconds"), Column("x imports")],
        rows=[
            ("importing torch and the backbone's class", Number(base, 2), Number(1.0, 2)),
            ("run, to its first record", Number(median(runs), 2), Number(median(runs) / base, 2)),
        ],
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
