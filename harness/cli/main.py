"""The command line: finds the verb, runs it, and turns a user's mistakes into one line and exit status 2.

Nothing heavy is imported before a verb needs it, so help comes at once.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from harness.cli.notices import show_notices
from harness.errors import Terminated, UserError

# Verb -> what it does. Each is a module of harness.cli.verbs (with _ for -) that has a docstring and
# `main(arguments) -> exit status`.
VERBS = {
    "run": "decode a task with one or several schedules, timed and recorded",
    "merge": "put the shards of a run together",
    "status": "what is done, partial, running or failed among run folders",
    "grade": "grade a run again from its records, without touching its timings",
    "grade-responses": "grade answers of any system, one JSON verdict a line",
    "check-task": "run a data set's own reference answers through its grader",
    "replay": "decode prompts of a run again for what records do not hold: traces and logit gaps",
    "trace": "one decode iteration by iteration, as in figure 2, in the terminal",
    "atlas": "record what the drafter proposes from every context, for simulating all schedules without the model",
    "explore": "what an atlas tells of all schedules, widths and branches: calls, rows, predicted throughput",
    "figures": "every figure and table of the paper, from records alone",
    "report": "all of them in one HTML file, with sample outputs of every cell",
    "compare": "the paper's published numbers beside ours, with intervals",
    "probe": "the fastest block size of each schedule on a few prompts (table 3)",
    "train-drafter": "a drafter for a plain causal model, trained on what the model itself says",
    "bench": "host and model time of each schedule on the embedded model, as ratios",
    "doctor": "what runs need of this machine, and what is missing",
    "list": "models, tasks, schedules and orders, one line each",
}

USAGE = "usage: python -m harness VERB [arguments]\n\nverbs:\n" + "\n".join(
    f"  {verb:<18}{what}" for verb, what in VERBS.items()
)
MORE = "python -m harness VERB --help tells more about a verb."


def main(arguments: Sequence[str]) -> int:
    """Runs one verb.

    Returns:
      Exit status: 0 done, 1 the verb's check failed, 2 a mistake of the user, 130 interrupted, 143 terminated.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(f"{USAGE}\n\n{MORE}")
        return 0 if arguments else 2
    verb, *rest = arguments
    try:
        if verb not in VERBS:
            from harness.errors import unknown

            raise unknown("verb", verb, VERBS)
        if {"-h", "--help"} & set(rest):
            print(_help(verb))
            return 0
        _prepare_libraries()
        show_notices()
        return import_module(f"harness.cli.verbs.{_module(verb)}").main(rest)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        notes = getattr(error, "__notes__", [])
        print("\n".join(["", *(f"stopped; {note}" for note in notes), "interrupted"]), file=sys.stderr)
        return 143 if isinstance(error, Terminated) else 130


def _module(verb: str) -> str:
    return verb.replace("-", "_")


def _help(verb: str) -> str:
    # The docstring is read from the source: importing the module could import torch.
    import ast
    from pathlib import Path

    source = (Path(__file__).parent / "verbs" / f"{_module(verb)}.py").read_text()
    return f"{ast.get_docstring(ast.parse(source))}"


def _prepare_libraries() -> None:
    """What they read from the environment when they are imported."""
    # Threads that spin while they wait take the core that another process has to finish on: beside one busy process,
    # calls on two cores take twenty times as long. Threads that sleep are as fast here.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Notices and progress bars would drown ours; errors still come as exceptions.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
