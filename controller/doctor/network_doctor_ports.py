"""A port that the table wants: whether it is free, who has it, which one to take instead."""

from __future__ import annotations

import socket
from collections.abc import Collection
from typing import Final

from controller.doctor.check import Case
from controller.doctor.processes import Process, listening

_MOST_TRIED: Final = 1000


def free(host: str, port: int) -> bool:
    """Whether it could be had now. Nothing listens on it for that."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((host, port))
        except OSError:
            return False
    return True


def is_ours(case: Case, port: int, pids: Collection[int]) -> bool:
    """Whether it is the table that is being served who has it: where the machine does not say who,
    it is taken to be."""
    holders = {one.pid for one in listening(case.machine, port)}
    return not holders or not holders.isdisjoint(pids)


def by(holders: Collection[Process]) -> str:
    """Who has it, as the end of a sentence."""
    return f" by {', '.join(map(str, holders))}" if holders else ""


def instead(name: str, host: str, port: int, used: Collection[int | None]) -> str:
    """What to write for it in the table's file. `used`: ports that it has for something else."""
    tried = range(port + 1, min(port + _MOST_TRIED, 65_536))
    other = next((one for one in tried if one not in used and free(host, one)), None)
    return f"{name} = {other}, which is free" if other else f"another {name}"
