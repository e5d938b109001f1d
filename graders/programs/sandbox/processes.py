"""Looking after a tree of processes through /proc: who is in it, what it uses, and ending it."""

from __future__ import annotations

import contextlib
import os
import signal
import time

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
EXITING = 0x4  # PF_EXITING among the flags in /proc/PID/stat
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def parents() -> dict[int, int]:
    """Parent of every process there is; empty without /proc."""
    found = {}
    for name in filter(str.isdigit, _entries("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
    return found


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def descendants(root: int) -> list[int]:
    """Every process below `root`, the nearest first."""
    children: dict[int, list[int]] = {}
    for child, parent in parents().items():
        children.setdefault(parent, []).append(child)
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def tasks_of_user(uid: int) -> int:
    """Processes and threads a user has, as RLIMIT_NPROC counts them."""
    tasks = 0
    for name in filter(str.isdigit, _entries("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == uid:
                tasks += len(_entries(f"/proc/{name}/task"))
    return tasks


def memory_bytes(pids: list[int]) -> int:
    """Memory the processes hold for themselves, shared pages not counted."""
    pages = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                resident, shared = file.read().split()[1:3]
            pages += int(resident) - int(shared)
        except (OSError, ValueError):
            continue
    return pages * PAGE_BYTES


def folder_bytes(folder: str, most_files: int = 10_000) -> int:
    """Size of the files in a folder and below; of too many files, that of the first `most_files`."""
    size_bytes, files = 0, 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size_bytes += os.lstat(os.path.join(place, name)).st_blocks * 512
            files += 1
            if files >= most_files:
                return size_bytes
    return size_bytes


def cpu_s(pids: list[int]) -> float:
    """Processor seconds the processes have used, and those of their children they know the end of."""
    ticks = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                ticks += sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))
        except (OSError, ValueError):
            continue
    return ticks / TICKS_PER_S


def waiting_s(pid: int) -> float:
    """Seconds a process's main thread was ready to run and had no core; 0 where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def is_ending(pid: int) -> bool:
    """Whether a process that has not been reaped is on its way out, or out."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return bool(int(file.read().rpartition(b")")[2].split()[6]) & EXITING)
    except (OSError, ValueError, IndexError):
        return False


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since it started; 0 where it does not tell."""
    try:
        with open("/proc/vmstat", "rb") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(b"oom_kill "))
    except (OSError, ValueError, IndexError):
        return 0


def signal_one(pid: int, number: int) -> None:
    """Sends a signal, if the process is still there and ours to reach."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def end_all(patience_s: float = 20.0) -> bool:
    """Kills and reaps everything below this process, which must be the one that adopts orphans.

    First all are stopped, round after round until none is new: a stopped or unreaped process still counts towards
    the limit on processes, so even one that forks faster than it can be killed runs out of room. Then all are killed.

    Returns:
      Whether nothing is left.
    """
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        stopped: set[int] = set()
        while (new := set(descendants(os.getpid())) - stopped) and time.monotonic() < deadline:
            for pid in new:
                signal_one(pid, signal.SIGSTOP)
            stopped |= new
        for pid in stopped:
            signal_one(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return True
        time.sleep(0.001)
    return False
