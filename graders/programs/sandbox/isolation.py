"""What the kernel can take away from the player, each thing where this machine and user may take it.

With namespaces (as root, or as a user who may create user namespaces): its own process table, whose processes all
end with it; its own root, which shows the interpreter read-only and an empty private folder and nothing else; no
network; a user id that owns nothing. Without them: Landlock keeps writes, TCP ports and signals inside. Without
that: resource limits only. Nothing here raises; each function says what it achieved.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys
from collections.abc import Iterable

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
MNT_DETACH, AT_FDCWD, AT_RECURSIVE = 2, -100, 0x8000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
PR_CAPBSET_DROP, CAPABILITY_VERSION_3 = 24, 0x20080522
SYS_MOUNT_SETATTR = 442  # this and Landlock's numbers are the same on every architecture
SYS_LANDLOCK_CREATE, SYS_LANDLOCK_ADD, SYS_LANDLOCK_RESTRICT = 444, 445, 446
LANDLOCK_WRITES = 0b1_1111_1111_0010  # write, remove and make of every kind; not read, execute, list
LANDLOCK_REFER, LANDLOCK_TRUNCATE = 1 << 13, 1 << 14
DEVICES = ("null", "zero", "full", "random", "urandom")
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf")
FOLDER = "/tmp/work"

libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: int | bytes | None) -> int:
    """A libc function's result.

    Raises:
      OSError: it failed, or this libc has no such function.
    """
    try:
        result = getattr(libc, name)(*arguments)
    except AttributeError:
        raise OSError(f"{name}: not in this libc") from None
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def _is_done(name: str, *arguments: int | bytes | None) -> bool:
    try:
        _call(name, *arguments)
    except OSError:
        return False
    return True


def adopt_orphans() -> bool:
    """Makes this process the parent of every descendant whose parent dies."""
    return _is_done("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def hide_memory() -> bool:
    """Closes this process to ptrace and /proc for other processes of the same user."""
    return _is_done("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)


def separate_processes() -> bool:
    """Puts children forked from now on into a process namespace of their own."""
    if _is_done("unshare", CLONE_NEWPID):
        return True
    uid, gid = os.getuid(), os.getgid()
    if not _is_done("unshare", CLONE_NEWUSER | CLONE_NEWPID):
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError:
            pass  # without a map the player is nobody, who may still read what everybody may
    return True


def separate_network() -> bool:
    """Leaves this process without any network, and without the IPC objects of others."""
    _is_done("unshare", CLONE_NEWIPC | CLONE_NEWUTS)
    return _is_done("unshare", CLONE_NEWNET)


def change_root(base: str, readable: Iterable[str], size_bytes: int) -> bool:
    """Gives this process a root with only `readable`, read-only, and a private folder in memory.

    Args:
      base: an existing empty folder; untouched as seen by everybody else.
      readable: folders and files to show, under their own names.
      size_bytes: room for all files the player writes.

    Returns:
      Whether it worked; the working directory is then `FOLDER`.
    """
    try:
        _call("unshare", CLONE_NEWNS)
        _call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
        options = f"size={size_bytes},nr_inodes=4096,mode=755".encode()
        _call("mount", b"tmpfs", base.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, options)
        for path in _outermost(readable):
            _show(path, base, is_read_only=True)
        for device in DEVICES:
            _show(f"/dev/{device}", base, is_read_only=False)
        for folder in ("/proc", "/dev/shm", "/tmp", FOLDER):
            os.makedirs(base + folder, exist_ok=True)
            os.chmod(base + folder, 0o1777)
        _is_done("mount", b"proc", f"{base}/proc".encode(), b"proc", MS_NOSUID | MS_NODEV, None)
        os.chdir(base)
        _call("pivot_root", b".", b".")
        _call("umount2", b".", MNT_DETACH)
        os.chdir(FOLDER)
    except OSError:
        return False
    return True


def _outermost(paths: Iterable[str]) -> list[str]:
    """`paths` that exist, without those inside others."""
    kept: list[str] = []
    for path in sorted({os.path.abspath(path) for path in paths}, key=len):
        is_inside = any(path.startswith(outer + "/") and not os.path.islink(outer) for outer in kept)
        if os.path.exists(path) and path != "/" and not is_inside:
            kept.append(path)
    return kept


def _show(path: str, base: str, is_read_only: bool) -> None:
    """Mounts one folder or file of the old root under the new one; links are made again."""
    target = base + path
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        open(target, "w").close()
    _call("mount", path.encode(), target.encode(), None, MS_BIND | MS_REC, None)
    if is_read_only:
        attributes = struct.pack("QQQQ", MS_RDONLY | MS_NOSUID, 0, 0, 0)
        descriptor = AT_FDCWD
        _call("syscall", SYS_MOUNT_SETATTR, descriptor, target.encode(), AT_RECURSIVE, attributes, 32)


def lock_writes(folder: str) -> bool:
    """Landlock: no writing outside `folder`, no TCP, no signals to processes outside."""
    version = libc.syscall(SYS_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return False
    writes = LANDLOCK_WRITES
    writes |= LANDLOCK_REFER if version >= 2 else 0
    writes |= LANDLOCK_TRUNCATE if version >= 3 else 0
    fields = [writes, 3 if version >= 4 else 0, 3 if version >= 6 else 0]
    length = 8 if version < 4 else 16 if version < 6 else 24
    try:
        _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        ruleset = _call("syscall", SYS_LANDLOCK_CREATE, struct.pack("QQQ", *fields)[:length], length, 0)
        for path, allowed in ((folder, writes), ("/dev/null", writes & (2 | LANDLOCK_TRUNCATE))):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("=Qi", allowed, descriptor)
            _call("syscall", SYS_LANDLOCK_ADD, ruleset, 1, rule, 0)
            os.close(descriptor)
        _call("syscall", SYS_LANDLOCK_RESTRICT, ruleset, 0)
        os.close(ruleset)
    except OSError:
        return False
    return True


def drop_privileges(uid: int) -> bool:
    """Gives up every privilege, and the user id if root can and the interpreter stays readable.

    Args:
      uid: the id to become, one that nobody else has, so that limits on processes count this player alone.

    Returns:
      Whether the user id was changed.
    """
    _is_done("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(64):
        _is_done("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    is_changed = os.getuid() == 0 and _become(uid)
    header, none = struct.pack("Ii", CAPABILITY_VERSION_3, 0), struct.pack("6I", 0, 0, 0, 0, 0, 0)
    _is_done("capset", header, none)
    _is_done("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)
    return is_changed


def _become(uid: int) -> bool:
    try:
        os.setgroups([])
        os.setegid(uid)
        os.seteuid(uid)
    except OSError:
        return False
    try:
        os.listdir(os.path.dirname(os.__file__))
        os.listdir(".")
    except OSError:
        os.seteuid(0)
        os.setegid(0)
        return False
    os.seteuid(0)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    return True


def limit(limits: dict[str, int]) -> None:
    """Sets resource limits by their names in `resource`; what the system refuses stays as it was."""
    for name, amount in limits.items():
        kind = getattr(resource, name, None)
        try:
            _, hardest = resource.getrlimit(kind)
            bound = amount if hardest == resource.RLIM_INFINITY else min(amount, hardest)
            resource.setrlimit(kind, (bound, bound))
        except (OSError, ValueError, TypeError):
            continue


def interpreter_paths(packages: Iterable[str]) -> list[str]:
    """Everything this interpreter needs to see, with `packages` and the shared libraries in use."""
    libraries = set()
    try:
        with open("/proc/self/maps") as file:
            libraries = {os.path.dirname(line.split()[-1]) for line in file if ".so" in line}
    except OSError:
        pass
    standard = os.path.dirname(os.__file__)
    extensions = [path for path in sys.path if "lib-dynload" in path]
    programs = [sys.executable, os.path.realpath(sys.executable)]
    return [*SYSTEM_FOLDERS, *SYSTEM_FILES, standard, *extensions, *programs, *libraries, *packages]
