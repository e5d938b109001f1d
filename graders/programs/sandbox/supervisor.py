"""Started as a fresh interpreter for one program: forks a judge and a player, bounds them, reports, leaves nothing.

    grader --- case (pipe) ---> judge  <--- socket --->  player (namespaces, limits, no other descriptor)
       ^                          |                         |
       +------- report -----  supervisor  ---- kills -------+

The player is forked by a process that never holds the case, so neither its memory nor its descriptors contain the
tests or the nonce. The grader's end of the `lifeline` pipe closes when the grader dies; the supervisor then cleans up.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

from graders.programs.sandbox import isolation, judge, player, processes

POLL_S = 0.1
CENSUS_S = 0.5  # between looks at what all processes use together
OTHER_TASKS = 64  # room for what the user may start meanwhile, where the limit counts that as well
BACKSTOP = 4  # the kernel's own limit on processor time, in multiples of ours, for when this process is starved
KIBIBYTE, MEBIBYTE = 1 << 10, 1 << 20


def main(settings: dict[str, Any], lifeline: int) -> None:
    """Runs one case and writes the report, one JSON object, to standard output.

    Args:
      settings: limits and paths, see `graders.programs.execution`.
      lifeline: reading end of a pipe that the grader holds open.
    """
    isolation.adopt_orphans()
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    judge_pid = os.fork()
    if judge_pid == 0:
        theirs.close()
        os.close(reading)
        _judge(ours, writing, settings)
    ours.close()
    os.close(writing)
    is_separate = settings["isolation"] == "full" and isolation.separate_processes()
    uid = (1 << 30) + os.getpid()
    player_pid = os.fork()
    if player_pid == 0:
        _player(theirs, settings, is_separate, uid)
    theirs.close()
    isolation.hide_memory()
    report = _watch(reading, lifeline, judge_pid, player_pid, settings)
    report["is_separate"] = is_separate
    report["is_clean"] = processes.end_all()
    sys.stdout.write(json.dumps(report))
    sys.stdout.flush()
    os._exit(0)


def _judge(channel: socket.socket, writing: int, settings: dict[str, Any]) -> None:
    isolation.hide_memory()
    isolation.limit(
        {
            "RLIMIT_AS": settings["memory_bytes"] * 2,
            "RLIMIT_CPU": settings["cpu_s"] * BACKSTOP,
            "RLIMIT_CORE": 0,
        }
    )
    try:
        sys.path[:] = [*settings["standard_paths"], *settings["packages"]]
        judge.preside(channel, sys.stdin, writing)
    finally:
        os._exit(0)


def _player(channel: socket.socket, settings: dict[str, Any], is_separate: bool, uid: int) -> None:
    """Shuts the player in and lets it serve; never returns."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        descriptor = os.dup2(channel.detach(), 3)
        os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        is_protected = _confine(settings, is_separate, uid)
        sys.path[:] = [*settings["standard_paths"], *settings["packages"]]
        sys.argv = [player.MODULE]
        os.environ.update(HOME=os.getcwd(), TMPDIR=os.getcwd())
        player.guard(settings["guard"], is_protected)
        player.play(socket.socket(fileno=descriptor))
    finally:
        os._exit(1)


def _confine(settings: dict[str, Any], is_separate: bool, uid: int) -> bool:
    """Takes away what can be; True if no file outside the private folder can be written."""
    is_protected, folder = False, settings["folder"]
    others = processes.tasks_of_user(os.getuid()) + OTHER_TASKS
    if is_separate:
        isolation.separate_network()
        readable = isolation.interpreter_paths(settings["packages"])
        is_protected = isolation.change_root(folder, readable, settings["disk_bytes"])
    if not is_protected:
        os.chdir(folder)
        os.chmod(folder, 0o1777)
    is_changed = isolation.drop_privileges(uid)
    if not is_protected and settings["isolation"] == "full":
        is_protected = isolation.lock_writes(folder)
    isolation.limit(
        {
            "RLIMIT_AS": settings["memory_bytes"],
            "RLIMIT_CPU": settings["cpu_s"] * BACKSTOP,
            "RLIMIT_FSIZE": settings["disk_bytes"],
            "RLIMIT_NPROC": settings["processes"] + (0 if is_changed else others),
            "RLIMIT_NOFILE": 256,
            "RLIMIT_CORE": 0,
        }
    )
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass
    return is_protected


def _watch(reading: int, lifeline: int, judge_pid: int, player_pid: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Waits for the decision within the limits, then ends the player and says how everything went.

    Processor time is limited from here and by the kernel's account of run time, the one that is reported. RLIMIT_CPU
    counts clock ticks, of which a process on a busy core may be charged more than it ran, and ends it by a signal
    that tells nobody why.
    """
    start, oom_kills = time.monotonic(), processes.oom_kills()
    decision, ended, next_census_s, is_alone = b"", "", CENSUS_S, True
    while not ended:
        readable, _, _ = select.select([reading, lifeline], [], [], POLL_S)
        wall_s = time.monotonic() - start
        # One of the two waits for the other, so their waits for a core add up. Whoever starts processes of his own
        # may have starved himself.
        waiting_s = processes.waiting_s(judge_pid) + (processes.waiting_s(player_pid) if is_alone else 0.0)
        if reading in readable:
            piece = os.read(reading, MEBIBYTE)
            decision += piece
            ended = "" if piece else "decided"
        elif lifeline in readable:
            ended = "abandoned"
        elif wall_s - waiting_s >= settings["wall_s"] or wall_s >= settings["patience_s"]:
            ended = "wall"
        elif max(processes.cpu_s([player_pid]), processes.cpu_s([judge_pid])) >= settings["cpu_s"]:
            ended = "cpu"
        elif wall_s >= next_census_s:
            next_census_s = wall_s + CENSUS_S
            family = [player_pid, *processes.descendants(player_pid)]
            is_alone = is_alone and len(family) == 1
            if processes.memory_bytes(family) > settings["memory_bytes"]:
                ended = "memory"
            elif processes.folder_bytes(settings["folder"]) > settings["disk_bytes"]:
                ended = "disk"
            elif processes.cpu_s(family) >= settings["cpu_s"]:
                ended = "cpu"
    is_ended_by_us = not processes.is_ending(player_pid)
    processes.signal_one(player_pid, signal.SIGKILL)
    _, player_status, usage = os.wait4(player_pid, 0)
    processes.signal_one(judge_pid, signal.SIGKILL)
    _, judge_status, judge_usage = os.wait4(judge_pid, 0)
    return {
        "decision": decision.decode("ascii"),
        "ended": ended,
        "wall_s": wall_s,
        "waiting_s": waiting_s,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "judge_cpu_s": judge_usage.ru_utime + judge_usage.ru_stime,
        "player_signal": 0 if is_ended_by_us or not os.WIFSIGNALED(player_status) else os.WTERMSIG(player_status),
        "player_exit": None if is_ended_by_us else os.waitstatus_to_exitcode(player_status),
        "peak_bytes": usage.ru_maxrss * KIBIBYTE,
        "oom_kills": processes.oom_kills() - oom_kills,
        "judge_signal": os.WTERMSIG(judge_status) if os.WIFSIGNALED(judge_status) else 0,
    }


def start(standard_paths: list[str]) -> None:
    """Entry point of the fresh interpreter: `settings` as JSON and the lifeline's descriptor are its arguments."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(json.loads(sys.argv[1]) | {"standard_paths": standard_paths}, int(sys.argv[2]))
