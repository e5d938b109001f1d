"""Run folders as the analysis sees them: which were found, what their manifests say, and their records.

A folder that cannot be read is a notice, not the end: what can be made from the others is made.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from harness.errors import UserError
from harness.records.frame import read_run, run_folders
from harness.records.identity import data_digest, weights_digest
from harness.records.manifest import read_manifest, sessions_of
from harness.records.places import RECORDS

PAPER_ADAPTER_MODE = "masked"
EXACT_ROTARY = "float32"


class Facts(NamedTuple):
    """What must be the same in everything that is compared, unless mixing it is asked for by name.

    Attributes:
      device: kind and product.
      dtype: of the weights.
      code: commit of the harness, or its version; "+changed" with uncommitted changes.
      engine: execution mode; empty where the harness had only one.
      prompts: digest of what items are made into; empty where the manifest does not say.
      weights, data: digests of the model's weights and of the data set's content; empty where the manifest does not
        say. What differs in these is of something else, whatever it is called, and cannot be mixed.
      rotary: how rotary frequencies were rounded; empty for not at all.
    """

    device: str
    dtype: str
    code: str
    engine: str = ""
    prompts: str = ""
    weights: str = ""
    data: str = ""
    rotary: str = ""

    @property
    def subject(self) -> tuple[str, str]:
        """What was measured, as opposed to how."""
        return self.weights, self.data


MIXABLE = tuple(name for name in Facts._fields if name not in ("weights", "data"))


def unlike(facts: Mapping[str, Collection[Facts]], mix: Collection[str] = ()) -> Mapping[str, str]:
    """What differs in facts about things that are compared, by the fact's name, in words.

    Args:
      facts: by what they are about.
      mix: facts of `MIXABLE` that may differ.
    """
    found = {}
    for index, name in enumerate(Facts._fields):
        values = {what: sorted({one[index] or "unknown" for one in some}) for what, some in facts.items()}
        if len({value for some in values.values() for value in some}) > 1 and not (name in mix and name in MIXABLE):
            listed = "; ".join(f"{what}: {', '.join(some)}" for what, some in values.items())
            found[name] = f"{name} differs ({listed})."
    return found


class Reads(NamedTuple):
    """What a forward pass has to read from memory, at least.

    Attributes:
      weight_bytes: of weights, by every pass.
      cache_bytes: of each cached token.
      memory_gb_s: what the device's memory delivers, in GB/s.
    """

    weight_bytes: float
    cache_bytes: float
    memory_gb_s: float

    def ms(self, context: float) -> float:
        """Milliseconds to read the weights and a cache of `context` tokens once."""
        return 1000 * (self.weight_bytes + context * self.cache_bytes) / (self.memory_gb_s * 1e9)


class Planned(NamedTuple):
    """The responses that a run is to have of each schedule."""

    prompts: frozenset[str]
    repetitions: int


@dataclass(frozen=True)
class Run:
    """One run folder.

    Attributes:
      family: of the model, as `harness.models` names it.
      facts: of each time that the run was started or went on, if they differ.
      max_new_tokens: the cap that responses had.
      planned: responses that each schedule is to have, all shards together: prompt ids and repetitions.
      adapter_mode: how an adapter's update was computed; empty for every row, as in F.2.
      schedules: each one's configuration.
      reads: as measured when the run was last started; None where its manifest does not say.
      records: as in `harness.records.frame`, in the order in which they were written, skipped prompts included.
    """

    path: Path
    family: str
    facts: Sequence[Facts]
    max_new_tokens: int
    planned: Planned
    adapter_mode: str
    schedules: Mapping[str, Mapping[str, Any]]
    started_at: str
    reads: Reads | None
    records: pd.DataFrame


@dataclass(frozen=True)
class Found:
    """Runs that could be read, and what is to be said about the others."""

    runs: Sequence[Run]
    notices: Sequence[str]


def find_runs(paths: Iterable[Path]) -> Found:
    """All run folders at and below `paths`, in the order of their names.

    Raises:
      UserError: one of `paths` does not exist.
    """
    runs, notices = [], []
    for folder in run_folders(paths):
        try:
            run, notice = _read(folder)
        except UserError as error:
            notices.append(f"left out: {error}")
            continue
        runs.append(run)
        notices += notice
    return Found(runs, notices)


def _read(folder: Path) -> tuple[Run, Sequence[str]]:
    try:
        manifest = read_manifest(folder / "manifest.json")
        config = manifest["config"]
        records, notices = _records(folder)
        for costs_only in records["costs_only"].dropna()[:1]:
            raise UserError(f"{folder}: measured with {costs_only}: costs only, never shown among real responses.")
        run = Run(
            path=folder,
            family=_family(str(config["model"].get("_target_", ""))),
            # A start that failed before its model was loaded has recorded nothing.
            facts=list(dict.fromkeys(_facts(manifest, one) for one in sessions_of(manifest) if one.get("model"))),
            max_new_tokens=config["task"]["max_new_tokens"],
            planned=Planned(frozenset(manifest["plan"]["prompts"]), manifest["plan"]["repetitions"]),
            adapter_mode=_adapter_mode(config),
            schedules=config["schedules"],
            started_at=manifest["started_at"],
            reads=_reads(sessions_of(manifest)),
            records=records,
        )
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be read ({error.strerror}).") from None
    return run, notices


def _records(folder: Path) -> tuple[pd.DataFrame, Sequence[str]]:
    """The records up to the first line that cannot be read: a run that was killed ends in a torn one."""
    run = read_run(folder)
    if run.damage:
        return run.frame, [f"PARTIAL: {run.damage} The {len(run.frame)} records before it are used."]
    if run.is_torn:
        notice = f"PARTIAL: {folder / RECORDS}: its last line is torn; the {len(run.frame)} records before it are used."
        return run.frame, [notice]
    return run.frame, []


def _family(target: str) -> str:
    """`harness.models.FAMILY....`, or the top module of somebody else's model."""
    parts = target.split(".")
    return parts[2] if parts[:2] == ["harness", "models"] and len(parts) > 2 else parts[0]


def _adapter_mode(config: Mapping[str, Any]) -> str:
    mode = str(config.get("adapter_mode") or PAPER_ADAPTER_MODE)
    return "" if mode == PAPER_ADAPTER_MODE else mode


def _reads(sessions: Sequence[Mapping[str, Any]]) -> Reads | None:
    for session in reversed(sessions):
        model = session.get("model") or {}
        values = (model.get("weight_bytes"), model.get("cache_bytes"), session.get("memory_gb_s"))
        if all(isinstance(value, int | float) and value > 0 for value in values):
            return Reads(*values)
    return None


def _facts(manifest: Mapping[str, Any], session: Mapping[str, Any]) -> Facts:
    config = manifest["config"]
    model, code, machine = session["model"], session["code"], session["machine"]
    device = str(model.get("device"))
    product = machine.get("processor") if device == "cpu" else machine.get("accelerator")
    version = str(code.get("commit") or "")[:10] or code.get("version") or "unknown"
    rotary = str(model.get("rotary") or EXACT_ROTARY)
    shaping = [config["task"].get(key) for key in ("template", "thinking")]
    return Facts(
        device=f"{device} ({product})" if product else device,
        dtype=str(model.get("dtype")),
        code=version + {True: "+changed", None: "+unknown"}.get(code.get("changed"), ""),
        engine=str(config.get("engine") or config["model"].get("engine") or ""),
        rotary="" if rotary == EXACT_ROTARY else rotary,
        prompts=hashlib.sha256(str(shaping).encode()).hexdigest()[:8] if shaping[0] else "",
        weights=weights_digest(session),
        data=data_digest(manifest),
    )
