"""The side that runs the tested program and answers the judge's requests.

Nothing here is trusted once the program has run: it shares the interpreter and may read or rewrite every object
in it. That is why neither the tests nor the expected values ever come here. All the program can do is answer.
"""

from __future__ import annotations

import builtins
import copy
import importlib
import importlib.util
import io
import operator
import os
import pickle
import shutil
import socket
import sys
import types
from collections.abc import Callable
from typing import Any

from graders.programs.sandbox import wire

MODULE = "solution"
OWN_FRAMES = 50  # deeper than a plain script, by which a recursive program must not fall short
LONGEST_PRINT = 1 << 20
HARMLESS = frozenset({"putenv", "getcwd"})
WITHHELD = frozenset({"fork", "forkpty", "kill", "killpg", "system", "setuid", "chroot"})

# Requests on one object, by name; binary operators come from `operator` under their own names.
REQUESTS: dict[str, Callable[..., Any]] = {
    "call": lambda target, args, kwargs: target(*args, **kwargs),
    "getattr": getattr,
    "setattr": setattr,
    "delattr": delattr,
    "isinstance": lambda kind, value: isinstance(value, kind),
    "issubclass": lambda kind, value: issubclass(value, kind),
    "enter": lambda target: type(target).__enter__(target),
    "exit": lambda target: type(target).__exit__(target, None, None, None),
    "deepcopy": copy.deepcopy,
    "await": lambda awaitable: importlib.import_module("asyncio").run(awaitable),
    **{kind.__name__: kind for kind in (len, iter, next, repr, str, bool, int, float, abs, round, hash)},
    **{kind.__name__: kind for kind in (copy.copy, format, reversed, dir)},
}
RELAYED = {types.GeneratorType: "generator", types.CoroutineType: "coroutine"}


class Callback:
    """Stand-in for an object of the judge: a function, or an instance of a class the tests define."""

    def __init__(self, player: Player, number: int) -> None:
        object.__setattr__(self, "_player", player)
        object.__setattr__(self, "_number", number)

    def _ask(self, request: str, *operands: Any) -> Any:
        return self._player.ask(self._number, request, operands)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ask("call", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return self._ask("getattr", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("setattr", name, value)

    def __getitem__(self, key: Any) -> Any:
        return self._ask("getitem", key)

    def __len__(self) -> int:
        return self._ask("len")

    def __bool__(self) -> bool:
        return self._ask("bool")

    def __iter__(self) -> Any:
        return self._ask("iter")

    def __next__(self) -> Any:
        return self._ask("next")


class Printed(io.TextIOBase):
    """Standard output of the program, kept until the next reply carries it to the judge."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.room = LONGEST_PRINT

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self.pieces.append(text[: self.room])
        self.room -= len(self.pieces[-1])
        return len(text)

    def take(self) -> str:
        """What was printed since the last call."""
        text = "".join(self.pieces)
        self.pieces.clear()
        self.room = LONGEST_PRINT
        return text


class Player:
    """One program, one judge, one channel between them."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.callbacks: dict[int, Callback] = {}
        self.printed = Printed()
        self.module = types.ModuleType(MODULE)

    def serve(self) -> None:
        """Answers requests until the judge is done."""
        sys.modules[MODULE] = self.module
        sys.setrecursionlimit(sys.getrecursionlimit() + OWN_FRAMES)
        sys.stdout = self.printed
        wire.send(self.channel, wire.dump(["ready"]))
        while True:
            wire.send(self.channel, self.answer(wire.receive(self.channel)))

    def answer(self, message: bytes) -> bytes:
        """The reply to one request: a value, or the exception the program raised."""
        try:
            request, operands = self._load(message)
            reply = self._perform(request, operands)
        except BaseException as error:
            reply = ["raise", *self._raised(error)]
        try:
            return wire.dump([self.printed.take(), *reply])
        except RecursionError as error:
            return wire.dump(["", "raise", *self._raised(error)])

    def ask(self, number: int, request: str, operands: tuple) -> Any:
        """What the judge's object `number` answers; the judge may make requests of its own meanwhile."""
        data = [wire.encode(operand, self.refer) for operand in operands]
        wire.send(self.channel, wire.dump([self.printed.take(), "ask", number, request, data]))
        while True:
            message = wire.receive(self.channel)
            kind, answer = self._load(message)
            if kind == "answer":
                return answer
            if kind == "raise":
                raise answer
            wire.send(self.channel, self.answer(message))

    def refer(self, value: Any) -> Any:
        """How the judge may speak of an object it cannot have; None for a plain container, which it can."""
        if type(value) in wire.CONTAINERS:
            return None
        if type(value) is Callback:
            return ["callback", object.__getattribute__(value, "_number")]
        numpy = sys.modules.get("numpy")
        if numpy and isinstance(value, numpy.generic) and not isinstance(value.item(), numpy.generic):
            return wire.encode(value.item(), self.refer)
        if numpy and type(value) is numpy.ndarray and value.dtype.kind in "biufcSU":
            return ["ndarray", value.dtype.str, wire.encode(value.tolist(), self.refer)]
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        if isinstance(value, type) and (value is types.NoneType or getattr(builtins, value.__name__, None) is value):
            return ["builtin", value.__name__]
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["exception", self._number(value), value.__name__, _builtin_base(value), value.__module__]
        kind = RELAYED.get(type(value), "object")
        return [kind, self._number(value), isinstance(value, tuple(wire.CONTENTS))]

    def _number(self, value: Any) -> int:
        """Stable number of an object; keeping it here keeps it alive."""
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return self.numbers[id(value)]

    def _load(self, message: bytes) -> Any:
        unpickler = pickle.Unpickler(io.BytesIO(message))
        unpickler.persistent_load = self._resolve
        return unpickler.load()

    def _resolve(self, reference: tuple[str, int]) -> Any:
        kind, number = reference
        if kind == "object":
            return self.objects[number]
        if number not in self.callbacks:
            self.callbacks[number] = Callback(self, number)
        return self.callbacks[number]

    def _perform(self, request: str, operands: tuple) -> list:
        if request == "run":
            for source, name in operands:
                exec(compile(source, name, "exec", dont_inherit=True), self.module.__dict__)
            return ["value", None, []]
        if request == "global":
            return ["value", wire.encode(self.module.__dict__[operands[0]], self.refer), []]
        if request == "contents":
            return ["value", wire.encode(self._contents(operands[0]), self.refer), []]
        if request == "call":
            return self._call(*operands)
        perform = REQUESTS.get(request) or getattr(operator, request)
        return ["value", wire.encode(perform(*operands), self.refer), []]

    def _call(self, target: Any, args: tuple, kwargs: dict) -> list:
        """Result of a call, and the new contents of those containers in its arguments that the call changed."""
        parts = wire.mutable_parts(*args, *kwargs.values())
        places = {id(part): place for place, part in enumerate(parts)}

        def refer(value: Any) -> Any:
            return ["argument", places[id(value)]] if id(value) in places else self.refer(value)

        before = [wire.spell(part, refer) for part in parts]
        result = target(*args, **kwargs)
        after = [wire.spell(part, refer) for part in parts]
        changed = [[place, new] for place, new in enumerate(after) if new != before[place]]
        return ["value", wire.encode(result, refer), changed]

    def _contents(self, value: Any) -> Any:
        return next(copier(value) for kind, copier in wire.CONTENTS.items() if isinstance(value, kind))

    def _raised(self, error: BaseException) -> list:
        """An exception as its nearest built-in class, plain arguments, text, and own class if it has one."""
        kind = type(error)
        base = _builtin_base(kind)
        try:
            own = None if kind.__name__ == base else self.refer(kind)
            arguments = [wire.encode(argument, self.refer) for argument in error.args]
            return [base, arguments, _text(error), own, self._number(error)]
        except BaseException:
            return [base, [], "", None, 0]


def _builtin_base(kind: type) -> str:
    for base in kind.__mro__:
        if getattr(builtins, base.__name__, None) is base:
            return base.__name__
    return "BaseException"


def _text(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg} (line {error.lineno})"
    try:
        return str(error)[:2000]
    except BaseException:
        return ""


def guard(path: str | None, is_write_protected: bool) -> None:
    """Applies evalplus' reliability guard, which takes away what correct programs rarely need.

    What is harmless anyway is handed back: setting variables of the environment (numpy's import does), and, where
    the sandbox itself keeps writes inside the private folder, the functions on files.

    Args:
      path: evalplus' `eval/utils.py`; None where the package is not installed.
      is_write_protected: whether files outside the private folder are out of reach.
    """
    if path is None:
        return
    modules = (builtins, os, shutil)
    before = [dict(vars(module)) for module in modules]
    spec = importlib.util.spec_from_file_location("evalplus_guard", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.reliability_guard()
    for target, names in zip(modules, before, strict=True):
        for name, value in names.items():
            if name in HARMLESS or (is_write_protected and name not in WITHHELD):
                setattr(target, name, value)


def play(channel: socket.socket) -> None:
    """Serves the judge until it hangs up, then ends the process without clean-up."""
    try:
        Player(channel).serve()
    except BaseException:
        os._exit(1)
    os._exit(0)
