"""One run from its config to its summary: what is asked for is checked, decoded, recorded and summed up."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from harness.config.compose import comparable
from harness.config.run_config import PLACES, RunConfig
from harness.errors import UserError
from harness.records.folder import RunFolder
from harness.records.frame import read_run
from harness.records.manifest import identity
from harness.records.places import RUNS
from harness.records.shard import shard_folder
from harness.records.summary import summarize
from harness.running.build import build_plan, find_model
from harness.running.runner import Observer, Runner
from harness.system.machine import hints
from harness.system.signals import goes_on_with

log = logging.getLogger(__name__)

# Choices that not every model has, and what those do that have none.
CHOICES = {"weights": "released", "engine": "eager"}
OWN_DRAFTER = "auto"


@dataclass(frozen=True)
class Finished:
    """A run that came to its end.

    Attributes:
      summary: see `harness.records.summary`.
      expected: responses that each schedule should have.
    """

    folder: RunFolder
    summary: Mapping[str, Any]
    expected: int


def run(config: RunConfig, observer: Observer) -> Finished:
    """Runs the cell that `config` describes, or what is missing of it.

    Raises:
      UserError: anything wrong with the config, the data, the model or the folder.
    """
    if config.cells:
        raise UserError("experiment: its cells are runs of their own; --dry-run shows a command for each.")
    for key, plain in CHOICES.items():
        if config.model.get(key, plain) != config[key]:
            raise UserError(f"{key}={config[key]}: {config.model.name} has no such choice. Use {key}={plain}.")
    if config.drafter != OWN_DRAFTER and "drafter" not in config.model:
        raise UserError(
            f"drafter={config.drafter}: {config.model.name} takes none; plain causal models do. Leave it out."
        )
    loader = find_model(config.model)
    plan = build_plan(config)
    if config.weights != "random" and plan.acceptance is None:
        plan.task.check_grader()
    lacks = getattr(loader, "lacks", "")
    drafting = [name for name, schedule in plan.schedules.items() if schedule.width]
    if lacks and drafting:
        raise UserError(f"schedule={drafting[0]}: {lacks}")
    folder = RunFolder(shard_folder(Path(config.run_dir) if config.run_dir else _new_folder(config), config.shard))
    observer.planned(plan, config.model.name, folder.path)
    begun = identity(OmegaConf.to_container(config, resolve=True), plan.facts(), plan.data.record())
    with goes_on_with(folder.path), folder.working(begun, PLACES, comparable):
        for hint in hints(folder.latest("state_at_start")):
            log.warning(hint)
        model = loader.load()
        folder.note(model=model.facts)
        for notice in model.facts.get("notices", []):
            log.warning(notice)
        for field, values in model.facts.get("unlike_expected", {}).items():
            log.warning("config.json has %s=%s, known is %s", field, values["found"], values["expected"])
        Runner(plan, model, folder).run(observer)
        summary = summarize(read_run(folder.path).frame, folder.conditions())
        folder.write_json("summary.json", summary)
    return Finished(folder, summary, len(plan.own_items) * plan.repetitions)


def _new_folder(config: RunConfig) -> Path:
    """A folder name that says what the run is; the time makes it new."""
    time = datetime.now().strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
    parts = (config.model.name, config.task.name, "-".join(config.schedules))
    return RUNS / re.sub(r"[^\w.-]+", "_", "_".join((time, *parts)))
