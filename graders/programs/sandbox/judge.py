"""The side that runs the tests, in a process of its own that no tested code ever enters.

The tests run here as they are written. Names they use but do not define are looked up in the program, on the
other side; what comes back is either a plain value or a `Handle`. So every comparison of a plain result happens
here, with the real `==` of the real type, and the end of the tests is reached here or not at all.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import json
import os
import pickle
import re
import socket
import sys
import types
from typing import Any

from graders.programs.sandbox import wire
from graders.programs.sandbox.handle import ExtendedHandle, Handle, await_there, relay

TESTS = "tests"
NUMERIC = re.compile(r"[<>|=]?[biufcSU]\d{1,6}")
DETAIL_CHARACTERS = 1000
OWN_MODULES = frozenset("cmath collections copy datetime decimal fractions functools itertools math re sys".split())
INSTALLED = frozenset("numpy pandas scipy sympy bisect heapq json operator random statistics string time".split())
GARBLED = (ValueError, TypeError, KeyError, IndexError, ArithmeticError, RecursionError, OverflowError)


class Judge:
    """Carries requests of the tests to the player and answers back.

    Args:
      channel: connected to the player.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.handles: dict[int, Handle] = {}
        self.exceptions: dict[int, type] = {}
        self.own: list[Any] = []
        self.lost: wire.Disconnected | None = None

    def request(self, request: str, *operands: Any) -> Any:
        """The player's answer to one request.

        Raises:
          wire.Disconnected: the player is gone or talks nonsense.
          BaseException: what the program raised, as its nearest built-in class.
        """
        try:
            return self._answer(request, operands)
        except wire.Disconnected as error:
            self.lost = error  # tests may catch it, but what they conclude then is worth nothing
            raise

    def _answer(self, request: str, operands: tuple) -> Any:
        wire.send(self.channel, self._dump((request, operands)))
        while True:
            printed, kind, *rest = self._reply()
            sys.stdout.write(printed)
            if kind != "ask":
                break
            wire.send(self.channel, self._serve(*rest))
        try:
            if kind == "value":
                return self._value(rest, operands[1:] if request == "call" else ())
            raised = self._exception(*rest)
        except GARBLED as error:
            raise wire.Disconnected(f"an answer that makes no sense: {error}") from None
        raise raised

    def _reply(self) -> list:
        reply = wire.load(wire.receive(self.channel))
        if not isinstance(reply, list) or len(reply) < 3 or not isinstance(reply[0], str):
            raise wire.Disconnected("an answer that makes no sense")
        return reply

    def _value(self, rest: list, arguments: tuple) -> Any:
        """Decodes a result and copies changes of containers in the arguments back into them."""
        data, changes = rest
        parts = wire.mutable_parts(*arguments[0], *arguments[1].values()) if arguments else []

        def dereference(reference: list) -> Any:
            return parts[reference[1]] if reference[0] == "argument" else self._dereference(reference)

        for place, new in [(place, wire.decode(new, dereference)) for place, new in changes]:
            _update(parts[place], new)
        return wire.decode(data, dereference)

    def _dereference(self, data: list) -> Any:
        tag, *rest = data
        if tag in ("object", "generator", "coroutine"):
            number, is_extended = rest
            if number not in self.handles:
                kind = ExtendedHandle if is_extended else Handle
                self.handles[number] = kind(self, number, is_extended)
            handle = self.handles[number]
            return {"generator": relay, "coroutine": await_there}.get(tag, _itself)(handle)
        if tag == "callback":
            return self.own[rest[0]]
        if tag == "builtin":
            return next(kind for place in (builtins, types) if isinstance(kind := getattr(place, rest[0], None), type))
        if tag == "module":
            return _module(rest[0])
        if tag == "exception":
            return self._exception_class(*rest)
        if tag == "ndarray":
            import numpy

            if not NUMERIC.fullmatch(rest[0]):
                raise ValueError(f"dtype {rest[0]!r}")
            return numpy.array(wire.decode(rest[1], self._dereference), dtype=rest[0])
        raise ValueError(f"tag {tag!r}")

    def _exception_class(self, number: int, name: str, base: str, module: str) -> type:
        if number not in self.exceptions:
            known = _known_exception(name, module)
            if known:
                return known
            methods = {
                "__getattr__": lambda error, attribute: getattr(error.program_error, attribute),
                "__str__": lambda error: error.text,
            }
            self.exceptions[number] = type(name, (_builtin_exception(base),), methods)
        return self.exceptions[number]

    def _exception(self, base: str, arguments: list, text: str, own: list | None, number: int) -> BaseException:
        kind = self._dereference(own) if own else _builtin_exception(base)
        arguments = [wire.decode(argument, self._dereference) for argument in arguments]
        try:
            error = kind(*arguments)
        except TypeError:
            error = kind.__new__(kind)
            error.args = tuple(arguments)
        error.text = text
        if own:
            error.program_error = self._dereference(["object", number, False])
        return error

    def _dump(self, message: tuple) -> bytes:
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer)
        pickler.persistent_id = self._reference
        pickler.dump(message)
        return buffer.getvalue()

    def _reference(self, value: Any) -> tuple[str, int] | None:
        """How the player may speak of a value that is not shipped: its own object, or one of the tests'."""
        if type(value) in (Handle, ExtendedHandle):
            return "object", value._number
        if is_from_tests(value) or isinstance(value, types.GeneratorType):
            for number, known in enumerate(self.own):
                if known is value:
                    return "callback", number
            self.own.append(value)
            return "callback", len(self.own) - 1
        return None

    def _serve(self, number: int, request: str, data: list) -> bytes:
        """Answers the program's request on one of the tests' objects that it was given."""
        try:
            target = self.own[number]
            operands = [wire.decode(operand, self._dereference) for operand in data]
            return self._dump(("answer", _perform(target, request, operands)))
        except wire.Disconnected:
            raise
        except Exception as error:
            plain = [argument for argument in error.args if isinstance(argument, (str, int, float))]
            kind = type(error) if type(error).__module__ == "builtins" else Exception
            return self._dump(("raise", kind(*plain)))


def _perform(target: Any, request: str, operands: list) -> Any:
    """What the program may do with an object of the tests: no private names, no frames, no code objects."""
    if request == "call" and callable(target):
        args, kwargs = operands
        return target(*args, **kwargs)
    if request in ("getattr", "setattr"):
        if not is_from_tests(target) or isinstance(target, types.FunctionType | types.MethodType):
            raise AttributeError(operands[0])
        if operands[0].startswith("_") or (request == "setattr" and isinstance(target, type)):
            raise AttributeError(operands[0])
        return getattr(builtins, request)(target, *operands)
    if request in ("len", "bool", "iter", "next") and not operands:
        return getattr(builtins, request)(target)
    if request == "getitem":
        return target[operands[0]]
    raise AttributeError(request)


def is_from_tests(value: Any) -> bool:
    """Whether a value is a function or class that the tests define, a method of one, or an instance of one."""
    if isinstance(value, types.FunctionType | type):
        return value.__module__ == TESTS
    if isinstance(value, types.MethodType):
        return is_from_tests(value.__func__)
    return type(value).__module__ == TESTS and not isinstance(value, BaseException)


def _itself(handle: Handle) -> Handle:
    return handle


def _module(name: str) -> types.ModuleType:
    """A module that the tests take from the program by a name of its own (`np`): ours, if it is one to trust."""
    if name.partition(".")[0] not in OWN_MODULES | INSTALLED:
        raise ValueError(f"module {name!r}")
    return importlib.import_module(name)


def _known_exception(name: str, module: str) -> type[Exception] | None:
    """The standard library's exception of that name, where the tests have loaded it; none that skips a test."""
    root = module.partition(".")[0]
    kind = getattr(sys.modules.get(module), name, None) if root in sys.stdlib_module_names - {"unittest"} else None
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else None


def _builtin_exception(name: str) -> type[BaseException]:
    kind = getattr(builtins, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else Exception


def _update(old: Any, new: Any) -> None:
    """Gives a mutable container of the tests the contents of `new`."""
    old.clear()
    (old.update if isinstance(old, dict | set) else old.extend)(new)


class Namespace(dict):
    """Globals of the tests; a name they do not define is the program's, unless it is a builtin's.

    A builtin's name is taken from the program only where it is what the tests test: else a program could bring an
    `abs` or a `len` of its own to its judgement. For the same reason `OWN_MODULES` are imported here.
    """

    def __init__(self, judge: Judge, entry_point: str) -> None:
        super().__init__(__name__=TESTS)
        self.judge = judge
        self.entry_point = entry_point

    def __missing__(self, name: str) -> Any:
        if name != self.entry_point and hasattr(builtins, name):
            raise KeyError(name)
        if name != self.entry_point and name in OWN_MODULES:
            return importlib.import_module(name)
        return self.judge.request("global", name)


def decide(channel: socket.socket, case: dict[str, Any]) -> tuple[str, str]:
    """Runs the program over there and the tests here.

    Args:
      channel: connected to the player.
      case: what `graders.programs.execution` sends: `program`, `before`, `after`, `setup`, `tests`, `entry_point`.

    Returns:
      Outcome (`passed`, `failed`, `memory`, `crashed`, `infra`) and detail lines.
    """
    judge = Judge(channel)
    try:
        if wire.load(wire.receive(channel)) != ["ready"]:
            return "infra", "the player did not start"
    except wire.Disconnected as error:
        return "infra", f"the player did not start: {error}"
    stage = "the program"
    try:
        sources = [(case[name], name) for name in ("before", "program", "after")]
        judge.request("run", *sources)
        namespace = Namespace(judge, case["entry_point"])
        tests = [("setup", case["setup"])]
        tests += [(f"test {number} of {len(case['tests'])}", test) for number, test in enumerate(case["tests"], 1)]
        for name, source in tests:
            stage = name
            exec(compile(source, TESTS, "exec", dont_inherit=True), namespace)
            if judge.lost:
                raise judge.lost
    except wire.Disconnected as error:
        return "crashed", f"{stage}: {error}"
    except MemoryError:
        return "memory", stage
    except BaseException as error:
        return "failed", _detail(stage, error, dict(tests).get(stage, "") if stage != "the program" else "")
    return "passed", ""


def _detail(stage: str, error: BaseException, source: str) -> str:
    """Where and why: the stage, the failing line of the tests, the exception."""
    lines = [stage]
    trace, number = error.__traceback__, 0
    while trace:
        number = trace.tb_lineno if trace.tb_frame.f_code.co_filename == TESTS else number
        trace = trace.tb_next
    if 0 < number <= len(source.splitlines()):
        lines.append(source.splitlines()[number - 1].strip())
    text = _text(error)
    lines.append(f"{type(error).__name__}: {text}" if text else type(error).__name__)
    return "\n".join(line[:DETAIL_CHARACTERS] for line in lines)


def _text(error: BaseException) -> str:
    """What an exception says; nothing if that is the program's to say and it does not."""
    try:
        return str(getattr(error, "text", None) or error)
    except BaseException:
        return ""


def preside(channel: socket.socket, stream: Any, result: int) -> None:
    """Reads the case from `stream`, decides it, writes the decision to the file descriptor `result`."""
    case = json.loads(stream.read())
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        outcome, detail = decide(channel, case)
    decision = {"nonce": case["nonce"], "outcome": outcome, "detail": detail}
    os.write(result, json.dumps(decision).encode("ascii"))
