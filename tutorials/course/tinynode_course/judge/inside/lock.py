"""Locks of the kernel around the child: Landlock for files, seccomp for system calls.

Requirement: a student's program reads the libraries, writes no file, and starts no process,
also with ctypes. Both locks need no rights, hold for all threads, and stay closed. The locks are
of Linux: on other systems ``lock`` returns less, and the report of the class says so.

- **Landlock** (Linux 5.13 and later): only the named files can be opened, for reading.
- **seccomp**: no new process, no program, no network, no signal to another process. A thread is
  allowed. The filter is a list of instructions of the kernel's small machine (BPF).

Names and numbers are of ``linux/landlock.h``, ``linux/seccomp.h`` and ``linux/filter.h``.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

MACHINES = ("x86_64", "aarch64")

CHECKED = {"clone": (56, 220), "kill": (62, 129), "tgkill": (234, 131)}
CHECKED |= {"prlimit64": (302, 261), "prctl": (157, 167)}
"""System calls with allowed and refused arguments: the numbers by machine."""

REFUSED: dict[str, tuple[int, int | None]] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "socketpair": (53, 199),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "setrlimit": (160, 164),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "chroot": (161, 51),
    "mount": (165, 40),
    "umount2": (166, 39),
    "setns": (308, 268),
    "unshare": (272, 97),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "open_by_handle_at": (304, 265),
}
"""Refused system calls: the numbers by machine; None where a machine has no such call."""

REFUSED_EVERYWHERE = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "fchmodat2": 452,
}
"""Newer refused system calls: numbers from 424 on are the same on all machines."""

CLONE3 = 435

ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

CLONE_THREAD = 0x10000
PDEATHSIG = 1
EPERM, ENOSYS = 1, 38

LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_BITS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW = 0x7FFF0000
KILL = 0x80000000
ERROR = 0x00050000

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
READ_FILE, READ_DIR = 1 << 2, 1 << 3
FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
"""All rights to files, by the version of Landlock; from version 5 on 16 bits."""


def lock(readable: list[str]) -> list[str]:
    """Close the locks around the current process; returns the names of the closed locks.

    Args:
        readable: Readable files and folders; a folder with all content.
    """
    if sys.platform != "linux":
        return []
    kernel = ctypes.CDLL(None, use_errno=True)
    if kernel.prctl(38, 1, 0, 0, 0) != 0:  # PR_SET_NO_NEW_PRIVS
        return []
    held = []
    if _landlock(kernel, readable):
        held.append("landlock")
    if _seccomp(kernel):
        held.append("seccomp")
    return held


def _landlock(kernel: ctypes.CDLL, readable: list[str]) -> bool:
    version = kernel.syscall(LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return False
    files = FILE_RIGHTS.get(version, (1 << 16) - 1)
    rules = struct.pack("QQQ", files, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = kernel.syscall(LANDLOCK_CREATE, rules, size, 0)
    if ruleset < 0:
        return False
    for path in readable:
        if not os.path.exists(path):
            continue
        rights = READ_FILE | READ_DIR if os.path.isdir(path) else READ_FILE
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        kernel.syscall(LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", rights, place), 0)
        os.close(place)
    held: bool = kernel.syscall(LANDLOCK_RESTRICT, ruleset, 0) == 0
    os.close(ruleset)
    return held


class _Filter(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("if_true", ctypes.c_ubyte),
        ("if_false", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Filter)))


def instructions(machine: str, pid: int) -> list[tuple[int, int, int, int]]:
    """The filter: instructions (code, jump if true, jump if false, number).

    Args:
        machine: "x86_64" or "aarch64".
        pid: The current process: signals to other processes are refused.
    """
    place = MACHINES.index(machine)
    numbers = {name: found[place] for name, found in CHECKED.items()}
    refused = [found[place] for found in REFUSED.values()]
    found = [(LOAD, 0, 0, 4), (JUMP_EQUAL, 1, 0, ARCHITECTURE[machine]), (RETURN, 0, 0, KILL)]
    found += [(LOAD, 0, 0, 0)]
    if machine == "x86_64":  # the second table of numbers, x32
        found += [(JUMP_GREATER, 0, 1, 0x40000000), (RETURN, 0, 0, ERROR | EPERM)]
    found += [(JUMP_EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, ERROR | ENOSYS)]  # then glibc takes clone
    for number in (*refused, *REFUSED_EVERYWHERE.values()):
        if number is not None:
            found += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | EPERM)]
    # by the arguments: threads, signals to this process, prlimit64 without a change
    found += [(JUMP_EQUAL, 0, 4, numbers["clone"]), (LOAD, 0, 0, 16)]
    found += [
        (JUMP_BITS, 1, 0, CLONE_THREAD),
        (RETURN, 0, 0, ERROR | EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    for name in ("kill", "tgkill"):
        found += [(JUMP_EQUAL, 0, 4, numbers[name]), (LOAD, 0, 0, 16)]
        found += [(JUMP_EQUAL, 1, 0, pid), (RETURN, 0, 0, ERROR | EPERM), (RETURN, 0, 0, ALLOW)]
    found += [(JUMP_EQUAL, 0, 4, numbers["prctl"]), (LOAD, 0, 0, 16)]
    found += [(JUMP_EQUAL, 0, 1, PDEATHSIG), (RETURN, 0, 0, ERROR | EPERM), (RETURN, 0, 0, ALLOW)]
    found += [(JUMP_EQUAL, 0, 6, numbers["prlimit64"])]
    found += [(LOAD, 0, 0, 32), (JUMP_EQUAL, 0, 2, 0), (LOAD, 0, 0, 36), (JUMP_EQUAL, 1, 0, 0)]
    found += [(RETURN, 0, 0, ERROR | EPERM), (RETURN, 0, 0, ALLOW)]
    return [*found, (RETURN, 0, 0, ALLOW)]


def _seccomp(kernel: ctypes.CDLL) -> bool:
    machine = platform_machine()
    if machine not in MACHINES:
        return False
    steps = instructions(machine, os.getpid())
    program = (_Filter * len(steps))(*[_Filter(*step) for step in steps])
    packed = _Program(len(steps), program)
    held: bool = kernel.prctl(22, 2, ctypes.byref(packed), 0, 0) == 0  # PR_SET_SECCOMP, filter
    return held


def platform_machine() -> str:
    """The machine by the kernel, such as "x86_64"; "" for a 32-bit Python."""
    return os.uname().machine if platform.architecture()[0] == "64bit" else ""
