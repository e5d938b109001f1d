"""usage: python -m harness bench [PROMPTS]

Measures on the embedded model, interleaved in one process: the time that each schedule spends outside the model per
iteration and inside it per forward pass, and what the proposal-only adapter costs in its two modes. Prints medians
over PROMPTS responses (24 by default) and their ratios; absolute times mean nothing beyond this machine and moment.
"""

import sys
from collections.abc import Sequence

from tqdm import tqdm

from harness.analysis.table import aligned
from harness.bench import ADAPTERS, SCHEDULES, adapter_modes, host_and_model_time, medians
from harness.errors import UserError

PROMPTS = 24


def main(arguments: Sequence[str]) -> int:
    """Measures and prints."""
    if len(arguments) > 1 or not all(argument.isdigit() and int(argument) > 0 for argument in arguments):
        raise UserError(f"bench {' '.join(arguments)}: takes one positive number of prompts, or nothing.")
    prompts = int(arguments[0]) if arguments else PROMPTS
    total = prompts * (len(SCHEDULES) + len(ADAPTERS))
    with tqdm(total=total, unit="response", file=sys.stderr, dynamic_ncols=True) as bar:
        schedules = host_and_model_time(prompts, bar.update)
        adapters = adapter_modes(prompts, bar.update)
    for title, samples in (("schedule", schedules), ("packed with", adapters)):
        header = (title, "host ms/iteration", "ratio", "model ms/call", "ratio")
        rows = [
            (name, f"{host:.3f}", f"{host_ratio:.2f}", f"{call:.2f}", f"{call_ratio:.2f}")
            for name, host, host_ratio, call, call_ratio in medians(samples)
        ]
        print("\n".join(aligned([header, *rows], is_left=[True, False, False, False, False])) + "\n")
    print(f"tiny_nemotron, float32, toy_math, medians of {prompts} responses each, interleaved")
    return 0
