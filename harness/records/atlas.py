"""The draft atlas: along each greedy continuation, what the drafter proposes from every context.

Under greedy decoding every schedule emits the verifier's continuation (section 3.1), whatever is drafted. So what
a schedule costs follows from one object: for each prompt, which proposals from each verified context are right. An
atlas holds it, for the two regions that proposals are made in (see `harness.models.nemotron.contexts`) and for each
recorded width, because the number of masks changes what is predicted:

    fresh    offsets 1 .. W      Linear's drafting call; Packed's branch {0}
    branch   offsets 1 .. W + 1  one branch of several; the prompt's call

A folder holds atlas.json, a manifest as runs have, and prompts/NUMBER.npz, one file a prompt, renamed into place when
it is whole. Context c is the prompt with the first c output tokens; offsets count the positions behind it, from 1.
"""

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.errors import UserError
from harness.records.identity import data_digest, weights_digest

MANIFEST = "atlas.json"
PROMPTS = "prompts"

Kind = Literal["fresh", "branch"]
KINDS: Sequence[Kind] = ("fresh", "branch")


class Proposed(NamedTuple):
    """One region from every context of one prompt.

    Attributes:
      tokens: int32 [contexts, offsets]; most likely tokens.
      probabilities: float32 [contexts, offsets]; the drafter's own, of these tokens.
    """

    tokens: NDArray[np.int32]
    probabilities: NDArray[np.float32]


@dataclass(frozen=True)
class PromptAtlas:
    """What was recorded of one prompt.

    Attributes:
      prompt_tokens: number of them.
      tokens: int32 [output]; the greedy continuation, EOS included, cut at the cap.
      gaps: float32 [output]; the verifier's logit of each emitted token minus the largest other one: its top-two gap.
        Negative where evaluating the whole text at once would have emitted another token than decoding did.
      proposed: by kind of region and width; contexts 0 .. output - 1.
    """

    prompt_id: str
    prompt_tokens: int
    tokens: NDArray[np.int32]
    gaps: NDArray[np.float32]
    proposed: Mapping[tuple[Kind, int], Proposed]

    @property
    def widths(self) -> Sequence[int]:
        """Recorded speculative widths."""
        return sorted({width for _, width in self.proposed})

    def correct(self, kind: Kind, width: int) -> NDArray[np.bool_]:
        """Which proposals are the token that is emitted there: bool [contexts, offsets].

        False for positions beyond the response, about which nothing is known.
        """
        proposed = self.proposed[kind, width].tokens
        contexts, offsets = proposed.shape
        # An id that no token has stands for what is beyond the response.
        emitted = np.concatenate([self.tokens, np.full(offsets, -1, dtype=np.int32)])
        positions = np.arange(contexts)[:, None] + np.arange(offsets)
        return proposed == emitted[positions]

    def save(self, path: Path) -> None:
        """Writes one file, whole or not at all."""
        arrays = {"tokens": self.tokens, "gaps": self.gaps}
        for (kind, width), one in self.proposed.items():
            arrays[f"{kind}_{width}_tokens"] = one.tokens
            arrays[f"{kind}_{width}_probabilities"] = one.probabilities
        partial = path.with_name(f"{path.name}.partial")
        with partial.open("wb") as file:
            np.savez_compressed(file, prompt_id=self.prompt_id, prompt_tokens=self.prompt_tokens, **arrays)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


@dataclass(frozen=True)
class Atlas:
    """Prompts of one model on one task.

    Attributes:
      expected: prompts that a whole atlas would have.
      weights, data: digests of the model's weights and of the data set's content; empty where they are not known.
    """

    model: str
    task: str
    prompts: Sequence[PromptAtlas]
    expected: int
    weights: str = ""
    data: str = ""

    @property
    def widths(self) -> Sequence[int]:
        """Recorded speculative widths."""
        return self.prompts[0].widths

    @property
    def label(self) -> str:
        """What it is of, for captions; says PARTIAL where prompts are missing."""
        partial = "" if len(self.prompts) == self.expected else f" (PARTIAL: {len(self.prompts)} of {self.expected})"
        return f"{self.model} on {self.task}, {len(self.prompts)} prompts{partial}"


def prompt_file(folder: Path, number: int) -> Path:
    """The file of a run's prompt `number`, from 0."""
    return folder / PROMPTS / f"{number:05}.npz"


def read_prompt(path: Path) -> PromptAtlas:
    """What `PromptAtlas.save` wrote.

    Raises:
      UserError: the file is none, or damaged.
    """
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        regions = [name.rsplit("_", 2) for name in arrays if name.endswith("_probabilities")]
        return PromptAtlas(
            prompt_id=str(arrays["prompt_id"]),
            prompt_tokens=int(arrays["prompt_tokens"]),
            tokens=arrays["tokens"],
            gaps=arrays["gaps"],
            proposed={
                (kind, int(width)): Proposed(arrays[f"{kind}_{width}_tokens"], arrays[f"{kind}_{width}_probabilities"])
                for kind, width, _ in regions
            },
        )
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from None
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path}: no prompt of an atlas ({error!r}). Take it away; the atlas, started again, records it anew."
        ) from None


def read_atlas(folder: Path) -> Atlas:
    """A recorded atlas; one that is not whole is PARTIAL and can be used.

    Raises:
      UserError: there is none, or it is damaged.
    """
    manifest_file = folder / MANIFEST
    try:
        manifest = json.loads(manifest_file.read_text())
        model, task = manifest["config"]["model"]["name"], manifest["config"]["task"]["name"]
        expected = len(manifest["plan"]["prompts"])
        weights, data = weights_digest(manifest), data_digest({"data": manifest.get("data", {})})
    except OSError as error:
        raise UserError(
            f"{manifest_file}: cannot be read ({error.strerror}). Record one: python -m harness atlas run_dir={folder}"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{manifest_file}: no manifest of an atlas ({error!r}).") from None
    prompts = [read_prompt(path) for path in sorted((folder / PROMPTS).glob("*.npz"))]
    if not prompts:
        raise UserError(f"{folder}: an atlas without prompts yet. Go on with it: python -m harness atlas.")
    return Atlas(model, task, prompts, expected, weights, data)
