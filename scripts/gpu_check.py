"""Whether one GPU does what the paper relies on, with random weights and no download, in a few minutes.

    python scripts/gpu_check.py [--models nemotron3b,nemotron8b] [--sizes 4,8,16,32,64] [--out DIR] [--minutes 8]

First, within a minute and on the embedded models: whether every way to decode gives the right tokens, and how often the
host waits for the device (`device_checks.py`); what is wrong is said at once.

Then for each model: a packed call equals the separate calls; time per NFE of Linear, Packed and Quadratic at the
paper's block sizes and at all of --sizes; the cost model tau + delta n of section 1, fitted to them, and what the
device's memory bandwidth allows. Writes gpu_check.json and gpu_check.md. On a CPU the embedded model stands in, at
small sizes.

Exit status 1 where packed and separate calls differ, or a way to decode is wrong.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import device_checks
import numpy as np
import torch

from harness.config.compose import compose
from harness.models.language_model import LanguageModel
from harness.models.loading.placement import placement
from harness.records.manifest import code_version, now
from harness.running.build import find_model
from harness.system.bandwidth import bandwidth_gb_s
from harness.system.clock import TimedModel
from harness.system.device import GB, device_label, memory_of
from harness.system.machine import description
from schedules import Call, Draft, Greedy, Linear, Packed, Quadratic, Stop, SyntheticAcceptance

SCHEDULES = {"linear": Linear, "packed": Packed, "quadratic": Quadratic}
PAPER_SIZES = {"linear": 32, "packed": 32, "quadratic": 8}  # section 4.1
PROMPT_TOKENS = 128
ACCEPTED = 4  # tokens an iteration; time per NFE does not depend on it
ITERATIONS = 12
REPEATS = 3  # of each point, interleaved with all others; the first is a warm-up and dropped
FITTED_ROWS = 160  # more rows a call are no longer bound by memory, where the model of section 1 ends
EXACT_LAYERS = 4  # of the float32 check, so that it fits where the BF16 model does
FLOAT32_BOUND = 5e-5  # of the largest logit; what caching alone costs


class Point(NamedTuple):
    """One schedule at one block size: medians over repeats.

    Attributes:
      rows: evaluated a call, the prompt's included; so the means obey the same line as single calls.
      model_ms, wall_ms: a call.
      memory_bytes: peak of the device during the response; None on a CPU.
    """

    schedule: str
    block_size: int
    rows: float
    model_ms: float
    wall_ms: float
    memory_bytes: int | None

    @property
    def is_paper(self) -> bool:
        return PAPER_SIZES[self.schedule] == self.block_size


class Fit(NamedTuple):
    """tau + delta n, by least squares of relative errors over the points with few rows."""

    tau_ms: float
    delta_us: float
    worst_error: float
    points: int


def main(arguments: Sequence[str]) -> int:
    """Checks, measures, and writes both files."""
    options = _options(arguments)
    ends = time.monotonic() + 60 * options.minutes
    sizes = [int(size) for size in options.sizes.split(",")]
    device = placement("auto", "float32").device
    default = "nemotron3b,nemotron8b" if device.type == "cuda" else "tiny_nemotron"
    report: dict[str, Any] = {
        "started_at": now(),
        "code": code_version(),
        "machine": description(),
        "device": device_label(device),
        "torch": torch.__version__,
        "memory_gb": memory_of(device).total / GB,
        "bandwidth_gb_s": bandwidth_gb_s(device),
        "ways": [],
        "models": {},
    }
    for finding in device_checks.findings(device) if time.monotonic() < ends else ():
        report["ways"].append(finding._asdict())
        print(finding, file=sys.stderr)
    for name in (options.models or default).split(","):
        print(f"{name}: packed and separate calls", file=sys.stderr)
        report["models"][name] = _check(name, sizes, ends, report["bandwidth_gb_s"])
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu_check.json").write_text(json.dumps(report, indent=1) + "\n")
    (folder / "gpu_check.md").write_text(markdown(report))
    print(markdown(report))
    print(f"written to {folder / 'gpu_check.json'} and {folder / 'gpu_check.md'}")
    is_equal = all(model["equality"]["float32"]["is_equal"] for model in report["models"].values())
    is_right = all(device_checks.Finding(**one).is_right for one in report["ways"])
    return int(not (is_equal and is_right))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models", help="configs of the Nemotron family; by default the paper's, on a CPU the tiny one"
    )
    parser.add_argument("--sizes", default="4,8,16,32,64", help="block sizes B of every schedule")
    parser.add_argument("--out", default="results/gpu_check", help="folder of the two files")
    parser.add_argument("--minutes", type=float, default=8, help="no new measurement begins after so many")
    return parser.parse_args(arguments)


def _load(name: str, *overrides: str) -> LanguageModel:
    return find_model(compose([f"model={name}", "weights=random", *overrides]).model).load()


def _check(name: str, sizes: Sequence[int], ends: float, bandwidth_gb_s: float) -> Mapping[str, Any]:
    layers = compose([f"model={name}"]).model.get("architecture", {}).get("num_hidden_layers", EXACT_LAYERS)
    exact = _load(name, "model.dtype=float32", f"model.layers={min(layers, EXACT_LAYERS)}")
    equality = {"float32": _equality(exact, FLOAT32_BOUND)}
    del exact
    model = _load(name)
    dtype = str(model.facts["dtype"])
    if dtype != "float32":
        # Rounding moves bfloat16 logits, and with them some choices (F.6); that is reported, not judged.
        equality[dtype] = _equality(model, None)
    points, left_out = _measure(model, sizes, ends)
    fit = _fit(points)
    read_bytes = model.facts["weight_bytes"]
    return {
        "parameters": model.facts["parameters"],
        "dtype": dtype,
        "attention": model.facts["attention"],
        "equality": equality,
        "points": [point._asdict() | {"is_paper": point.is_paper} for point in points],
        "left_out": left_out,
        "fit": fit and fit._asdict(),
        "weights_gb": read_bytes / GB,
        "bandwidth_limit_ms": 1000 * read_bytes / GB / bandwidth_gb_s,
    }


def _prompt(model: LanguageModel) -> list[int]:
    generator = torch.Generator().manual_seed(0)
    vocab = model.model.backbone.config.vocab_size
    return torch.randint(vocab, (PROMPT_TOKENS,), generator=generator).tolist()


def _equality(model: LanguageModel, bound: float | None) -> Mapping[str, Any]:
    """One packed call against a verifying and a drafting call on the same prefix (appendix D.1)."""
    one, width = model.model, PAPER_SIZES["packed"] - 1
    one.begin(_prompt(model), 2 * width)
    first = one.evaluate(Call(width, Draft.empty(one.device), (0,)))
    draft = Draft(first.proposals.logits[0, : width - 1].argmax(dim=-1))
    one.commit(first.verifier.argmax(dim=-1))
    packed = one.evaluate(Call(width, draft, (0,)))
    separate = one.evaluate(Call(width, draft)), one.evaluate(Call(width, None, (0,)))
    # A drafting call alone keeps its first proposal, which a packed one has no use for.
    drafted = separate[1].proposals.logits[0, -packed.proposals.logits.shape[1] :]
    pairs = {"verifier": (packed.verifier, separate[0].verifier), "proposals": (packed.proposals.logits[0], drafted)}
    found = {}
    for what, (mine, other) in pairs.items():
        mine, other = mine.float(), other.float()
        found[what] = {
            "largest_difference": float((mine - other).abs().max() / other.abs().max()),
            "other_choices": int((mine.argmax(dim=-1) != other.argmax(dim=-1)).sum()),
            "rows": len(mine),
        }
    return found | {
        "bound": bound,
        "is_equal": bound is None or all(one["largest_difference"] < bound for one in found.values()),
    }


def _measure(model: LanguageModel, sizes: Sequence[int], ends: float) -> tuple[list[Point], list[str]]:
    """All points, interleaved, so that drift meets all alike; and those that there was no time for."""
    timed, prompt = TimedModel(model.model), _prompt(model)
    wanted = [(name, size) for name in SCHEDULES for size in sorted({*sizes, PAPER_SIZES[name]})]
    samples: dict[tuple[str, int], list[tuple[float, float, float, int | None]]] = {one: [] for one in wanted}
    for repeat in range(REPEATS):
        for name, size in wanted:
            if time.monotonic() > ends:
                continue
            sample = _sample(timed, prompt, SCHEDULES[name](size - 1))
            if repeat:
                samples[name, size].append(sample)
            print(f"{name} at B = {size}: {sample[1]:.2f} ms a call", file=sys.stderr)
    points = [
        Point(name, size, rows=taken[0][0], model_ms=median(one[1] for one in taken),
              wall_ms=median(one[2] for one in taken), memory_bytes=taken[0][3])
        for (name, size), taken in samples.items() if taken
    ]  # fmt: skip
    return points, [f"{name} at B = {size}" for (name, size), taken in samples.items() if not taken]


def _sample(timed: TimedModel, prompt: Sequence[int], schedule: Any) -> tuple[float, float, float, int | None]:
    """Rows, model ms and wall ms a call, and peak memory, of one response."""
    stop = Stop(1 + ACCEPTED * ITERATIONS, frozenset())
    response, timing = timed.time(
        lambda: schedule.decode(timed, prompt, SyntheticAcceptance(Greedy(), [ACCEPTED]), stop)
    )
    calls = response.nfe
    return response.rows / calls, 1000 * timing.model_s / calls, 1000 * timing.wall_s / calls, timing.memory_bytes


def _fit(points: Sequence[Point]) -> Fit | None:
    few = [point for point in points if point.rows <= FITTED_ROWS]
    if len({point.rows for point in few}) < 2:
        return None
    rows, ms = (np.array([getattr(point, name) for point in few]) for name in ("rows", "model_ms"))
    delta, tau = np.polyfit(rows, ms, 1, w=1 / ms)
    worst = float(np.abs((tau + delta * rows) / ms - 1).max())
    return Fit(tau_ms=float(tau), delta_us=1000 * float(delta), worst_error=worst, points=len(few))


def markdown(report: Mapping[str, Any]) -> str:
    """The report for reading."""
    lines = [
        f"# GPU check: {report['device']}",
        "",
        f"{report['started_at']}, torch {report['torch']}, memory {report['memory_gb']:.1f} GB, "
        f"bandwidth {report['bandwidth_gb_s']:,.0f} GB/s (copying). Random weights, synthetic acceptance, batch size "
        "1: times mean something, tokens do not.",
        "",
        "## Decoding with the embedded models",
        "",
        *device_checks.lines(report["ways"]),
    ]
    for name, model in report["models"].items():
        lines += ["", f"## {name}, {model['dtype']}, {model['parameters']:,} parameters", "", *_equality_lines(model)]
        lines += ["", "| schedule | B | rows/call | model ms/NFE | wall ms/NFE | tau + delta n | peak GB |"]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
        lines += [_row(point, model["fit"]) for point in model["points"]]
        lines += ["", "(p) the paper's block size.", "", *_cost_lines(model)]
    return "\n".join(lines) + "\n"


def _equality_lines(model: Mapping[str, Any]) -> Sequence[str]:
    lines = []
    for dtype, found in model["equality"].items():
        verdict = "" if found["bound"] is None else f": {'equal' if found['is_equal'] else 'NOT EQUAL'}"
        for what in ("verifier", "proposals"):
            one = found[what]
            lines.append(
                f"- packed call against separate calls, {dtype}, {what}: largest difference "
                f"{one['largest_difference']:.1e} of the largest logit, other choices in {one['other_choices']} of "
                f"{one['rows']} rows{verdict}"
            )
    return lines


def _row(point: Mapping[str, Any], fit: Mapping[str, Any] | None) -> str:
    predicted = f"{fit['tau_ms'] + fit['delta_us'] / 1000 * point['rows']:.2f}" if fit else "-"
    memory = f"{point['memory_bytes'] / GB:.2f}" if point["memory_bytes"] else "-"
    size = f"{point['block_size']}{' (p)' if point['is_paper'] else ''}"
    times = f"{point['model_ms']:.2f} | {point['wall_ms']:.2f}"
    return f"| {point['schedule']} | {size} | {point['rows']:.1f} | {times} | {predicted} | {memory} |"


def _cost_lines(model: Mapping[str, Any]) -> Sequence[str]:
    lines = [f"- PARTIAL: no time for {', '.join(model['left_out'])}"] if model["left_out"] else []
    fit, limit = model["fit"], model["bandwidth_limit_ms"]
    if fit:
        lines += [
            f"- cost of a call (section 1): tau = {fit['tau_ms']:.2f} ms, delta = {fit['delta_us']:.1f} us a row, "
            f"from {fit['points']} points of up to {FITTED_ROWS} rows, worst error {100 * fit['worst_error']:.0f} %",
            f"- memory bandwidth alone would allow {limit:.2f} ms a call ({model['weights_gb']:.2f} GB of weights); "
            f"tau is {fit['tau_ms'] / limit:.2f} times that",
        ]
    paper = {point["schedule"]: point for point in model["points"] if point["is_paper"]}
    if {"linear", "packed"} <= paper.keys():
        ratio = paper["packed"]["model_ms"] / (2 * paper["linear"]["model_ms"])
        lines.append(f"- at the paper's block sizes an iteration of Packed takes {ratio:.3f} of Linear's model time")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
