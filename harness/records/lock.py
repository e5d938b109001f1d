"""One process at a time works in a run folder.

The kernel's lock on the file decides among processes of one host: it ends with its process, however that ends, so no
lock is ever stale there. A shared file system may not carry that lock to other hosts. So the file also says who works
and is touched every half minute; what another host wrote counts until it was not touched for five minutes.
"""

import contextlib
import errno
import fcntl
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.records.manifest import now

NAME = "run.lock"
BEAT_S = 30
STALE_S = 300


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds `folder` for this process.

    Raises:
      UserError: another process holds it; says which.
    """
    path = folder / NAME
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        holder = _holder(path)
        if not _take(handle) or (holder and holder["host"] != socket.gethostname() and _age_s(folder) < STALE_S):
            raise _refusal(folder, holder)
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(_myself()).encode(), 0)
        ended = threading.Event()
        beat = threading.Thread(target=_beat, args=(path, ended), daemon=True)
        beat.start()
        try:
            yield
        finally:
            ended.set()
            beat.join()
            # The file stays: taking it away could take away somebody else's that is being made.
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def is_held(folder: Path) -> bool:
    """Whether a process works in `folder` now."""
    path = folder / NAME
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        holder = _holder(path)
        elsewhere = holder is not None and holder["host"] != socket.gethostname()
        return not _take(handle, fcntl.LOCK_SH) or (elsewhere and _age_s(folder) < STALE_S)
    finally:
        os.close(handle)


def _take(handle: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError as error:
        # File systems without locks say so in other words; there the file's text alone decides.
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True


def _myself() -> Mapping[str, Any]:
    return {"host": socket.gethostname(), "process": os.getpid(), "started_at": now()}


def _holder(path: Path) -> Mapping[str, Any] | None:
    """Who wrote the lock, if anybody is in it."""
    try:
        holder = json.loads(path.read_text())
        return {key: holder[key] for key in ("host", "process", "started_at")}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _age_s(folder: Path) -> float:
    """Seconds since the lock was last touched, by the clock of the file system and not of this host."""
    probe = folder / f"{NAME}.{os.getpid()}"
    probe.touch()
    try:
        return probe.stat().st_mtime - (folder / NAME).stat().st_mtime
    finally:
        probe.unlink()


def _beat(path: Path, ended: threading.Event) -> None:
    while not ended.wait(BEAT_S):
        with contextlib.suppress(OSError):
            os.utime(path)


def _refusal(folder: Path, holder: Mapping[str, Any] | None) -> UserError:
    who = (
        f"process {holder['process']} on {holder['host']}, since {holder['started_at']}"
        if holder
        else "another process"
    )
    return UserError(f"run_dir={folder}: {who}, is working there. Wait for it, stop it, or give another run_dir.")
