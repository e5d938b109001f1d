"""Self-speculative decoding schedules, importable on their own: logic only, no models, files or clock.

    Packed(width=31).decode(model, prompt, Greedy(), Stop(max_new_tokens=512, eos_ids=frozenset({11})))

`model` is anything that answers calls (`schedules.call.Model`).
"""

from schedules.acceptance import UnsoundLogits
from schedules.autoregressive import Autoregressive
from schedules.call import Call, Draft, Model, Output, Proposals
from schedules.decoding import Decoding
from schedules.distributions import SamplingParams
from schedules.greedy import Greedy
from schedules.linear import Linear
from schedules.native import Native
from schedules.one_call import Branches, OneCall, Packed, Quadratic
from schedules.order import Confidence, LeftToRight, Random
from schedules.response import Iteration, Response, Stop
from schedules.sampling import Sampling, SeededChoices
from schedules.synthetic_acceptance import SyntheticAcceptance

__all__ = [
    "Autoregressive",
    "Branches",
    "Call",
    "Confidence",
    "Decoding",
    "Draft",
    "Greedy",
    "Iteration",
    "LeftToRight",
    "Linear",
    "Model",
    "Native",
    "OneCall",
    "Output",
    "Packed",
    "Proposals",
    "Quadratic",
    "Random",
    "Response",
    "Sampling",
    "SamplingParams",
    "SeededChoices",
    "Stop",
    "SyntheticAcceptance",
    "UnsoundLogits",
]
