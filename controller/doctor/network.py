"""Checks of the control socket, the local ports and the port of the pages."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from controller.config import ScreensPlace
from controller.daemon import HOST, MAX_SOCKET_PATH, is_listening, pages_place
from controller.doctor.check import (
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    line,
    wrong,
)
from controller.doctor.host import Process, listening, made_by_service, shut_off
from controller.doctor.permissions import (
    USE,
    belongs_to_others,
    forbidden,
    making,
    not_a_directory,
    path_status,
)
from controller.doctor.record import serving
from controller.errors import UsageProblem
from controller.screens.common.server import ListenAddress
from controller.screens.common.texts import load

# --- socket -----------------------------------------------------------------------------------


def control_socket(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The socket's path is usable, and no other program listens there."""
    place = case.control.socket
    problems = [*_length(case, place), *_folder(case, place.parent)]
    if problems:
        return found("", problems)
    if not os.path.lexists(place):
        return found(f"{place} is created at the start")
    if not stat.S_ISSOCK(place.stat(follow_symlinks=False).st_mode):
        what = f"{place} is not a socket, and blocks its path"
        return wrong(what, line("mv", place, f"{place}.was"))
    if not is_listening(place):
        return found(f"{place} is left from a former start; the next one replaces it")
    if serving(case):
        return found(f"{place}: the table is being served")
    what = f"another program listens at {place}"
    return wrong(
        what,
        line("fuser", "-v", place),
        mend=f"stop that one, or name a different socket in {case.file} at [control]",
    )


def _length(case: DoctorCase, place: Path) -> Iterator[DoctorProblem]:
    size = len(os.fsencode(place))
    if size > MAX_SOCKET_PATH:
        what = f"the path of the socket has {size} bytes; the limit is {MAX_SOCKET_PATH}"
        yield wrong(f"{what}: {place}", mend=_elsewhere(case))


def _folder(case: DoctorCase, folder: Path) -> Iterator[DoctorProblem]:
    there = path_status(folder)
    if isinstance(there, DoctorProblem):
        yield there
    elif there is None:
        if not made_by_service(case, folder):
            what = f"{folder}, for the socket, does not exist"
            yield wrong(what, making(case, folder, "750"))
    elif not there.directory:
        yield not_a_directory(case, folder, "socket")
    elif there.about.st_uid not in (case.machine.uid, 0):
        yield belongs_to_others(case, there)
    elif there.has(stat.S_IWOTH):
        what = f"every user may create a socket in {folder} (mode {there.mode})"
        if there.shared:
            yield wrong(what, mend=_elsewhere(case))
        else:
            yield wrong(what, line("chmod", "o-w", folder))
    elif not case.machine.may(folder, USE):
        if there.shared:
            what = f"{case.machine.user} may not create a socket in {folder}"
            yield wrong(what, mend=_elsewhere(case))
        else:
            yield forbidden(case, there)


def _elsewhere(case: DoctorCase) -> str:
    """A solution with the directory that the service creates."""
    place = f"/run/holecard/{case.file.stem}/control.sock"
    return f'in {case.file} at [control]: socket = "{place}", or another directory of its own'


# --- ports ------------------------------------------------------------------------------------


def control_ports(case: DoctorCase) -> CheckFindings:
    """The ports are free, or used by this table."""
    control = case.control
    given = {"port": control.port, "metrics_port": control.metrics_port}
    ports = {name: port for name, port in given.items() if port is not None}
    if not ports:
        return found("none is set")
    at_work = serving(case)
    taken = {name: port for name, port in ports.items() if not free(HOST, port)}
    ours = {one.pid for one in at_work}
    problems = [
        _taken(case, name, port, set(ports.values()))
        for name, port in taken.items()
        if not at_work or not is_ours(case, port, ours)
    ]
    said = ", ".join(f"{name} {port}" for name, port in ports.items())
    return found(f"{said}: {'the table is being served' if taken else 'free'}", problems)


def _taken(case: DoctorCase, name: str, port: int, used: set[int]) -> DoctorProblem:
    holders = listening(case.machine, port)
    other = instead(name, HOST, port, used)
    mend = f"stop that one, or in {case.file} at [control]: {other}"
    look = line("ss", "-ltnp", f"sport = :{port}")
    stop = [line("kill", *(str(one.pid) for one in holders))] if _ours_to_end(holders) else [look]
    return wrong(f"{name} {port} of {HOST} is taken{by(holders)}", *stop, mend=mend)


def _ours_to_end(holders: list[Process]) -> bool:
    return bool(holders) and not any(one.table for one in holders)


_MAX_TRIED: Final = 1000


def free(host: str, port: int) -> bool:
    """Whether the port can be bound now; it is not listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((host, port))
        except OSError:
            return False
    return True


def is_ours(case: DoctorCase, port: int, pids: Collection[int]) -> bool:
    """Whether the served table uses the port; assumed if the system hides the process."""
    holders = {one.pid for one in listening(case.machine, port)}
    return not holders or not holders.isdisjoint(pids)


def by(holders: Collection[Process]) -> str:
    """The processes that use it, as the end of a sentence."""
    return f" by {', '.join(map(str, holders))}" if holders else ""


def instead(name: str, host: str, port: int, used: Collection[int | None]) -> str:
    """A free port as a line of the table file. `used` are other ports of the file."""
    tried = range(port + 1, min(port + _MAX_TRIED, 65_536))
    other = next((one for one in tried if one not in used and free(host, one)), None)
    return f"{name} = {other}, which is free" if other else f"a different {name}"


def pages(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The pages' address is usable and reachable, and the port is free."""
    screens = case.equipment.screens
    if screens is None:
        return found("no [screens]: no pages are served")
    try:
        place = pages_place(screens, str(case.file))
        load(screens.texts)
    except UsageProblem as problem:
        return wrong(f"{problem.where}: {problem.what}", mend=f"allowed: {problem.allowed}")
    note = f"any free port of {place.host}" if not place.port else place.address(place.port)
    return found(note, [*_port(case, screens, place), *shut_off(case, place.host)])


def _port(case: DoctorCase, screens: ScreensPlace, place: ListenAddress) -> Iterator[DoctorProblem]:
    port = screens.port
    if not port or free(place.host, port):
        return
    ours = {one.pid for one in serving(case)}
    if ours and is_ours(case, port, ours):
        return
    control = case.equipment.control
    used = () if control is None else (control.port, control.metrics_port)
    other = instead("port", place.host, port, used)
    yield wrong(
        f"port {port} of {place.host} is taken{by(listening(case.machine, port))}",
        line("ss", "-ltnp", f"sport = :{port}"),
        mend=f"stop that one, or in {case.file} at [screens]: {other}",
    )
