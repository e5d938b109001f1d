"""usage: python -m harness list

Models, tasks, schedules, verification orders and experiments with one line each.
Every name is a file of conf/GROUP/ and can be given as GROUP=NAME.
"""

from collections.abc import Sequence

from harness.cli.arguments import Takes
from harness.config.compose import described

GROUPS = ("model", "task", "schedule", "order", "experiment")
TAKES = Takes("list")


def main(arguments: Sequence[str]) -> int:
    """Prints the lists."""
    TAKES.read(arguments)
    for group in GROUPS:
        print(f"{group}:")
        for name, what in described(group):
            print(f"  {name:<16}{what}")
    return 0
