"""Whether two sets of records are of the same thing: one comparison for runs that go on, shards and the analysis.

A run is known by its config, but for places; its data by their content; its model by its weights. What differs is
said key by key.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

MODEL_FACTS = ("parameters", "dtype", "revision", "config_sha256", "weights_sha256")
DATA_FACTS = ("sha256", "revision", "items")
CODE_FACTS = ("version", "commit", "changed")


class Difference(NamedTuple):
    """A key that two runs do not have in common."""

    key: str
    one: Any
    other: Any


def differences(one: Mapping[str, Any], other: Mapping[str, Any], but: Collection[str] = ()) -> Sequence[Difference]:
    """What differs between two mappings of dotted keys, `but` for some; a key that is missing is None."""
    return [
        Difference(key, one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key) and key not in but
    ]


def config_differences(
    one: Mapping[str, Any], other: Mapping[str, Any], places: Collection[str]
) -> Sequence[Difference]:
    """What differs between two configs.

    Args:
      places: dotted keys that say where things lie.
    """
    return differences(flat(one), flat(other), places)


def model_facts(session: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a model is known by, from what one start of a run wrote; nothing where it loaded none."""
    return {key: (session.get("model") or {}).get(key) for key in MODEL_FACTS}


def data_facts(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a data set is known by."""
    return {key: manifest["data"].get(key) for key in DATA_FACTS}


def weights_digest(session: Mapping[str, Any]) -> str:
    """The weights in eight characters; empty where a manifest does not say. Their dtype is a fact of its own."""
    return _digest({key: value for key, value in model_facts(session).items() if key not in ("dtype", "parameters")})


def data_digest(manifest: Mapping[str, Any]) -> str:
    """The content of the data set in eight characters; empty where it was generated, or a manifest does not say.

    The number of items is left out: what was selected is a matter of prompts.
    """
    return _digest({key: value for key, value in data_facts(manifest).items() if key != "items"})


def flat(config: Any, prefix: str = "") -> dict[str, Any]:
    """A nested config as one level of dotted keys."""
    if not isinstance(config, dict):
        return {prefix: config}
    result = {}
    for key, value in config.items():
        result |= flat(value, f"{prefix}.{key}" if prefix else key)
    return result


def _digest(facts: Mapping[str, Any]) -> str:
    known = {key: value for key, value in facts.items() if value is not None}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:8] if known else ""
