"""Whether the hub can be reached: asked once, so that a machine without a network waits for that a single time.

The hub's clients try every request again for up to a minute. Where the hub does not answer, callers look into their
caches alone.
"""

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from huggingface_hub import constants

ANSWERS_WITHIN_S = 5.0


def out_of_reach() -> str | None:
    """Why the hub cannot be asked, for messages; None where it can."""
    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    silence = _silence_of(constants.ENDPOINT)
    return f"the hub cannot be reached ({silence})" if silence else None


@contextmanager
def caches_alone() -> Iterator[None]:
    """Inside, `datasets` reads its cache and asks nobody: as with HF_HUB_OFFLINE, which it looks at when imported."""
    from datasets import config

    before, config.HF_HUB_OFFLINE = config.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


@cache
def _silence_of(endpoint: str) -> str | None:
    """Why nothing answers at `endpoint`; None where something does, whatever it says."""
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=ANSWERS_WITHIN_S).close()
    except urllib.error.HTTPError:
        return None
    except OSError as error:
        reason = getattr(error, "reason", error)
        # The clients may have certificates of their own.
        return None if isinstance(reason, ssl.SSLError) else str(reason)
    return None
