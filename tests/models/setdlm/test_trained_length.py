"""Native decoding beyond the trained length: the oldest cached tokens are forgotten, at the right call."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache, Qwen3ForCausalLM

from harness.models.setdlm.model import SUPPRESSED, SetDlmModel
from schedules import Call, Greedy, Linear, Native, Packed, Stop
from schedules.call import Window
from tests.builders.setdlm import MASK_ID, PROMPT, random_backbone

WIDTH, THRESHOLD, OUTPUT = 8, 0.5, 1024


@dataclass
class Reference:
    """The released decoder, written down: transformers' own cache, which is sliced after every call.

    Attributes:
      tokens: by output position, from 0.
      cached: before each call, once the oldest were dropped.
      dropped: cached tokens that each call dropped.
    """

    backbone: Qwen3ForCausalLM
    length: int
    tokens: list[int] = field(default_factory=lambda: [MASK_ID] * OUTPUT)
    cached: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)

    @torch.no_grad()
    def decode(self) -> None:
        cache = DynamicCache()
        causal = torch.ones(len(PROMPT), len(PROMPT), dtype=torch.bool).tril()
        self._call(cache, list(PROMPT), list(range(len(PROMPT))), causal)
        pending: list[int] = []
        accepted: set[int] = set()
        while len(accepted) < OUTPUT:
            first = next(position for position in range(OUTPUT) if position not in accepted)
            window = [one for one in range(first, min(first + WIDTH, OUTPUT)) if one not in accepted]
            clean, rows = len(pending), len(pending) + len(window)
            overflow = max(cache.get_seq_length() + rows - self.length, 0)
            slice_cache(cache, overflow, cache.get_seq_length())
            before = cache.get_seq_length()
            self.dropped.append(overflow)
            self.cached.append(before)
            own = torch.eye(rows, dtype=torch.bool)
            own[:, :clean] = torch.ones(rows, clean).tril().bool()
            sees = torch.cat([torch.ones(rows, before, dtype=torch.bool), own], dim=1)
            ids = [self.tokens[position] for position in pending] + [MASK_ID] * len(window)
            places = [len(PROMPT) + position for position in [*pending, *window]]
            shares = self._call(cache, ids, places, sees)[clean:].softmax(dim=-1)
            slice_cache(cache, 0, before + clean)
            best = shares.max(dim=-1)
            sure = {row for row, share in enumerate(best.values) if share >= THRESHOLD} | {int(best.values.argmax())}
            pending = [window[row] for row in sorted(sure)]
            for row in sure:
                self.tokens[window[row]] = int(best.indices[row])
            accepted |= set(pending)

    def _call(self, cache: DynamicCache, ids: Sequence[int], places: Sequence[int], sees: Tensor) -> Tensor:
        logits = self.backbone(
            input_ids=torch.tensor([ids]),
            position_ids=torch.tensor([places]),
            attention_mask=sees[None, None],
            past_key_values=cache,
            use_cache=True,
        ).logits[0]
        logits[:, MASK_ID] = SUPPRESSED
        return logits


def slice_cache(cache: DynamicCache, start: int, end: int) -> None:
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[:, :, start:end], layer.values[:, :, start:end]


@dataclass
class Watched:
    """A SetDLM model that notes what each call about a window finds in the cache."""

    model: SetDlmModel
    cached: list[int] = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.model, name)

    def evaluate(self, call):
        before = self.model.cache.length
        output = self.model.evaluate(call)
        if call.window is not None:
            self.cached.append(before - self.model.cache.start)
        return output


def decoded(length: int | None, schedule, cap: int = OUTPUT) -> tuple[Sequence[int], Watched]:
    watched = Watched(SetDlmModel(backbone(), MASK_ID, length))
    return schedule.decode(watched, PROMPT, Greedy(), Stop(cap, frozenset())).tokens, watched


def backbone() -> Qwen3ForCausalLM:
    return random_backbone(0, torch.float64)


@pytest.fixture(scope="module")
def endless() -> tuple[Sequence[int], Watched]:
    """Decoded without forgetting anything."""
    return decoded(None, Native(WIDTH, THRESHOLD))


@pytest.mark.parametrize("length", [64, 128])
def test_a_long_native_response_forgets_the_oldest_tokens_from_the_call_on_that_would_exceed_the_length(
    length, endless
):
    reference = Reference(backbone(), length)
    reference.decode()
    tokens, watched = decoded(length, Native(WIDTH, THRESHOLD))
    assert list(tokens) == reference.tokens
    assert watched.cached == reference.cached
    everything, unbounded = endless
    first = next(number for number, dropped in enumerate(reference.dropped) if dropped)
    assert watched.cached[:first] == unbounded.cached[:first]
    assert watched.cached[first] == unbounded.cached[first] - reference.dropped[first]
    assert max(watched.cached) <= length - 1 < max(unbounded.cached)
    differs = next(position for position, pair in enumerate(zip(tokens, everything, strict=True)) if len({*pair}) > 1)
    assert unbounded.cached[first] - len(PROMPT) <= differs


def test_a_response_that_stays_within_the_length_is_the_same(endless):
    tokens, _ = decoded(len(PROMPT) + 60, Native(WIDTH, THRESHOLD), cap=40)
    assert tokens == decoded(None, Native(WIDTH, THRESHOLD), cap=40)[0]


@pytest.mark.parametrize("schedule", [Linear(WIDTH), Packed(WIDTH)], ids=["linear", "packed"])
def test_schedules_that_verify_forget_nothing(schedule):
    bounded, watched = decoded(64, schedule, cap=120)
    assert bounded == decoded(None, schedule, cap=120)[0]
    assert max(watched.cached) > 64


@pytest.mark.parametrize("end", [3, 30, 44])
def test_tokens_behind_an_end_are_dropped_and_what_was_forgotten_is_not_computed_again(end):
    """48 tokens accepted, the first 16 of them and the prompt forgotten at a length of 32."""
    model = SetDlmModel(backbone(), MASK_ID, 32)
    model.begin(PROMPT, 64)
    model.evaluate(Call(WIDTH, None))
    for first in range(1, 49, WIDTH):
        window = Window(range(first, first + WIDTH), [False] * WIDTH, slides=True)
        model.evaluate(Call(WIDTH, None, (0,), window))
        model.commit_at(torch.arange(WIDTH), window.positions)
    assert model.cache.start == len(PROMPT) + 16
    model.forget_after(end)
    seen = model.cache.length - model.cache.start
    assert seen == min(max(end - 16, 0), 40 - 16)
    again = model.evaluate(Call(WIDTH, None, (0,), Window([50], [False], slides=True)))
    assert again.rows == 1 + max(end - 40, 0)
