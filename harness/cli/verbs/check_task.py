"""usage: python -m harness check-task TASK [KEY=VALUE ...]

Runs a data set's own reference answers through its grader, over all cores, and prints how many pass; each that does
not is named with its reason. Exit status 0 if all pass, else 1.

  task.data_files=PATH        a data set's own file instead of the hub
  task.selection=all          the whole of MBPP instead of the 378 problems of EvalPlus
  limit=N  prompts=[ID,...]   fewer items
"""

import sys
from collections.abc import Sequence

from tqdm import tqdm

from graders.parallel import grade_all
from harness.cli.arguments import Overrides, Takes, Words
from harness.config.compose import compose
from harness.errors import UserError
from harness.running.build import build
from harness.tasks.task import select

NAMED_FIRST = "the task is named without task=, as in check-task gsm8k. Leave this out."
TAKES = Takes(
    "check-task",
    Words(least=1, most=1, ask="name a task, as in check-task gsm8k task.data_files=PATH", are_paths=False),
    overrides=Overrides(refused={"task": NAMED_FIRST}),
)


def main(arguments: Sequence[str]) -> int:
    """Grades the reference answers and prints what came out."""
    given = TAKES.read(arguments)
    (name,) = given.words
    config = compose([f"task={name}", *given.overrides])
    task = build(config.task, "task")
    data = task.read()
    for notice in data.notices:
        print(f"notice: {notice}", file=sys.stderr)
    items = select(data.items, config.limit, config.prompts)
    answered = [item for item in items if item.solution is not None]
    if not answered:
        raise UserError(f"check-task {name}: none of its {len(items)} items has a reference answer.")
    verdicts = grade_all(task.grader, ((item.solution, item.reference) for item in answered))
    bar = tqdm(verdicts, total=len(answered), unit="answer", file=sys.stderr, dynamic_ncols=True)
    failing = [
        (item.prompt_id, verdict.reason)
        for item, verdict in zip(answered, bar, strict=True)
        if verdict.correct is not True
    ]
    for prompt_id, reason in failing:
        print(f"{prompt_id}: {'; '.join(reason.splitlines())}")
    partial = "" if len(answered) == len(data.items) else f" (PARTIAL: {len(data.items)} items in the data set)"
    print(f"{name}: {len(answered) - len(failing)} of {len(answered)} reference answers pass{partial}")
    return 1 if failing else 0
