"""The harness in three lines of Python: load a model, decode a prompt with a schedule, look at the response."""

from dataclasses import dataclass
from typing import Any

from harness.config.compose import compose
from harness.models.language_model import LanguageModel
from harness.running.build import build_model, build_schedules
from schedules.greedy import Greedy
from schedules.response import Response, Stop


@dataclass(frozen=True)
class TextResponse(Response):
    """A response with its text; tokens, nfe and the per-iteration trace are those of the schedule."""

    text: str = ""


def load(name: str, **settings: Any) -> LanguageModel:
    """The model of `conf/model/NAME.yaml`.

    Args:
      settings: keys of that file, e.g. dtype="float64" or path="...".

    Raises:
      UserError: no such model, or it cannot be loaded.
    """
    overrides = [f"model={name}", *(f"model.{key}={value}" for key, value in settings.items())]
    return build_model(compose(overrides).model)


def decode(
    model: LanguageModel,
    prompt: str,
    schedule: str = "packed",
    max_new_tokens: int = 128,
    **settings: Any,
) -> TextResponse:
    """Answers `prompt`, a user's message, greedily.

    Args:
      schedule: a name of `conf/schedule/`.
      max_new_tokens: cap on generated tokens.
      settings: keys of the schedule's file, e.g. width=7.

    Raises:
      UserError: no such schedule, or a setting that it refuses.
    """
    overrides = [
        f"schedule={schedule}",
        *(f"schedules.{schedule}.{key}={value}" for key, value in settings.items()),
    ]
    built = build_schedules(compose(overrides).schedules)[schedule]
    stop = Stop(max_new_tokens, model.eos_ids)
    response = built.decode(model.model, model.encode(prompt), Greedy(), stop)
    return TextResponse(response.tokens, response.trace, response.stop_reason, model.text(response.tokens))
