"""Which attention backend a boolean mask leaves to choose, and what the mask costs, for the embedded model's shapes."""

from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention as attend
from transformers.integrations.sdpa_attention import repeat_kv

from harness.analysis.table import Column, Table
from harness.bench.embedded import beside, can_compile, interleaved, load
from harness.system.clock import stopwatch

CONTEXT, ROWS, CALLS, REPEATS = 1024, 32, 20, 15
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}
OURS = "as chosen, mask, keys shared by the group"
# Of a `Timed`.
COLUMNS = (
    Column("backend", "", lambda one: one.name),
    Column("µs", "", lambda one: one.time),
    Column("x ours", "", lambda one: one.ratio, decimals=2),
)


def steps() -> int:
    """How often `attention_part` notes a measurement."""
    return (2 * (1 + len(BACKENDS)) + 2 + 2 * can_compile()) * REPEATS


def attention_part(note: Callable[[], None]) -> Table:
    """Microseconds of one layer's attention by backend, with and without a mask.

    Args:
      note: called once a measurement.
    """
    config = load().model.backbone.config
    groups = config.num_attention_heads // config.num_key_value_heads
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(1, config.num_attention_heads, ROWS, config.head_dim, generator=generator)
    keys, values = torch.randn(
        2, 1, config.num_key_value_heads, CONTEXT + ROWS, config.head_dim, generator=generator
    ).unbind()
    wide_keys, wide_values = repeat_kv(keys, groups), repeat_kv(values, groups)
    mask = torch.ones(1, 1, ROWS, CONTEXT + ROWS, dtype=torch.bool)
    mask[..., CONTEXT:] = torch.ones(ROWS, ROWS, dtype=torch.bool).tril()
    contestants: dict[str, Callable[[], object]] = {
        f"{backend}, {'mask' if given is not None else 'no mask'}": partial(
            _attend, kind, queries, wide_keys, wide_values, given
        )
        for backend, kind in {"as chosen": None, **BACKENDS}.items()
        for given in (None, mask)
    }
    contestants[OURS] = lambda: attend(queries, keys, values, attn_mask=mask, enable_gqa=True)
    contestants["giving every head its keys and values"] = lambda: (repeat_kv(keys, groups), repeat_kv(values, groups))
    if can_compile():
        compiled = torch.compile(flex_attention, dynamic=False)
        blocks = _blocks(mask)
        contestants["flex, compiled"] = lambda: compiled(queries, keys, values, block_mask=blocks, enable_gqa=True)
        contestants["flex: its mask, anew at every call"] = lambda: _blocks(mask)
    found = interleaved({name: lambda _, work=work: _us(work) for name, work in contestants.items()}, REPEATS, note)
    return Table(
        name="attention",
        title=f"Attention of one layer, {ROWS} rows on a context of {CONTEXT:,} tokens",
        columns=COLUMNS,
        items=beside(OURS, {name: median(times) for name, times in found.items()}),
        notes=[
            "As chosen: what scaled_dot_product_attention takes by itself; with keys shared by the group is what we "
            "call on a CPU. With a mask, transformers expands keys and values to all heads first. Flex attention needs "
            "a mask of its own kind, whose blocks are found anew whenever the prefix has grown."
        ],
    )


def _attend(kind: SDPBackend | None, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    if kind is None:
        return attend(queries, keys, values, attn_mask=mask)
    with sdpa_kernel(kind):
        return attend(queries, keys, values, attn_mask=mask)


def _blocks(mask: Tensor) -> object:
    rows, columns = mask.shape[2:]
    return create_block_mask(lambda _, __, row, column: mask[0, 0, row, column], 1, 1, rows, columns, mask.device)


def _us(work: Callable[[], object]) -> float:
    with torch.inference_mode():
        _, seconds = stopwatch(lambda: [work() for _ in range(CALLS)])
    return 1e6 * seconds / CALLS
