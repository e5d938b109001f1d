"""usage: python -m harness train-drafter model=NAME out=DIR [KEY=VALUE ...]

Trains a drafter for a plain causal model, so that it can be decoded with every schedule: the model writes prompts and
answers them, and low-rank updates that proposal rows alone get learn what it says behind its next token. The model's
own weights stay as they are and go on verifying, so outputs stay its own. docs/drafter.md says what to expect.

  model=NAME          of the causal family; model=causal model.path=DIR for any folder
  out=DIR             the drafter, and all that a killed training goes on from with the same command
  data=FILE           prompts of your own beside those that the model writes: text, or `prompt` in JSON lines or CSV
  prompts=N           that the model writes itself; 600 by default
  tokens=N            of a response, at most; 256 by default
  steps=N             of training, one response each; 2000 by default
  rank=N              of the updates; 16 by default
  width=W             masks behind a context; 8 by default
  model.dtype=NAME    float32 or bfloat16
  seed=N              of everything random

Then: python -m harness run model=NAME drafter=DIR schedule=[autoregressive,linear,packed,quadratic]
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm

from harness.cli.arguments import Overrides, Takes
from harness.cli.keys import Integer, PathKey
from harness.config.compose import compose
from harness.errors import UserError
from harness.models.causal.loader import CausalLoader
from harness.running.build import find_model
from harness.system.signals import goes_on_with
from harness.text import aligned
from harness.training.train import Settings, train

COMMAND = ("python", "-m", "harness", "train-drafter")
TAKES = Takes(
    "train-drafter",
    keys=(
        PathKey("out", example="my_drafter"),
        PathKey("data", example="prompts.txt"),
        Integer("prompts", 600, least=0, example="600"),
        Integer("tokens", 256, least=2, example="256"),
        Integer("steps", 2000, least=1, example="2000"),
        Integer("rank", 16, least=1, example="16"),
        Integer("width", 8, least=1, example="8"),
    ),
    overrides=Overrides(only=("model", "model.*", "seed")),
)


def main(arguments: Sequence[str]) -> int:
    """Trains, or goes on, and prints how well the drafter drafts."""
    given = TAKES.read(arguments)
    if given["out"] is None:
        raise UserError("train-drafter: needs out=DIR, the folder that the drafter is written to.")
    config = compose([*given.overrides, "drafter=null"], besides=TAKES.own)
    loader = find_model(config.model)
    if not isinstance(loader, CausalLoader):
        raise UserError(f"model={config.model.name}: drafts by itself. Drafters are for plain causal models.")
    if loader.is_random:
        raise UserError("model.weights=random: random weights say nothing to train on. Leave it out.")
    own = {key: given[key] for key in ("rank", "width", "prompts", "tokens", "steps", "data")}
    settings = Settings(**own, seed=config.seed)
    with goes_on_with(given["out"], "out"), _Bar() as bar:
        last = train(loader.load(), settings, given["out"], " ".join([*COMMAND, *arguments]), bar)
    print(_table(last))
    print(f"drafter: {given['out']}")
    return 0


class _Bar:
    """One progress bar after the other."""

    def __init__(self) -> None:
        self._bar: tqdm | None = None

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def began(self, what: str, total: int, done: int) -> None:
        """Shows the bar of a part of the work."""
        self.__exit__()
        self._bar = tqdm(total=total, initial=done, desc=what, file=sys.stderr, dynamic_ncols=True)

    def went_on(self, units: int, says: str = "") -> None:
        """Moves it on."""
        self._bar.set_postfix_str(says, refresh=False)
        self._bar.update(units)


def _table(evaluation: Mapping[str, Any]) -> str:
    header = ("mask", "right", "right in a row")
    shares = zip(evaluation["right"], evaluation["right_in_a_row"], strict=True)
    rows = [(str(mask), *(f"{100 * share:.1f} %" for share in pair)) for mask, pair in enumerate(shares, start=1)]
    return "\n".join(
        [
            *aligned([header, *rows], is_left=[False] * len(header)),
            f"{evaluation['accepted']:.2f} draft tokens accepted on average, over {evaluation['contexts']:,} contexts "
            "of held-out responses",
        ]
    )
