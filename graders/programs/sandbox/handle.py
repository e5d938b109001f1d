"""What the judge holds in place of an object that stays with the player.

Calls, attributes, items and iteration are asked of the player: there the answer is the program's to give. Comparison
and arithmetic are not. Between an object of the program and a plain value the program is never asked, or its
`__eq__` could claim to equal anything, its `__sub__` to differ by nothing, and both would be told the expected
value. An object that extends a plain type (a named tuple, a list with methods) counts as its plain contents there;
any other equals nothing but itself. Only between two objects of the program their own operators decide.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, Protocol

UNARY = ("len", "iter", "next", "reversed", "repr", "str", "bool", "int", "float", "abs", "round")
MORE_UNARY = {"invert": operator.invert, "neg": operator.neg, "pos": operator.pos, "index": operator.index}
ARITHMETIC = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift matmul".split()
ORDER = ("eq", "ne", "lt", "le", "gt", "ge")


class Asker(Protocol):
    """Whoever carries a request to the player."""

    def request(self, request: str, *operands: Any) -> Any:
        """The player's answer."""
        ...


class Handle:
    """Object number `number` of the player.

    Args:
      asker: carries the requests.
      number: the player's number for it.
      is_extended: whether it is an instance of a class that extends a plain type.
    """

    def __init__(self, asker: Asker, number: int, is_extended: bool) -> None:
        for name, value in (("_asker", asker), ("_number", number), ("_is_extended", is_extended)):
            object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._asker.request("call", self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array_"):  # numpy would read memory of ours at an address from there
            raise AttributeError(name)
        return self._asker.request("getattr", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._asker.request("setattr", self, name, value)

    @property
    def __dict__(self) -> dict[str, Any]:
        return self._asker.request("getattr", self, "__dict__")

    def __delattr__(self, name: str) -> None:
        self._asker.request("delattr", self, name)

    def __getitem__(self, key: Any) -> Any:
        return self._asker.request("getitem", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._asker.request("setitem", self, key, value)

    def __delitem__(self, key: Any) -> None:
        self._asker.request("delitem", self, key)

    def __iter__(self) -> Iterator[Any]:
        items = self._asker.request("iter", self)
        return items if isinstance(items, Handle) is False else relay(items)

    def __contains__(self, value: Any) -> bool:
        return any(item is value or item == value for item in self)

    def __hash__(self) -> int:
        return hash(contents(self)) if self._is_extended else self._asker.request("hash", self)

    def __format__(self, spec: str) -> str:
        return self._asker.request("format", self, spec)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, Handle) and self._asker.request("isinstance", self, value)

    def __subclasscheck__(self, value: Any) -> bool:
        return isinstance(value, Handle) and self._asker.request("issubclass", self, value)

    def __enter__(self) -> Any:
        return self._asker.request("enter", self)

    def __exit__(self, *_: Any) -> Any:
        return self._asker.request("exit", self)

    def __copy__(self) -> Any:
        return self._asker.request("copy", self)

    def __deepcopy__(self, _: dict) -> Any:
        return self._asker.request("deepcopy", self)


class ExtendedHandle(Handle):
    """A handle that `isinstance` takes for the plain type its object extends."""

    @property
    def __class__(self) -> type:
        return type(contents(self))


def relay(source: Handle) -> Iterator[Any]:
    """The items of an iterator of the player, as a generator of ours; what it is sent reaches the player."""
    sent = None
    while True:
        try:
            item = source._asker.request("next", source) if sent is None else source.send(sent)
        except StopIteration:
            return
        sent = yield item


async def await_there(source: Handle) -> Any:
    """What a coroutine of the player results in."""
    return source._asker.request("await", source)


def contents(value: Any) -> Any:
    """The plain contents of an extended handle; any other value itself."""
    if isinstance(value, Handle) and value._is_extended:
        return value._asker.request("contents", value)
    return value


def _unary(name: str) -> Callable[[Any], Any]:
    def method(self: Handle, *more: Any) -> Any:
        return self._asker.request(name, self, *more)

    return method


def _arithmetic(name: str, is_reflected: bool) -> Callable[[Any, Any], Any]:
    perform = getattr(operator, name)

    def method(self: Handle, other: Any) -> Any:
        left, right = (other, self) if is_reflected else (self, other)
        if isinstance(left, Handle) and isinstance(right, Handle):
            return self._asker.request(name, left, right)
        left, right = contents(left), contents(right)
        if isinstance(left, Handle) or isinstance(right, Handle):
            return NotImplemented
        return perform(left, right)

    return method


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    perform = getattr(operator, name)

    def method(self: Handle, other: Any) -> Any:
        left, right = contents(self), contents(other)
        are_handles = isinstance(left, Handle), isinstance(right, Handle)
        if all(are_handles) and left is not right:
            return self._asker.request(name, left, right)
        return NotImplemented if any(are_handles) else perform(left, right)

    return method


def _install() -> None:
    Handle.__doc__ = property(lambda handle: handle._asker.request("getattr", handle, "__doc__"))
    for name in UNARY:
        if name != "iter":
            setattr(Handle, f"__{name}__", _unary(name))
    for name in MORE_UNARY:
        setattr(Handle, f"__{name}__", _unary(name))
    for name in ARITHMETIC:
        plain = name.rstrip("_")
        setattr(Handle, f"__{plain}__", _arithmetic(name, is_reflected=False))
        setattr(Handle, f"__r{plain}__", _arithmetic(name, is_reflected=True))
    for name in ORDER:
        setattr(Handle, f"__{name}__", _comparison(name))


_install()
