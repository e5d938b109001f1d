"""What a run would do, without data, weights or device: cells with prompts, responses, and hours on the paper's GPU."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from omegaconf import OmegaConf

from harness.analysis.paper.gpu_hours import Estimate, seconds_a_response
from harness.analysis.paper.published import read_published
from harness.config.cells import PlannedCell
from harness.config.run_config import RunConfig
from harness.errors import UserError
from harness.records.shard import read_shard
from harness.running.build import build
from harness.tasks.task import Source
from harness.text import MISSING, aligned

HEADER = ("", "prompts", "responses", "recorded", "GPU hours", "estimate")


def dry_run(cells: Sequence[PlannedCell]) -> str:
    """A table of `cells` with their commands and a total.

    Raises:
      UserError: a cell's config does not compose.
    """
    statements = read_published()
    rows: list[Sequence[str]] = [HEADER]
    commands, totals, unknown, data = [], [0, 0, 0.0], 0, {}
    for number, cell in enumerate(cells, start=1):
        config = OmegaConf.to_container(composed := cell.config(), resolve=True)
        source = build(composed.task, "task").source
        data[config["task"]["name"]] = _data(source)
        prompts = _prompts(composed, source)
        responses = prompts * len(config["schedules"]) * (config["task"]["repetitions"] if config["temperature"] else 1)
        recorded = _recorded(composed.run_dir)
        estimate = seconds_a_response(statements, config)
        hours = _hours(estimate, responses)
        unknown += hours is None
        totals = [totals[0] + responses, totals[1] + recorded, totals[2] + (hours or 0.0)]
        rows.append((str(number), f"{prompts:,}", f"{responses:,}", f"{recorded:,}", _shown(hours), estimate.source))
        commands.append(f"{number}: python -m harness run {' '.join(cell.command)}")
    total_hours = _shown(totals[2] if unknown < len(cells) else None)
    rows.append(("all", "", f"{totals[0]:,}", f"{totals[1]:,}", total_hours, _left_out(unknown)))
    lines = aligned(rows, is_left=[True, False, False, False, False, True])
    note = (
        "GPU hours: responses times seconds a response, on one A100 80GB. Stated are only the adapter's (F.2); all "
        "others are scaled from them by the cap on new tokens, a rough guide."
    )
    found = aligned([(f"data, {task}:", where) for task, where in data.items()], is_left=[True, True])
    return "\n".join([*commands, "", *lines, "", *found, "", note])


def _data(source: Source) -> str:
    """Where a task's items come from, as far as it is known without reading them."""
    files = getattr(source, "files", None)
    if files is None:
        return "generated"
    try:
        located = files.locate()
    except UserError as error:
        return f"MISSING: {error}"
    if located is None:
        return "from the hub" if hasattr(source, "revision") else f"MISSING: {' or '.join(files.names)} in data_dir=DIR"
    return located.path if Path(located.path).is_file() else f"MISSING: no file {located.path}"


def _prompts(config: RunConfig, source: Source) -> int:
    """Prompts of a run by the published size of its data set, which need not be there."""
    expected = getattr(source, "expected_items", None)
    if isinstance(expected, Mapping):
        expected = expected[config.task.selection]
    total = len(source.read().items) if expected is None else expected
    if config.prompts is not None:
        total = len(config.prompts)
    if config.limit is not None:
        total = min(total, config.limit)
    return len(read_shard(config.shard).part(range(total)))


def _recorded(folder: str | None) -> int:
    file = Path(folder or "") / "records.jsonl"
    return file.read_bytes().count(b"\n") if folder and file.is_file() else 0


def _hours(estimate: Estimate, responses: int) -> float | None:
    return None if estimate.seconds is None else estimate.seconds * responses / 3600


def _shown(hours: float | None) -> str:
    return MISSING if hours is None else f"{hours:.1f}"


def _left_out(unknown: int) -> str:
    return f"PARTIAL: {unknown} cells without an estimate" if unknown else ""
