"""Finds processes that use a file, lock or port, from the parts of /proc that this user sees."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from controller.doctor.check import Machine
from controller.errors import printable

_LISTENS: Final = "0A"
"""TCP_LISTEN in /proc/net/tcp."""
_MAX_SHOWN: Final = 60
_PSEUDO: Final = "/dev/pts/"
_MAKERS: Final = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})
"""Files that the creator of a pseudo terminal has open."""


class Process(NamedTuple):
    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"

    @property
    def table(self) -> bool:
        """Whether it serves a table."""
        return "serve" in self.command.split() and "holecard" in self.command


def named(machine: Machine, pid: int) -> Process:
    """Returns the process with this number, and its command line."""
    words = (machine.text(f"/proc/{pid}/cmdline") or "").replace("\0", " ").strip()
    command = printable(words or machine.text(f"/proc/{pid}/comm") or "")
    return Process(pid, command if len(command) <= _MAX_SHOWN else f"{command[:_MAX_SHOWN]}...")


def running(machine: Machine, names: Iterable[str]) -> list[str]:
    """Returns the programs of these names that are running."""
    there = {machine.text(f"/proc/{pid}/comm") for pid in _pids(machine)}
    return [name for name in names if name in there]


def locking(machine: Machine, file: Path) -> list[Process]:
    """Returns the processes with a lock on this file. Visible to every user."""
    try:
        about = file.stat()
    except OSError:
        return []
    wanted = f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"
    pids = {
        int(words[4])
        for words in map(str.split, (machine.text("/proc/locks") or "").splitlines())
        if len(words) >= 6 and words[5] == wanted and words[4].isdigit()
    }
    return [named(machine, pid) for pid in sorted(pids)]


def opening(machine: Machine, place: Path) -> list[Process]:
    """The other processes that have this file or device open, without the creator of a pseudo
    terminal. A user sees only their own processes."""
    target = os.path.realpath(place)
    every = _holding(machine, target)
    if not target.startswith(_PSEUDO):
        return every
    return [one for one in every if _MAKERS.isdisjoint(_open_files(machine, one.pid))]


def listening(machine: Machine, port: int) -> list[Process]:
    """Returns the processes that listen on this TCP port."""
    inodes = {
        words[9]
        for name in ("tcp", "tcp6")
        for words in map(str.split, (machine.text(f"/proc/net/{name}") or "").splitlines()[1:])
        if len(words) > 9 and words[3] == _LISTENS and words[1].endswith(f":{port:04X}")
    }
    every = {one for inode in inodes for one in _holding(machine, f"socket:[{inode}]")}
    return sorted(every)


def _holding(machine: Machine, target: str) -> list[Process]:
    return [
        named(machine, pid)
        for pid in _pids(machine)
        if pid != os.getpid() and target in _open_files(machine, pid)
    ]


def _open_files(machine: Machine, pid: int) -> Iterator[str]:
    try:
        links = list(machine.at(f"/proc/{pid}/fd").iterdir())
    except OSError:  # of a different user, or ended
        return
    for link in links:
        try:
            yield os.readlink(link)
        except OSError:  # closed since
            continue


def _pids(machine: Machine) -> list[int]:
    try:
        names = [entry.name for entry in machine.at("/proc").iterdir()]
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isdigit())
