"""The SetDLM family as schedules see it: calls about windows in, logits out, on a stock Qwen3 backbone.

The backbone is called with explicit 4D boolean masks, position ids and our cache.

A response goes like this. `begin` takes the prompt; the first call, Call(width, None), caches it and gives nothing
else (E.2). Every other call is about a window. Accepted tokens reach the model in one of two ways: `commit` after a
call that verified a draft, `commit_at` for tokens that were taken from proposals, as native decoding does. Where an
accepted EOS shrinks the response, `forget_after` drops what was accepted behind it (algorithm 3, line 12).

Cached are the prompt and then accepted tokens in the order of acceptance, keys rotated by textual position. Accepted
tokens that were no draft tokens wait in N for the next call, which caches them. Accepting copies nothing, and what is
cached is computed again only where it had seen a token that was dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Qwen3ForCausalLM

from harness.models.execution.cache import KeyValueCache
from harness.models.execution.forward import Rows, forward_pass
from harness.models.setdlm.layout import Layout, window_layout
from schedules.call import Call, Output, Proposals, Window

SUPPRESSED = -1e12  # the mask token's logit; finite as in the released decoder, and zero in every softmax


@dataclass(frozen=True)
class _Prepared:
    """Tensors on the device for one shape of call, built once.

    `mask` has all-True columns for the longest cached context before the layout's own, so that the mask for any
    context is a slice; only its columns for O depend on the draft, and are written anew in each call. `kept` lists
    proposal rows first: the verifier rows of a draft of k tokens are then a slice too.
    """

    layout: Layout
    token_ids: Tensor  # int64 [rows], masks everywhere
    mask: Tensor  # bool [rows, context capacity + rows]
    draft_mask: Tensor  # bool [rows, draft_rows], a view of its columns for O
    kept: Tensor  # int64 [proposals + verifier rows]


@dataclass
class _Pending:
    """Accepted tokens that no call has processed yet: the next call's N."""

    tokens: Tensor  # int64 [p]
    positions: list[int]


@dataclass(frozen=True)
class _Verified:
    """What the last verifying call was about; its O rows lie right behind the cached ones."""

    window: Window
    draft: Tensor  # int64 [u], by rank

    @property
    def verifiable(self) -> int:
        """Ranks that the verifier has a say on: the drafted ones before the first that is not, and that one."""
        return _verifier_count(self.window)


class SetDlmModel:
    """A set-causal model: any-order verifier and parallel drafter in one set of weights.

    Batch size 1. Not thread-safe. Calls run without gradients.
    """

    is_same_position = True

    def __init__(self, backbone: Qwen3ForCausalLM, mask_id: int, length: int | None = None):
        """Takes over a backbone.

        Args:
          backbone: on its device.
          mask_id: token id of MASK.
          length: cached and new rows that a call about a sliding window has at most; None for any number.
        """
        config = backbone.config
        self.backbone = backbone.eval()
        self.mask_id = mask_id
        self.length = length
        self.device = backbone.device
        self.cache = KeyValueCache(
            config.num_hidden_layers,
            config.num_key_value_heads,
            config.head_dim,
            backbone.dtype,
            self.device,
        )
        self._prepared: dict[tuple, _Prepared] = {}
        self._prompt: Tensor | None = None  # not processed yet
        self._prompt_length = 0
        self._cached: list[int] = []  # output positions of the cached tokens behind the prompt
        self._cached_tokens: list[Tensor] = []  # those tokens, in pieces
        self._pending = self._nothing_pending()
        self._verified: _Verified | None = None
        self._sent: tuple[list[int], Tensor] = ([], self._pending.tokens)  # last to the device

    def reserve(self, tokens: int) -> None:
        """Told that no prompt and response are longer than `tokens` together; the cache then grows no more."""
        self.cache.promise(tokens)

    def begin(self, prompt: Sequence[int], max_new_tokens: int) -> None:
        """Forgets everything and takes `prompt` as the verified prefix."""
        self._prompt = torch.tensor(prompt, device=self.device)
        self._prompt_length = len(prompt)
        self._cached, self._cached_tokens = [], []
        self._pending = self._nothing_pending()
        self._verified = None
        self.cache.length = self.cache.start = 0
        self.reserve(len(prompt) + max_new_tokens)

    @torch.inference_mode()
    def evaluate(self, call: Call) -> Output:
        """One forward pass; see `schedules.call.Model`.

        The first call of a response has no draft, branch or window. Proposals of all branches cover the same ranks:
        2 to u where the call verifies, as rank 1 is always accepted, else 1 to u.

        Raises:
          ValueError: the first call asks for more than the prompt, another one has no proper window, or its draft
            and branches do not fit the window.
        """
        if self._prompt is not None:
            return self._evaluate_prompt(call)
        _check(call)
        return self._evaluate_window(call)

    def commit(self, tokens: Tensor, accepted_drafts: int | None = None) -> None:
        """Accepts `tokens` at the first ranks of the call just evaluated, which must have verified a draft.

        Args:
          tokens: int64 [accepted], in verification order; all but the last are draft tokens.
          accepted_drafts: how many of them are draft tokens. None: all but the last, which counts as one only where it
            completes a fully drafted window and equals the draft; telling costs a transfer to the host, then.

        Raises:
          ValueError: no call to accept from, or more tokens than it verified.
        """
        verified, accepted = self._verified, tokens.shape[0]
        if verified is None or accepted > verified.verifiable:
            limit = verified.verifiable if verified else "no call that verified a draft"
            raise ValueError(f"commit: got {accepted} tokens, can accept from {limit}")
        if accepted_drafts is None:
            accepted_drafts = accepted - 1
            if accepted == len(verified.window.positions) and all(verified.window.drafted):
                accepted_drafts += int(tokens[-1] == verified.draft[-1])
        positions = list(verified.window.positions[:accepted])
        self.cache.length += accepted_drafts
        self._cached += positions[:accepted_drafts]
        self._cached_tokens.append(tokens[:accepted_drafts])
        self._pending = _Pending(tokens[accepted_drafts:], positions[accepted_drafts:])
        self._verified = None

    def commit_at(self, tokens: Tensor, positions: Sequence[int]) -> None:
        """Accepts `tokens` (int64 [n]) at output `positions`, in this order; the next call processes them all.

        Raises:
          ValueError: not as many positions as tokens.
        """
        if tokens.shape[0] != len(positions):
            raise ValueError(f"commit_at: got {tokens.shape[0]} tokens and {len(positions)} positions")
        self._pending = _Pending(
            torch.cat([self._pending.tokens, tokens]),
            [*self._pending.positions, *positions],
        )
        self._verified = None

    def forget_after(self, position: int) -> None:
        """Drops all accepted tokens beyond output `position`; the others keep their order.

        Tokens accepted after a dropped one were computed while it was visible. They wait in N of the next call to be
        computed again, so that everything later depends on the kept pairs alone (algorithm 3, line 12). That call
        has more rows than table 2 says; it happens at most once for each accepted end. What a sliding window has
        forgotten is not computed again.
        """
        first = next((index for index, cached in enumerate(self._cached) if cached > position), len(self._cached))
        first = max(first, self.cache.start - self._prompt_length)
        positions = self._cached[first:] + self._pending.positions
        kept = [index for index, accepted in enumerate(positions) if accepted <= position]
        tokens = torch.cat([*self._cached_tokens, self._pending.tokens])
        before = tokens[:first]
        self._pending = _Pending(tokens[first:][kept], [positions[index] for index in kept])
        self._cached, self._cached_tokens = self._cached[:first], [before]
        self.cache.length = self._prompt_length + first
        self._verified = None

    def _nothing_pending(self) -> _Pending:
        return _Pending(torch.empty(0, dtype=torch.int64, device=self.device), [])

    def _evaluate_prompt(self, call: Call) -> Output:
        if call.draft is not None or call.branches or call.window is not None:
            raise ValueError("call: the first one processes the prompt alone; need no draft, branches or window")
        rows = self._prompt_length
        self.cache.make_room(0)
        none = torch.empty(0, dtype=torch.int64, device=self.device)
        prompt = Rows(
            token_ids=self._prompt[None],
            positions=torch.arange(rows, device=self.device)[None],
            mask=torch.ones(1, 1, rows, rows, dtype=torch.bool, device=self.device).tril(),
            kept=none,
        )
        logits = forward_pass(self.backbone, self.cache, prompt)
        self._prompt = None
        self.cache.length = rows
        return Output(verifier=logits, proposals=None, rows=rows)

    def _evaluate_window(self, call: Call) -> Output:
        window, pending = call.window, self._pending
        prepared = self._shape(len(window.positions), len(pending.positions), call)
        layout = prepared.layout
        if window.slides and self.length is not None:
            self._forget_oldest(layout.rows)
        known = layout.context_rows + layout.ranks
        is_mixed = call.draft is not None and _is_mixed(window)
        places = [*window.drafted, *_draft_rows(window)] if is_mixed else []
        from_host = self._send([*pending.positions, *window.positions, *places])
        token_ids = prepared.token_ids.clone()
        token_ids[: layout.context_rows] = pending.tokens
        if call.draft is not None:
            drafted = window.drafted[0]
            if is_mixed:
                drafted, rows = from_host[known:].view(2, layout.ranks)
                drafted = drafted.bool()
                token_ids[layout.draft_columns] = torch.where(drafted, call.draft.tokens[rows], self.mask_id)
            elif drafted:
                token_ids[layout.draft_columns] = call.draft.tokens[: layout.ranks]
            prepared.draft_mask.copy_(layout.sees_drafts(drafted))
        position_ids = from_host[:known][layout.slots] + (self._prompt_length - 1)
        output = self._forward(prepared, token_ids, position_ids, call)
        self.cache.length += layout.context_rows
        self._cached += pending.positions
        self._cached_tokens.append(pending.tokens)
        self._pending = self._nothing_pending()
        self._verified = None if call.draft is None else _Verified(window, output.draft)
        return output

    def _send(self, numbers: list[int]) -> Tensor:
        """`numbers` on the device, int64 [n]: in one transfer, or none where what was sent last ends with them.

        So it is in Linear's second call, which is about the window of the first.
        """
        sent, on_device = self._sent
        if sent[len(sent) - len(numbers) :] != numbers:
            sent, on_device = numbers, torch.tensor(numbers, dtype=torch.int64, device=self.device)
            self._sent = sent, on_device
        return on_device[len(sent) - len(numbers) :]

    def _forget_oldest(self, rows: int) -> None:
        """Leaves no more cached tokens than have room beside `rows` new rows in the trained length."""
        oldest = self.cache.length + rows - self.length
        self.cache.start = min(max(self.cache.start, oldest), self.cache.length)

    def _forward(self, prepared: _Prepared, token_ids: Tensor, position_ids: Tensor, call: Call) -> Output:
        layout = prepared.layout
        proposals = layout.proposal_rows.shape[0]
        verifier_count = _verifier_count(call.window) if call.draft is not None else 0
        # Every row sees all cached tokens, so it does not matter which of the all-True columns are left.
        hidden_columns = prepared.mask.shape[1] - layout.rows - self.cache.length + self.cache.start
        rows = Rows(
            token_ids=token_ids[None],
            positions=position_ids[None],
            mask=prepared.mask[None, None, :, hidden_columns:],
            kept=prepared.kept[: proposals + verifier_count],
        )
        logits = forward_pass(self.backbone, self.cache, rows)
        logits[:, self.mask_id] = SUPPRESSED
        return Output(
            verifier=logits[proposals:],
            proposals=_by_branch(logits[:proposals], call.branches, layout.first_rank),
            rows=layout.rows,
            draft=None if call.draft is None else token_ids[layout.draft_columns],
        )

    def _shape(self, ranks: int, context_rows: int, call: Call) -> _Prepared:
        """The tensors for calls of this shape, with room in cache and mask for one more."""
        key = (ranks, context_rows, call.draft is not None, tuple(call.branches))
        prepared = self._prepared.get(key)
        if prepared is None or prepared.mask.shape[1] < self.cache.length + prepared.layout.rows:
            layout = window_layout(*key)
            self.cache.make_room(layout.rows)
            prepared = self._prepared[key] = self._prepare(layout, self.cache.capacity)
        self.cache.make_room(prepared.layout.rows)
        return prepared

    def _prepare(self, layout: Layout, capacity: int) -> _Prepared:
        layout = layout.to(self.device)
        draft = layout.draft_columns
        context = torch.ones(layout.rows, capacity, dtype=torch.bool, device=self.device)
        mask = torch.cat([context, layout.sees], dim=1)
        verifier = torch.arange(draft.stop, draft.stop + layout.draft_rows, device=self.device)
        return _Prepared(
            layout=layout,
            token_ids=torch.full((layout.rows,), self.mask_id, device=self.device),
            mask=mask,
            draft_mask=mask[:, capacity + draft.start : capacity + draft.stop],
            kept=torch.cat([layout.proposal_rows, verifier]),
        )


def _check(call: Call) -> None:
    window = call.window
    if window is None:
        raise ValueError("call: got no window; every call but the prompt's needs one")
    ranks = len(window.positions)
    if ranks != len(window.drafted) or ranks != len(set(window.positions)) or min(window.positions, default=0) < 1:
        raise ValueError(f"window: got {window}; need different positions from 1 on, and a flag for each")
    if call.draft is not None:
        tokens = len(call.draft if window.draft_rows is None else window.draft_rows)
        if tokens != ranks:
            raise ValueError(f"draft: got {tokens} tokens for a window of {ranks} ranks; need one for each")


def _draft_rows(window: Window) -> Sequence[int]:
    return range(len(window.drafted)) if window.draft_rows is None else window.draft_rows


def _is_mixed(window: Window) -> bool:
    """Whether the device must be told which tokens of the draft belong where: not if none do, or all in order."""
    if not any(window.drafted):
        return False
    return not all(window.drafted) or list(_draft_rows(window)) != list(range(len(window.drafted)))


def _verifier_count(window: Window) -> int:
    """Rows that verify: one for each drafted rank before the first that is not, and one for that."""
    ranks = len(window.drafted)
    drafted = next((rank for rank, is_drafted in enumerate(window.drafted) if not is_drafted), ranks)
    return min(drafted + 1, ranks)


def _by_branch(logits: Tensor, branches: Sequence[int], first_rank: int) -> Proposals | None:
    """Proposal rows, [branches x kept, vocab], as the call's proposals; None without branches."""
    if not branches:
        return None
    kept = logits.shape[0] // len(branches)
    by_branch = logits.view(len(branches), kept, logits.shape[-1])
    return Proposals(by_branch, branches, [first_rank] * len(branches))
