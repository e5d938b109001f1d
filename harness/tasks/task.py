"""A task: where its items come from, how they become prompts, how long an answer may be, who grades it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from graders.verdict import INFRA, Verdict
from harness.errors import UserError


@dataclass(frozen=True)
class Item:
    """One prompt of a task.

    Attributes:
      prompt_id: stable across runs, "TASK/NAME".
      fields: what the task's template may name.
      reference: what the grader needs.
      solution: the data set's own answer as a response that the grader reads; None where the set has none.
    """

    prompt_id: str
    fields: Mapping[str, Any]
    reference: Mapping[str, Any]
    solution: str | None = None


@dataclass(frozen=True)
class DataSet:
    """Items in their published order, and what identifies them.

    Attributes:
      items: as read.
      facts: for the manifest: source, revision or file, SHA-256.
      notices: what a user should know about the data, one line each.
    """

    items: Sequence[Item]
    facts: Mapping[str, Any]
    notices: Sequence[str] = ()

    def record(self) -> Mapping[str, Any]:
        """What the manifest says about the data: the facts, and the notices where there are any."""
        return {**self.facts, "notices": list(self.notices)} if self.notices else self.facts


class Source(Protocol):
    """Where items come from."""

    def read(self) -> DataSet: ...


class Grader(Protocol):
    """Text in, verdict out."""

    def grade(self, response: str, reference: Mapping[str, Any]) -> Verdict: ...


@dataclass(frozen=True)
class Task:
    """A task as its yaml describes it.

    Attributes:
      name: as in records.
      source: where items come from.
      template: the user's message; fields of an item stand in braces.
      max_new_tokens: cap on generated tokens.
      grader: judges the response text.
      repetitions: responses for each prompt at temperature > 0 (always 1 at temperature 0).
      data_files: local file in the data set's own layout; null reads from the hub.
      selection: which items of the data set; null where there is no choice.
      thinking: whether the chat template is told that the model may think.
      stop_texts: texts that end a response like EOS does, as token sequences (E.2); for SetDLM models only.
    """

    name: str
    source: Source
    template: str
    max_new_tokens: int
    grader: Grader
    repetitions: int = 1
    data_files: str | None = field(default=None, compare=False)
    selection: str | None = field(default=None, compare=False)
    thinking: bool = False
    stop_texts: Sequence[str] = ()

    def __post_init__(self) -> None:
        for key, least in (("max_new_tokens", 0), ("repetitions", 1)):
            value = getattr(self, key)
            if not isinstance(value, int) or value < least:
                raise UserError(f"task.{key}={value}: need an integer of at least {least}.")
        for key, method in (("source", "read"), ("grader", "grade")):
            if not callable(getattr(getattr(self, key), method, None)):
                raise UserError(f"task.{key}={getattr(self, key)}: need an object with a method `{method}`.")
        if not isinstance(self.data_files, str | None):
            raise UserError(f"task.data_files={self.data_files}: need a path, or null.")
        for key in ("name", "template"):
            if not isinstance(getattr(self, key), str):
                raise UserError(f"task.{key}={getattr(self, key)}: need a text.")
        if isinstance(self.stop_texts, str) or not all(isinstance(text, str) and text for text in self.stop_texts):
            raise UserError(f'task.stop_texts={self.stop_texts}: need a list of texts, as in ["Question:"].')

    def read(self) -> DataSet:
        """The data set, its right answers checked.

        Raises:
          UserError: it cannot be read, or a right answer is none; says which.
        """
        data = self.source.read()
        for item in data.items:
            # Whatever the response: a grader that knows the right answer can judge an empty one.
            verdict = self.grader.grade("", item.reference)
            if verdict.kind == INFRA:
                problem = " ".join(verdict.reason.splitlines()[1:])
                raise UserError(f"{self.name}: the right answer of {item.prompt_id} cannot be read: {problem}")
        return data

    def check_grader(self) -> None:
        """Raises `UserError` where the grader cannot work on this machine, so that nothing is decoded in vain."""
        problem = getattr(self.grader, "problem", lambda: None)()
        if problem:
            raise UserError(
                f"{self.name}: its programs cannot be judged on this machine: {problem} See python -m harness doctor."
            )

    def prompt(self, item: Item) -> str:
        """The user's message for `item`.

        Raises:
          UserError: the template names a field that the items do not have, or is none.
        """
        try:
            return self.template.format_map(item.fields)
        except KeyError as error:
            raise UserError(
                f"task.template names {{{error.args[0]}}}; items of {self.name} have: {', '.join(sorted(item.fields))}."
            ) from None
        except (ValueError, IndexError, AttributeError) as error:
            raise UserError(
                f"task.template={self.template[:60]}: cannot be filled in ({error}). Fields stand in braces, as in "
                "{question}; braces that are text are doubled."
            ) from None


def select(items: Sequence[Item], limit: int | None, prompts: Sequence[str | int] | None) -> Sequence[Item]:
    """The items named by `prompts` (ids, or numbers in published order), then the first `limit` of them.

    Raises:
      UserError: a negative limit, or an id that is not there.
    """
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise UserError(f"limit={limit}: need an integer of at least 0, or null for all prompts.")
    if prompts is not None:
        if isinstance(prompts, str) or not isinstance(prompts, Sequence):
            raise UserError(f"prompts={prompts}: need a list, as in prompts=[{prompts}].")
        by_id = {item.prompt_id: item for item in items}
        by_id |= {str(number): item for number, item in enumerate(items)}
        unknown = [str(name) for name in prompts if str(name) not in by_id]
        if unknown:
            raise UserError(
                f"prompts: no {', '.join(unknown[:5])} among {len(items)} items. "
                f"Ids read like {items[0].prompt_id if items else 'TASK/0'}; numbers from 0 work too."
            )
        items = list({by_id[str(name)].prompt_id: by_id[str(name)] for name in prompts}.values())
    return items if limit is None else items[:limit]
