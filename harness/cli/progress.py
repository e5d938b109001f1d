"""What a run shows while it works, on stderr: one line with rate and time left, and sample responses on request."""

import sys
from collections.abc import Collection
from pathlib import Path

from tqdm import tqdm

from harness.records.record import Record
from harness.running.plan import Plan

LONG_S = 600.0  # of a run, from which on the user is told beforehand


class Progress:
    """A progress bar: responses done, tokens/s, tokens/NFE, accuracy so far, time left."""

    def __init__(self, samples: int = 0):
        """`samples`: first prompts whose responses are shown as they come."""
        self._most_samples = samples
        self._samples: Collection[str] = ()
        self._bar: tqdm | None = None
        self._tokens = self._nfe = 0
        self._wall_s = 0.0
        self._correct: list[bool] = []

    def planned(self, plan: Plan, model: str, path: Path) -> None:
        """Says what will run, and where it is written."""
        self._samples = {item.prompt_id for item in plan.items[: self._most_samples]}
        schedules = ", ".join(
            f"{name} (W = {schedule.width})" if schedule.width else name for name, schedule in plan.schedules.items()
        )
        temperature = plan.sampling.temperature if plan.sampling else 0
        lines = [
            f"{model} on {plan.task.name}: {len(plan.own_items)} prompts x "
            f"{plan.repetitions} x {len(plan.schedules)} schedules = {plan.responses} responses",
            f"schedules: {schedules}; temperature {temperature:g}, at most {plan.max_new_tokens} new tokens",
            f"writing to {path}",
            *(f"notice: {notice}" for notice in plan.data.notices),
        ]
        print("\n".join(lines), file=sys.stderr)

    def started(self, total: int, done: int) -> None:
        """Shows the bar; `done` responses are there already."""
        if done:
            print(f"going on: {done} of {total} responses are there", file=sys.stderr)
        self._bar = tqdm(total=total, initial=done, unit="response", file=sys.stderr, dynamic_ncols=True)

    def paced(self, longest_s: float) -> None:
        """Says how long the run can take at the pace of the warm-up, where that is long."""
        if longest_s > LONG_S:
            time = f"{longest_s / 60:.0f} min" if longest_s < 7200 else f"{longest_s / 3600:.1f} h"
            self._bar.write(
                f"notice: up to {time} at the pace of the warm-up, if responses are as long as they may be; "
                "task.max_new_tokens=N makes them shorter",
                file=sys.stderr,
            )

    def recorded(self, record: Record) -> None:
        """Moves the bar on by one response."""
        self._tokens += record.tokens
        self._nfe += record.nfe
        self._wall_s += record.wall_s
        if record.verdict and record.verdict["correct"] is not None:
            self._correct.append(record.verdict["correct"])
        self._bar.set_postfix_str(self._rates(), refresh=False)
        self._bar.update()
        if record.prompt_id in self._samples:
            self._bar.write(
                f"\n[{record.prompt_id}, {record.schedule}: {record.tokens} tokens in {record.nfe} calls]\n"
                f"{record.text}",
                file=sys.stderr,
            )

    def finished(self) -> None:
        """Leaves the bar as it is."""
        self._bar.close()

    def _rates(self) -> str:
        parts = []
        if self._wall_s:
            parts.append(f"{self._tokens / self._wall_s:.0f} tokens/s")
        if self._nfe:
            parts.append(f"{self._tokens / self._nfe:.2f} tokens/NFE")
        if self._correct:
            parts.append(f"{100 * sum(self._correct) / len(self._correct):.0f} % right")
        return ", ".join(parts)
