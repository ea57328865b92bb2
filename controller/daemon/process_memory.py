"""Protects the memory of the daemon, which holds keys and cards that lie face down.

The kernel then refuses core dumps, debuggers and /proc/PID/mem to every process without the
capability CAP_SYS_PTRACE, also to processes of the same user.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import re
import shlex
from pathlib import Path
from typing import Final

from controller.config import TableConfig
from controller.errors import UsageProblem

USER: Final = "holecard"
"""The user of INSTALL.md, suggested if the directories of the table belong to root."""
_PR_SET_DUMPABLE: Final = 4
"""See prctl(2). The attribute is reset by execve(2), so each start sets it again."""
_TRACER: Final = re.compile(r"^TracerPid:\s*(\d+)$", re.MULTILINE)


def protect_memory() -> None:
    """Make this process not dumpable. Raises UsageProblem if the kernel refuses that, or a debugger
    is attached already: it would stay attached."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        why = os.strerror(ctypes.get_errno()).lower()
        what = f"the memory of this process cannot be protected: prctl: {why}"
        raise UsageProblem("serve", what, "a Linux kernel with prctl, or --debuggable")
    # After prctl, so that no debugger can attach between the two.
    pid = tracer(Path("/proc/self/status").read_text(encoding="utf-8"))
    if pid:
        what = f"process {pid} debugs this process and can read its keys and cards"
        raise UsageProblem("serve", what, "a start without debugger or strace, or --debuggable")


def tracer(status: str) -> int:
    """Returns the process number of the debugger in /proc/PID/status; 0 without one."""
    found = _TRACER.search(status)
    return 0 if found is None else int(found[1])


def check_user(config: TableConfig) -> None:
    """Raises UsageProblem with the command to run instead if this process runs as root."""
    if os.geteuid() != 0:
        return
    equipment = config.equipment
    record = equipment.record
    places = (None if record is None else record.directory, equipment.keys)
    owner = next(filter(None, map(_owner, places)), USER)
    command = f"runuser -u {owner} -- holecard serve {shlex.quote(config.file)}"
    what = "runs as root: a fault in it could change every file of this machine"
    raise UsageProblem("serve", what, f"{command}; in a container without users: --allow-root")


def _owner(place: Path | None) -> str:
    """Returns the name of a directory's owner; empty for root, or if it does not exist."""
    try:
        uid = 0 if place is None else place.stat().st_uid
        return pwd.getpwuid(uid).pw_name if uid else ""
    except (OSError, KeyError):
        return ""
