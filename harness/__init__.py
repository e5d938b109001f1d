"""Benchmark harness for self-speculative decoding with diffusion drafting.

import harness
model = harness.load("tiny_nemotron")
response = harness.decode(model, "Ada has 3 cups. Ben brings 4. How many cups are left?", "packed", width=7)
print(response.text, response.nfe, response.trace)
frame = harness.records("results/reference")  # one row a response
"""

from typing import TYPE_CHECKING, Any

from harness import records

if TYPE_CHECKING:
    from harness.api import TextResponse, decode, load

__all__ = ["TextResponse", "decode", "load", "records"]


def __getattr__(name: str) -> Any:
    # Imported on first use: `import harness` and `--help` must not wait for torch.
    if name in __all__:
        from harness import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
