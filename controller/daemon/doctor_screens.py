"""Where browsers find the table's pages: address, certificate, port and words."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

from controller.config.screens_place import ScreensPlace
from controller.daemon.doctor_forms import Case, Found, Problem, found, line, wrong
from controller.daemon.doctor_processes import listening
from controller.daemon.doctor_record import serving
from controller.daemon.sockets import pages_place
from controller.rules.problem import UsageProblem
from controller.screens.common.serving import Place
from controller.screens.common.texts import load

_MOST_TRIED: Final = 1000


def pages(case: Case) -> Found:
    """They can be served there, and nobody else has the port."""
    screens = case.equipment.screens
    if screens is None:
        return found("no [screens]: no pages are served")
    try:
        place = pages_place(screens, str(case.file))
        load(screens.texts)
    except UsageProblem as problem:
        return found("", [wrong(f"{problem.where}: {problem.what}", mend=_mend(problem))])
    note = f"any free port of {place.host}" if not place.port else place.address(place.port)
    return found(note, list(_port(case, screens, place)))


def _mend(problem: UsageProblem) -> str:
    return f"make it: {problem.allowed}"


def _port(case: Case, screens: ScreensPlace, place: Place) -> Iterator[Problem]:
    port = screens.port
    if not port or _free(place.host, port):
        return
    holders = listening(case.machine, port)
    at_work = {one.pid for one in serving(case)}
    if at_work and (not holders or at_work & {one.pid for one in holders}):
        return  # it is the table that is being served
    who = f" by {', '.join(map(str, holders))}" if holders else ""
    tried = range(port + 1, min(port + _MOST_TRIED, 65_536))
    other = next((one for one in tried if _next(case, place.host, one)), None)
    instead = f"port = {other}, which is free" if other else "another port"
    yield wrong(
        f"port {port} of {place.host} is taken{who}",
        line("ss", "-ltnp", f"sport = :{port}"),
        mend=f"stop that one, or in {case.file} at [screens]: {instead}",
    )


def _next(case: Case, host: str, port: int) -> bool:
    control = case.equipment.control
    used = () if control is None else (control.port, control.metrics_port)
    return port not in used and _free(host, port)


def _free(host: str, port: int) -> bool:
    """Whether it could be had now. Nothing listens on it for that."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trying.bind((host, port))
        except OSError:
            return False
    return True
