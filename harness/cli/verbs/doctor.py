"""usage: python -m harness doctor [KEY=VALUE ...]

Looks at what runs need: device, driver and libraries, evalplus and its sandbox, memory and files of models, data sets,
disk. One line each: ok, warning, or fails with what to do. Exit status 1 where something fails.

  model=NAME task=NAME   look at these only; otherwise at all of them
  KEY=VALUE              as for a run, such as model.path=FOLDER or task.data_files=PATH
"""

from collections.abc import Sequence

from harness.config.compose import names
from harness.running.doctor import FAILS, examine
from harness.text import aligned

GROUPS = ("model", "task")


def main(arguments: Sequence[str]) -> int:
    """Prints the findings."""
    chosen = {group: [one.partition("=")[2] for one in arguments if one.startswith(f"{group}=")] for group in GROUPS}
    overrides = [one for one in arguments if one.partition("=")[0] not in GROUPS]
    findings = list(examine(chosen["model"] or names("model"), chosen["task"] or names("task"), overrides))
    rows = [(finding.status, finding.what, finding.says) for finding in findings]
    print("\n".join(aligned(rows, is_left=[True] * 3)))
    return int(any(finding.status == FAILS for finding in findings))
