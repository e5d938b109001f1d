"""Made-up run folders: records with the shape of real ones, and rates that a test can choose."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness.records.record import Record

TARGETS = {
    "nemotron": "harness.models.nemotron.loader.NemotronLoader",
    "setdlm": "harness.models.setdlm.loader.SetDlmLoader",
}
WIDTHS = {"autoregressive": 0, "linear": 31, "packed": 31, "quadratic": 7, "native": 8}
CALLS = {"linear": 2}


def record(**changes: Any) -> Record:
    """One plausible greedy response; `changes` name the fields that matter to a test."""
    values: dict[str, Any] = {
        "model": "tiny_nemotron",
        "task": "toy_math",
        "schedule": "packed",
        "order": "ltr",
        "adapter": None,
        "temperature": 0.0,
        "top_k": None,
        "top_p": None,
        "prompt_id": "p0",
        "repetition": 0,
        "seed": 1,
        "prompt_tokens": 10,
        "token_ids": [5, 6, 7],
        "text": "a b c",
        "tokens": 3,
        "nfe": 2,
        "wall_s": 0.02,
        "model_s": 0.015,
        "rows": 30,
        "adapter_rows_selected": 0,
        "adapter_rows_evaluated": 0,
        "accepted": [1, 2],
        "stop_reason": "eos",
        "verdict": {"correct": True, "reason": "equal"},
        "started_at": "2026-01-01T00:00:00.000+00:00",
    }
    values |= changes
    values.setdefault("width", WIDTHS.get(values["schedule"], 7))
    return Record(**values)


def responses(
    schedule: str,
    prompts: int,
    *,
    seed: int = 0,
    mean_accepted: float = 8.0,
    ms_per_call: float = 30.0,
    accuracy: float | None = 0.9,
    repetitions: int = 1,
    tokens: int = 120,
    **changes: Any,
) -> list[Record]:
    """Responses of a schedule whose iterations emit about `mean_accepted` tokens, to prompts p0, p1, ..."""
    made = []
    for index in range(prompts):
        for repetition in range(repetitions):
            # Lengths and labels belong to the prompt; what a schedule needs for it is the schedule's.
            prompt = np.random.default_rng([seed, index, repetition])
            length = int(prompt.integers(tokens // 2, tokens * 3 // 2))
            correct = bool(prompt.random() < accuracy) if accuracy is not None else None
            own = np.random.default_rng([seed, index, repetition, *schedule.encode()])
            made.append(
                _response(schedule, length, correct, own, mean_accepted, ms_per_call)
                | {"prompt_id": f"p{index}", "repetition": repetition}
                | changes
            )
    return [record(**values) for values in made]


def _response(
    schedule: str, length: int, correct: bool | None, own: np.random.Generator, mean_accepted: float, ms_per_call: float
) -> dict[str, Any]:
    accepted = [1]
    while sum(accepted) < length:
        drawn = 1 if mean_accepted == 1 else int(own.geometric(1 / mean_accepted))
        accepted.append(min(drawn, 32, length - sum(accepted)))
    calls = CALLS.get(schedule, 1)
    nfe = 1 + calls * (len(accepted) - 1)
    model_s = nfe * ms_per_call / 1000 * (1 + 0.01 * own.standard_normal())
    return {
        "schedule": schedule,
        "token_ids": list(range(length)),
        "tokens": length,
        "nfe": nfe,
        "rows": 10 + 32 * calls * (len(accepted) - 1),
        "accepted": accepted,
        "model_s": model_s,
        "wall_s": model_s * 1.1,
        "verdict": {"correct": correct, "reason": "made up"},
    }


def write_run(
    folder: Path,
    records: Sequence[Record],
    *,
    family: str = "nemotron",
    device: str = "cpu",
    processor: str = "CPU x 2",
    dtype: str = "float32",
    rotary: str | None = None,
    commit: str = "0123456789abcdef",
    cap: int = 128,
    schedules: Mapping[str, Mapping[str, Any]] | None = None,
    started_at: str = "2026-01-01T00:00:00.000+00:00",
    reads: tuple[int, int, float] | None = (1_000_000_000, 1_000_000, 100.0),
    weights: str | None = None,
    data: str | None = None,
    planned: Sequence[str] = (),
) -> Path:
    """Writes a run folder as the runner would; gives its path.

    Args:
      weights, data: SHA-256 of the model's weights and of the data file; None for a manifest that does not say.
      planned: ids of the prompts that a whole run has; none for a plan that says nothing.
      rotary: how its frequencies were rounded; None for a manifest of before that could be chosen.
      reads: bytes of weights and of a cached token, and GB/s of the memory; None for a manifest of before they were in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {
        "schema": 1,
        "config": {
            "model": {"_target_": TARGETS.get(family, f"{family}.load"), "name": records[0].model if records else "m"},
            "task": {"name": records[0].task if records else "t", "max_new_tokens": cap},
            "schedules": schedules or {one.schedule: {"width": one.width} for one in records},
            "temperature": records[0].temperature if records else 0.0,
        },
        "plan": {"prompts": list(planned), "schedules": [], "repetitions": 1, "shard": None},
        "model": {"dtype": dtype, "device": device, "attention": "sdpa"}
        | ({"rotary": rotary} if rotary else {})
        | ({"weight_bytes": reads[0], "cache_bytes": reads[1]} if reads else {})
        | ({"weights_sha256": {"model.safetensors": weights}} if weights else {}),
        **({"memory_gb_s": reads[2]} if reads else {}),
        "data": {"sha256": data} if data else {},
        "code": {"version": "0.1.0", "commit": commit, "changed": False},
        "machine": {"system": "Linux", "processor": processor},
        "started_at": started_at,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "records.jsonl").write_text("".join(one.line() for one in records))
    return folder
