"""The preallocated key/value cache."""

import torch

from harness.models.execution.cache import KeyValueCache


def rows(values):
    """Keys of one head and one dimension."""
    return torch.tensor(values, dtype=torch.float32).view(1, 1, -1, 1)


def cache_with(capacity):
    cache = KeyValueCache(1, 1, 1, torch.float32, torch.device("cpu"))
    cache.reserve(capacity)
    return cache


def test_rows_behind_the_committed_ones_are_overwritten():
    cache = cache_with(5)
    cache.update(rows([1, 2, 3]), rows([1, 2, 3]), 0)
    cache.length = 2
    keys, values = cache.update(rows([7]), rows([8]), 0)
    assert keys.flatten().tolist() == [1, 2, 7]
    assert values.flatten().tolist() == [1, 2, 8]


def test_growing_keeps_what_is_committed():
    cache = cache_with(2)
    cache.update(rows([1, 2]), rows([3, 4]), 0)
    cache.length = 2
    cache.reserve(3)
    keys, values = cache.update(rows([5]), rows([6]), 0)
    assert keys.flatten().tolist() == [1, 2, 5]
    assert values.flatten().tolist() == [3, 4, 6]


def test_reserving_what_is_there_allocates_nothing():
    cache = cache_with(8)
    before = cache.update(rows([1]), rows([1]), 0)[0].data_ptr()
    cache.reserve(8)
    assert cache.update(rows([1]), rows([1]), 0)[0].data_ptr() == before
