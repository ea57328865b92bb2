"""Where browsers find the table's pages: address, certificate, port and words."""

from __future__ import annotations

from collections.abc import Iterator

from controller.config.equipment_screens_place import ScreensPlace
from controller.daemon.sockets import pages_place
from controller.doctor import network_doctor_ports as doctor_ports
from controller.doctor.check import Case, Found, Problem, found, line, wrong
from controller.doctor.host import shut_off
from controller.doctor.processes import listening
from controller.doctor.record import serving
from controller.errors import UsageProblem
from controller.screens.common.server import Place
from controller.screens.common.texts import load


def pages(case: Case) -> Found:
    """They can be served there, browsers reach them, and nobody else has the port."""
    screens = case.equipment.screens
    if screens is None:
        return found("no [screens]: no pages are served")
    try:
        place = pages_place(screens, str(case.file))
        load(screens.texts)
    except UsageProblem as problem:
        return found("", [wrong(f"{problem.where}: {problem.what}", mend=_mend(problem))])
    note = f"any free port of {place.host}" if not place.port else place.address(place.port)
    return found(note, [*_port(case, screens, place), *shut_off(case, place.host)])


def _mend(problem: UsageProblem) -> str:
    return f"make it: {problem.allowed}"


def _port(case: Case, screens: ScreensPlace, place: Place) -> Iterator[Problem]:
    port = screens.port
    if not port or doctor_ports.free(place.host, port):
        return
    ours = {one.pid for one in serving(case)}
    if ours and doctor_ports.is_ours(case, port, ours):
        return
    control = case.equipment.control
    used = () if control is None else (control.port, control.metrics_port)
    other = doctor_ports.instead("port", place.host, port, used)
    yield wrong(
        f"port {port} of {place.host} is taken{doctor_ports.by(listening(case.machine, port))}",
        line("ss", "-ltnp", f"sport = :{port}"),
        mend=f"stop that one, or in {case.file} at [screens]: {other}",
    )
