"""Puts the shards of a run together: one folder that is as if the run had never been split."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.config.run_config import PLACES
from harness.errors import UserError
from harness.records.folder import RunFolder, folders_with
from harness.records.identity import CODE_FACTS, data_facts, differences, flat, model_facts
from harness.records.lock import is_held
from harness.records.manifest import identity, sessions_of
from harness.records.record import Record
from harness.records.shard import own_prompts
from harness.text import SHOWN, some


@dataclass(frozen=True)
class Part:
    """One shard.

    Attributes:
      manifest: as read.
      records: by schedule, prompt and repetition.
    """

    folder: RunFolder
    manifest: Mapping[str, Any]
    records: Mapping[tuple[str, str, int], Record]


def parts_below(paths: Sequence[Path], target: Path) -> Sequence[Part]:
    """The run folders at and below `paths`, without the one that is to be made.

    Raises:
      UserError: one does not exist, is damaged, or is being worked in; or there is none.
    """
    found = folders_with(("manifest.json",), paths)
    folders = [folder for folder in found if folder.resolve() != target.resolve()]
    if not folders:
        raise UserError(f"{', '.join(map(str, paths))}: no shards there. Run with shard=1/N, 2/N, ... first.")
    return [_read(folder) for folder in folders]


def merge(parts: Sequence[Part], target: RunFolder) -> Mapping[str, Any]:
    """Writes the whole run into `target`; gives its manifest.

    Raises:
      UserError: the shards do not belong together, overlap, or leave gaps, which names the prompts; or `target` holds
        something else than what was put together before.
    """
    if target.manifest_file.exists() and "shard" not in target.read_manifest():
        raise UserError(f"into={target.path}: holds a run that was not put together from shards. Give another folder.")
    # A shard that has decoded nothing yet says nothing but what its gaps say.
    parts = [part for part in parts if part.records] or parts
    first = parts[0]
    for part in parts:
        _check_shard(part)
        _check_together(first, part)
    _check_no_overlap(parts)
    plan = {**first.manifest["plan"], "shard": None}
    wanted = [
        (schedule, prompt_id, repetition)
        for prompt_id in plan["prompts"]
        for repetition in range(plan["repetitions"])
        for schedule in plan["schedules"]
    ]
    records = {key: record for part in parts for key, record in part.records.items()}
    _check_no_gap(parts, wanted, records)
    manifest = _manifest(parts, plan)
    target.replace(manifest, (records[key].line() for key in wanted))
    return manifest


def _read(path: Path) -> Part:
    folder = RunFolder(path)
    if is_held(path):
        raise UserError(f"{path}: a process is working there. Wait for it to end.")
    records: dict[tuple[str, str, int], Record] = {}
    for record in folder.records():
        if record.key in records:
            raise UserError(f"{folder.records_file}: {' '.join(map(str, record.key))} is there twice.")
        records[record.key] = record
    return Part(folder, folder.read_manifest(), records)


def _check_shard(part: Part) -> None:
    plan = part.manifest["plan"]
    if plan["shard"] is None:
        raise UserError(f"{part.folder.path}: is a whole run and no shard. Name the shards' folders.")
    own = set(own_prompts(plan))
    strange = sorted({prompt_id for _, prompt_id, _ in part.records} - own)
    if strange:
        raise UserError(f"{part.folder.path}: has prompts that are not of shard {plan['shard']}: {some(strange)}.")


def _check_together(one: Part, other: Part) -> None:
    differing = differences(_traits(one.manifest), _traits(other.manifest))
    if differing:
        shown = "; ".join(f"{key} is {here} and {there}" for key, here, there in differing[:SHOWN])
        raise UserError(f"{one.folder.path} and {other.folder.path} are no parts of one run: {shown}.")


def _traits(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the parts of one run have in common."""
    codes = [session["code"] for session in sessions_of(manifest)]
    return {
        **{key: value for key, value in flat(manifest["config"]).items() if key not in (*PLACES, "shard")},
        **{f"data {key}": value for key, value in data_facts(manifest).items()},
        **{f"model {key}": value for key, value in model_facts(manifest).items()},
        **{f"code {key}": sorted({str(code.get(key)) for code in codes}) for key in CODE_FACTS},
        "prompts": manifest["plan"]["prompts"],
    }


def _check_no_overlap(parts: Sequence[Part]) -> None:
    counts = Counter(key for part in parts for key in part.records)
    twice = sorted({prompt_id for (_, prompt_id, _), count in counts.items() if count > 1})
    if twice:
        where = [str(part.folder.path) for part in parts if any(key[1] == twice[0] for key in part.records)]
        raise UserError(f"overlap: {len(twice)} prompts are in several shards: {some(twice)} ({', '.join(where)}).")


def _check_no_gap(
    parts: Sequence[Part], wanted: Sequence[tuple[str, str, int]], records: Mapping[tuple[str, str, int], Record]
) -> None:
    missing = [key for key in wanted if key not in records]
    if missing:
        prompts = list(dict.fromkeys(prompt_id for _, prompt_id, _ in missing))
        given = ", ".join(sorted(part.manifest["plan"]["shard"] for part in parts))
        raise UserError(
            f"gaps: {len(missing)} of {len(wanted)} responses are missing, of {len(prompts)} prompts: "
            f"{some(prompts)}. Shards given: {given}; run the others, or these to their end."
        )


def _manifest(parts: Sequence[Part], plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """The manifest of the whole run, with every session of every shard."""
    sessions = [
        {**session, "shard": part.manifest["plan"]["shard"]} for part in parts for session in sessions_of(part.manifest)
    ]
    sessions.sort(key=lambda session: session["started_at"])
    first = parts[0].manifest
    begun = identity({**first["config"], "shard": None}, plan, first["data"])
    return {**begun, **sessions[0], "resumed": sessions[1:]}
