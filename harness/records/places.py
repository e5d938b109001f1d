"""Where runs and what is made of them lie, seen from the folder that a command is called in."""

from pathlib import Path

RESULTS = Path("results")
RUNS = RESULTS / "runs"
REFERENCE = RESULTS / "reference"
RECORDS = "records.jsonl"
