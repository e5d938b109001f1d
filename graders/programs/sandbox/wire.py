"""What travels between the judge, who runs the tests, and the player, who runs the tested program.

Judge to player: pickles, since the player may trust the judge. Player to judge: JSON that can only spell plain
values and numbered references, since the judge trusts nothing. A value of a plain built-in type arrives as a
value of that very type, rebuilt from its contents; no method of the tested program takes part. Anything else
arrives as a reference to an object that stays with the player.

    None, True, 1.5, "text", 12    as in JSON
    ["list", [...]]                and tuple, set, frozenset, deque, dict, Counter, ...; see DECODERS
    ["int", "-0x1f..."]            integers beyond 64 bits
    ["object", 7, true]            object number 7 of the player; true: it extends a plain type
    ["argument", 0]                the very container the judge passed, by its place in `mutable_parts`
    ["callback", 3]                object number 3 of the judge, coming home
"""

from __future__ import annotations

import collections
import datetime
import json
import socket
import struct
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

LENGTH = struct.Struct("!Q")
LARGEST_MESSAGE = 32 << 20
SMALL_INT = 1 << 63
KEY_VIEW, VALUE_VIEW, ITEM_VIEW = type({}.keys()), type({}.values()), type({}.items())


class Disconnected(Exception):
    """The other side is gone, or says what nobody can understand."""


def send(channel: socket.socket, message: bytes) -> None:
    """Writes one framed message.

    Raises:
      Disconnected: nobody reads any more.
    """
    try:
        channel.sendall(LENGTH.pack(len(message)) + message)
    except OSError as error:
        raise Disconnected(str(error)) from None


def receive(channel: socket.socket) -> bytes:
    """Reads one framed message.

    Raises:
      Disconnected: the stream ended, or announces more than `LARGEST_MESSAGE`.
    """
    (length,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
    if length > LARGEST_MESSAGE:
        raise Disconnected(f"a message of {length} bytes; at most {LARGEST_MESSAGE} are read")
    return _exactly(channel, length)


def _exactly(channel: socket.socket, length: int) -> bytes:
    received = bytearray()
    while len(received) < length:
        try:
            piece = channel.recv(min(length - len(received), 1 << 20))
        except OSError as error:
            raise Disconnected(str(error)) from None
        if not piece:
            raise Disconnected("end of stream")
        received += piece
    return bytes(received)


def _pairs(mapping: dict) -> list:
    return [[key, item] for key, item in dict.items(mapping)]


FACTORIES = {kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple)}


def _factory(mapping: collections.defaultdict) -> str | None:
    return next((name for name, kind in FACTORIES.items() if kind is mapping.default_factory), None)


# Exact type -> (tag, contents as a list of values or plain JSON). Subclasses from the program are references.
ENCODERS: dict[type, tuple[str, Callable[[Any], list]]] = {
    list: ("list", list),
    tuple: ("tuple", list),
    set: ("set", list),
    frozenset: ("frozenset", list),
    collections.deque: ("deque", lambda deque: [list(deque), deque.maxlen]),
    dict: ("dict", _pairs),
    collections.OrderedDict: ("OrderedDict", _pairs),
    collections.Counter: ("Counter", _pairs),
    collections.defaultdict: ("defaultdict", lambda mapping: [_factory(mapping), list(mapping.items())]),
    KEY_VIEW: ("keys", list),
    VALUE_VIEW: ("values", list),
    ITEM_VIEW: ("items", list),
    range: ("range", lambda numbers: [numbers.start, numbers.stop, numbers.step]),
    slice: ("slice", lambda cut: [cut.start, cut.stop, cut.step]),
    complex: ("complex", lambda number: [number.real, number.imag]),
    bytes: ("bytes", lambda octets: [octets.hex()]),
    bytearray: ("bytearray", lambda octets: [octets.hex()]),
    Fraction: ("Fraction", lambda number: [number.numerator, number.denominator]),
    Decimal: ("Decimal", lambda number: [str(number)]),
    datetime.date: ("date", lambda day: [day.isoformat()]),
    datetime.datetime: ("datetime", lambda moment: [moment.isoformat()]),
    datetime.time: ("time", lambda moment: [moment.isoformat()]),
    datetime.timedelta: ("timedelta", lambda span: [span.days, span.seconds, span.microseconds]),
    type(NotImplemented): ("NotImplemented", lambda _: []),
    type(...): ("Ellipsis", lambda _: []),
}

# Tag -> value of its contents.
DECODERS: dict[str, Callable[[list], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": lambda parts: collections.deque(*parts),
    "dict": dict,
    "OrderedDict": collections.OrderedDict,
    "defaultdict": lambda parts: collections.defaultdict(FACTORIES.get(parts[0]), parts[1]),
    "Counter": lambda pairs: collections.Counter(dict(pairs)),
    "keys": lambda keys: dict.fromkeys(keys).keys(),
    "values": lambda values: dict(enumerate(values)).values(),
    "items": lambda pairs: dict(pairs).items(),
    "range": lambda parts: range(*parts),
    "slice": lambda parts: slice(*parts),
    "complex": lambda parts: complex(*parts),
    "bytes": lambda parts: bytes.fromhex(parts[0]),
    "bytearray": lambda parts: bytearray.fromhex(parts[0]),
    "Fraction": lambda parts: Fraction(*parts),
    "Decimal": lambda parts: Decimal(parts[0]),
    "date": lambda parts: datetime.date.fromisoformat(parts[0]),
    "datetime": lambda parts: datetime.datetime.fromisoformat(parts[0]),
    "time": lambda parts: datetime.time.fromisoformat(parts[0]),
    "timedelta": lambda parts: datetime.timedelta(*parts),
    "NotImplemented": lambda _: NotImplemented,
    "Ellipsis": lambda _: ...,
}
MAPPINGS = frozenset({"dict", "OrderedDict", "Counter"})

CONTAINERS = frozenset(
    {list, tuple, dict, set, bytearray, collections.deque}
    | {collections.OrderedDict, collections.Counter, collections.defaultdict}
)

# Plain type -> its contents in an instance of a subclass, past whatever the subclass overrides.
CONTENTS: dict[type, Callable[[Any], Any]] = {
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: lambda text: str.__getitem__(text, slice(None)),
    bytes: lambda octets: bytes.__getitem__(octets, slice(None)),
    bytearray: lambda octets: bytearray.__getitem__(octets, slice(None)),
    list: lambda items: list.__getitem__(items, slice(None)),
    tuple: lambda items: tuple.__getitem__(items, slice(None)),
    dict: lambda mapping: dict(dict.items(mapping)),
    set: lambda items: set().union(items),
    frozenset: lambda items: frozenset().union(items),
    collections.deque: lambda items: collections.deque(collections.deque.__iter__(items)),
}


def mutable_parts(*values: Any) -> list[Any]:
    """Every mutable plain container in some values, in an order that a pickled copy of them shares."""
    found, seen = [], set()
    queue = list(reversed(values))
    while queue:
        part = queue.pop()
        kind = type(part)
        if kind not in CONTAINERS or id(part) in seen:
            continue
        seen.add(id(part))
        if kind is not tuple:
            found.append(part)
        if kind not in (set, bytearray):
            queue += part
        if issubclass(kind, dict):
            queue += dict.values(part)
    return found


def encode(value: Any, refer: Callable[[Any], Any]) -> Any:
    """`value` as JSON-ready data; what is not plain, itself or inside, becomes what `refer` returns for it.

    `refer` is asked about containers as well, and returns None for those to be spelled out.

    Raises:
      RecursionError: a structure nested too deeply, or into itself.
    """
    kind = type(value)
    if value is None or kind is bool or kind is float or kind is str:
        return value
    if kind is int:
        return value if -SMALL_INT < value < SMALL_INT else ["int", hex(value)]
    if kind not in ENCODERS:
        return refer(value)
    return (refer(value) if kind in CONTAINERS else None) or spell(value, refer)


def spell(value: Any, refer: Callable[[Any], Any]) -> Any:
    """A plain value of a type in `ENCODERS` as JSON-ready data, even if there is another way to refer to it."""
    tag, contents = ENCODERS[type(value)]
    if tag in MAPPINGS:
        return [tag, [[encode(key, refer), encode(item, refer)] for key, item in contents(value)]]
    return [tag, [encode(part, refer) for part in contents(value)]]


def decode(data: Any, dereference: Callable[[list], Any]) -> Any:
    """The value `encode` made `data` of; `dereference` resolves tags that are not plain.

    Raises:
      ValueError, TypeError, KeyError, IndexError, ArithmeticError, RecursionError: not a message of ours.
    """
    if not isinstance(data, list):
        if isinstance(data, dict):
            raise ValueError("a JSON object where a value was expected")
        return data
    tag, *rest = data
    if tag == "int":
        return int(rest[0], 16)
    if tag not in DECODERS:
        return dereference(data)
    if tag in MAPPINGS:
        return DECODERS[tag]([(decode(k, dereference), decode(v, dereference)) for k, v in rest[0]])
    return DECODERS[tag]([decode(part, dereference) for part in rest[0]])


def dump(data: Any) -> bytes:
    """JSON text of `data`, pure ASCII."""
    return json.dumps(data, separators=(",", ":")).encode("ascii")


def load(message: bytes) -> Any:
    """Data of a JSON text.

    Raises:
      Disconnected: it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(message.decode("ascii"))  # bytes would be sniffed for UTF-16
    except (ValueError, RecursionError) as error:
        raise Disconnected(f"a message that is not JSON: {error}") from None
