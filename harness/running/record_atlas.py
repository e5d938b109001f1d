"""Records a draft atlas (`harness.records.atlas`): greedy continuations, and what is proposed from all their contexts.

Nothing is timed. A prompt is decoded autoregressively, then evaluated once as a whole, and proposals from many of its
contexts are made in one pass.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.errors import UserError
from harness.models.language_model import LanguageModel
from harness.models.nemotron.contexts import Contexts, Region
from harness.models.nemotron.model import NemotronModel
from harness.records.atlas import KINDS, MANIFEST, PROMPTS, PromptAtlas, Proposed, prompt_file, read_prompt
from harness.records.folder import WorkFolder
from harness.running.plan import Plan
from schedules.autoregressive import Autoregressive
from schedules.greedy import Greedy
from schedules.response import Stop


class AtlasFolder(WorkFolder):
    """An atlas' files; prompts that are there are whole."""

    def __init__(self, path: Path):
        super().__init__(path, MANIFEST, error="atlas_error.txt")

    def file(self, number: int) -> Path:
        """The file of prompt `number`, from 0."""
        return prompt_file(self.path, number)

    def append(self, number: int, prompt: PromptAtlas) -> None:
        """Adds one prompt.

        Raises:
          UserError: the disk is full, or the file cannot be written.
        """
        with self._written(self.file(number).name):
            prompt.save(self.file(number))

    def _check_new(self) -> None:
        if any((self.path / PROMPTS).glob("*.npz")):
            raise UserError(f"run_dir={self.path}: has prompts but no {MANIFEST}. Give another run_dir.")

    def _make_ready(self) -> None:
        (self.path / PROMPTS).mkdir(exist_ok=True)
        # What a killed process left half-written.
        for partial in (self.path / PROMPTS).glob("*.partial"):
            partial.unlink()

    def _go_on(self, plan: Mapping[str, Any]) -> None:
        for number, prompt_id in enumerate(plan["prompts"]):
            file = self.file(number)
            if file.exists() and read_prompt(file).prompt_id != prompt_id:
                raise UserError(f"{file}: is not of {prompt_id}. Take it away; it is recorded anew.")


class Recorder:
    """Records a plan's prompts with a loaded model."""

    def __init__(self, plan: Plan, model: LanguageModel, widths: Sequence[int], folder: AtlasFolder):
        """`widths`: speculative widths to record.

        Raises:
          UserError: the model is of a family that has no such regions, or its text means nothing.
        """
        if not isinstance(model.model, NemotronModel):
            raise UserError(
                f"model={model.name}: atlases are recorded of the Nemotron family, whose proposals depend on nothing "
                "but a verified prefix. Choose one of its models."
            )
        if model.has_random_weights:
            raise UserError("weights=random: what random weights propose says nothing. Use weights=released.")
        self._plan, self._model, self._widths, self._folder = plan, model, widths, folder
        self._stop = Stop(plan.task.max_new_tokens, model.eos_ids)

    def run(self, note: Callable[[int], None]) -> Sequence[str]:
        """Records what is not recorded yet. Interrupted at any point, it can be run again.

        Args:
          note: called once a recorded prompt, with the number of its tokens.

        Returns:
          Ids of prompts that do not fit the model's context; they are not in the atlas.
        """
        too_long = []
        for number, item in enumerate(self._plan.items):
            if self._folder.file(number).exists():
                continue
            prompt = self._model.encode(self._plan.task.prompt(item), self._plan.task.thinking)
            if len(prompt) + self._stop.max_new_tokens > self._model.context_length:
                too_long.append(item.prompt_id)
                continue
            recorded = record(self._model.model, item.prompt_id, prompt, self._stop, self._widths)
            self._folder.append(number, recorded)
            note(len(recorded.tokens))
        return too_long


def record(
    model: NemotronModel, prompt_id: str, prompt: Sequence[int], stop: Stop, widths: Sequence[int]
) -> PromptAtlas:
    """The atlas of one prompt (token ids) at all `widths`."""
    output = Autoregressive().decode(model, prompt, Greedy(), stop).tokens
    tokens = np.array(output, dtype=np.int32)
    if not output:
        return PromptAtlas(prompt_id, len(prompt), tokens, np.zeros(0, np.float32), _nothing(widths))
    contexts = Contexts(model, prompt, output)
    regions = [
        Region(context, width, is_fresh=kind == "fresh")
        for kind in KINDS
        for width in widths
        for context in range(len(output))
    ]
    found: dict[tuple, list[tuple[Tensor, Tensor]]] = {(kind, width): [] for kind in KINDS for width in widths}
    for region, logits in contexts.propose(regions):
        found["fresh" if region.is_fresh else "branch", region.width].append(_most_likely(logits))
    return PromptAtlas(
        prompt_id=prompt_id,
        prompt_tokens=len(prompt),
        tokens=tokens,
        gaps=_gaps(contexts.verifier, torch.tensor(output, device=model.device)),
        proposed={key: _proposed(rows) for key, rows in found.items()},
    )


def _most_likely(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Most likely tokens of `logits`, float [n, vocab], as greedy drafts are drawn, and their probabilities."""
    best, tokens = logits.max(dim=-1)
    return tokens, (best.float() - logits.float().logsumexp(dim=-1)).exp()


def _proposed(rows: Sequence[tuple[Tensor, Tensor]]) -> Proposed:
    tokens, probabilities = (torch.stack(part).cpu().numpy() for part in zip(*rows, strict=True))
    return Proposed(tokens.astype(np.int32), probabilities.astype(np.float32))


def _gaps(logits: Tensor, emitted: Tensor) -> np.ndarray:
    """The logit of each emitted token minus the largest other one: float32 [output]."""
    logits = logits.float()
    own = logits.gather(1, emitted[:, None])[:, 0]
    others = logits.scatter(1, emitted[:, None], -torch.inf).amax(dim=-1)
    return (own - others).cpu().numpy()


def _nothing(widths: Sequence[int]) -> Mapping[tuple, Proposed]:
    shapes = {(kind, width): (0, width + (kind == "branch")) for kind in KINDS for width in widths}
    return {key: Proposed(np.zeros(shape, np.int32), np.zeros(shape, np.float32)) for key, shape in shapes.items()}
