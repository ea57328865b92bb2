"""The control socket, the local ports, and the address of the pages."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from controller.config import ControlPlace
from controller.daemon import MAX_SOCKET_PATH
from controller.daemon.sockets import listening
from controller.doctor import network
from controller.doctor.host import UNIT, deployed
from controller.errors import UsageProblem
from tests.support.daemon.doctor_house import LISTENING, House, as_installed, child
from tests.support.daemon.rig import blocks, free_port
from tests.support.screens.certificates import certified
from tests.support.table.simulated.house import mode


def control(made: House) -> ControlPlace:
    place = made.case().equipment.control
    assert place is not None
    return place


@contextmanager
def served(made: House) -> Iterator[None]:
    """As the table takes its places, and its record."""
    with listening(control(made), str(made.file)), closing(made.begin()):
        yield


def refused(made: House) -> bool:
    """Whether a start refuses these places too."""
    try:
        with listening(control(made), str(made.file)):
            return False
    except UsageProblem:
        return True


def mended(made: House) -> None:
    """A start refuses the socket's place until it is mended as the check says."""
    assert refused(made)
    made.mend("socket")
    assert not refused(made)


# --- the socket -------------------------------------------------------------------------------


def test_a_socket_that_is_to_be_made(made: House) -> None:
    assert made.check("socket").note == f"{made.run}/control.sock is created at the start"
    assert not refused(made)


def test_a_directory_that_is_not_there(made: House) -> None:
    made.edit('"run/control.sock"', '"far/off/control.sock"')
    mended(made)
    assert mode(made.place / "far" / "off") == 0o750


def test_a_directory_that_anyone_may_write(made: House) -> None:
    made.run.chmod(0o757)
    assert "every user may create a socket in" in made.problem("socket").what
    mended(made)


@pytest.mark.parametrize("more", [0, 1])
def test_a_path_that_is_too_long(made: House, more: int) -> None:
    size = MAX_SOCKET_PATH - len(os.fsencode(made.run)) - len("/.sock") + more
    made.edit('"run/control.sock"', f'"run/{"s" * size}.sock"')
    assert (refused(made), made.check("socket").verdict) == (bool(more), "wrong" if more else "ok")
    if more:
        assert f"has {MAX_SOCKET_PATH + 1} bytes" in made.problem("socket").what
        assert "[control]" in made.problem("socket").mend


def test_something_else_in_its_place(made: House) -> None:
    (made.run / "control.sock").write_text("a letter")
    mended(made)
    assert (made.run / "control.sock.was").read_text() == "a letter"


def test_what_a_former_start_has_left(made: House) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(made.run / "control.sock"))
    assert "left from a former start" in made.check("socket").note
    assert made.check("socket").verdict == "ok"
    assert not refused(made)


def test_somebody_else_who_answers(made: House) -> None:
    with child(LISTENING, made.run / "control.sock"):
        assert refused(made)
        made.expect(
            "socket",
            what="another program listens at",
            commands=(f"fuser -v {made.run}/control.sock",),
        )


def test_a_table_that_is_served(made: House) -> None:
    with served(made):
        assert made.check("socket").note.endswith("control.sock: the table is being served")
        assert made.check("control ports").verdict == "ok"
        assert made.check("control ports").note.endswith("the table is being served")


# --- ports ------------------------------------------------------------------------------------


def test_ports_that_are_free(made: House) -> None:
    note = made.check("control ports").note
    assert note == f"port {made.port}, metrics_port {made.metrics_port}: free"


@pytest.mark.parametrize("which", ["port", "metrics_port"])
def test_a_port_that_is_taken(made: House, which: str) -> None:
    port = getattr(made, which)
    with child(LISTENING, port) as other:
        assert refused(made)
        problem = made.expect(
            "control ports",
            begins=f"{which} {port} of 127.0.0.1 is taken by process {other.pid} (",
            commands=(f"kill {other.pid}",),
        )
        made.shell(problem.commands[0])
        other.wait(30)
        assert made.check("control ports").verdict == "ok"
    assert not refused(made)


def test_a_port_that_another_process_has_while_the_table_is_served(made: House) -> None:
    with closing(made.begin()), child(LISTENING, made.port) as other:
        assert f"is taken by process {other.pid} (" in made.problem("control ports").what


def test_another_port_is_proposed(made: House) -> None:
    with child(LISTENING, made.port):
        other = int(made.problem("control ports").mend.partition("port = ")[2].partition(",")[0])
        assert other not in (made.port, made.metrics_port)
        made.edit(f"\nport = {made.port}\n", f"\nport = {other}\n")
        assert made.check("control ports").verdict == "ok"
        assert not refused(made)


def test_a_port_that_is_proposed_is_free_and_not_the_other_one(
    made: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.edit(f"metrics_port = {made.metrics_port}", f"metrics_port = {made.port + 1}")
    free = (made.port + 1, made.port + 3)
    monkeypatch.setattr(network, "free", lambda host, port: port in free)
    assert f": port = {made.port + 3}, which is free" in made.problem("control ports").mend


def test_a_port_whose_holder_is_not_shown(made: House) -> None:
    made.elsewhere()
    with child(LISTENING, made.port):
        made.expect(
            "control ports",
            exactly=f"port {made.port} of 127.0.0.1 is taken",
            commands=(f"ss -ltnp 'sport = :{made.port}'",),
        )


def test_a_table_without_ports(made: House) -> None:
    made.edit(f"port = {made.port}\nmetrics_port = {made.metrics_port}\n", "")
    assert made.check("control ports").note == "none is set"


def screens(house: House, *lines: str) -> None:
    text = "".join(f"{line}\n" for line in ("", "[screens]", *lines))
    house.file.write_text(house.file.read_text() + text)


def test_a_table_without_pages(made: House) -> None:
    assert made.check("pages").note == "no [screens]: no pages are served"


def test_a_port_that_is_free(made: House) -> None:
    port = free_port()
    screens(made, f"port = {port}")
    assert (made.check("pages").verdict, made.check("pages").note) == (
        "ok",
        f"http://127.0.0.1:{port}",
    )


def test_any_port(made: House) -> None:
    screens(made, "port = 0")
    assert made.check("pages").note == "any free port of 127.0.0.1"


def test_a_port_of_the_pages_that_is_taken(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    screens(made, f"port = {port}")
    with child(LISTENING, port) as other:
        made.expect(
            "pages",
            begins=f"port {port} of 127.0.0.1 is taken by process {other.pid}",
            commands=(f"ss -ltnp 'sport = :{port}'",),
        )
        monkeypatch.setattr(network, "free", lambda host, one: one == port + 2)
        assert f"at [screens]: port = {port + 2}, which is free" in made.problem("pages").mend
    monkeypatch.undo()
    assert made.check("pages").verdict == "ok"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['listen = "0.0.0.0"'], "screens.listen: 0.0.0.0 can be reached from elsewhere"),
        (['key = "k"'], "screens.key: "),
        (['texts = "none.toml"'], "none.toml: "),
    ],
)
def test_a_place_that_cannot_be(made: House, lines: list[str], words: str) -> None:
    screens(made, f"port = {free_port()}", *lines)
    assert words in made.problem("pages").what


# --- what the service's unit lets in ----------------------------------------------------------

DROP_IN = "/etc/systemd/system/holecard@first.service.d/screens.conf"


def reachable(made: House, host: str) -> None:
    certificate, key = certified(made.place)
    screens(
        made, "port = 0", f'listen = "{host}"', f'certificate = "{certificate}"', f'key = "{key}"'
    )


def elsewhere(made: House, host: str, **files: str) -> None:
    reachable(made, host)
    as_installed(made, **files)


def page_s_drop_in() -> str:
    """As the page has whoever installs a table write it."""
    (block,) = [one for one in blocks("sh") if "IPAddressAllow" in one]
    _, _, text = block.partition("<< 'END'\n")
    return text.partition("END\n")[0]


def test_a_unit_that_lets_no_browser_in(made: House) -> None:
    elsewhere(made, "10.0.0.7")
    problem = made.expect("pages", grade="wrong", begins="10.0.0.7", mend="IPAddressAllow=")
    assert "systemctl edit holecard@first.service" in problem.mend
    made.put(DROP_IN, page_s_drop_in())
    assert made.check("pages").verdict == "ok"


def test_a_unit_that_is_another_one(made: House) -> None:
    """What it says counts, and not what ours does; an empty value takes back what stood before."""
    unit = deployed(UNIT).read_text()
    elsewhere(made, "10.0.0.7", **{f"/etc/systemd/system/{UNIT}": unit.replace("=any", "=")})
    assert made.check("pages").verdict == "ok"
    made.put(f"/etc/systemd/system/{UNIT}", unit)
    assert made.check("pages").verdict == "wrong"
    made.put(f"/run/systemd/system/{UNIT}.d/all.conf", "[Service]\nIPAddressDeny=\n")
    assert made.check("pages").verdict == "ok"


def test_an_address_that_is_none_of_the_unit_s_family(made: House) -> None:
    elsewhere(made, "::1")
    assert made.problem("pages").what == "the service cannot listen at ::1: its unit allows no IPv6"
    made.put(DROP_IN, "[Service]\nRestrictAddressFamilies=AF_INET6\n")
    assert made.check("pages").verdict == "ok"


def test_a_table_that_no_unit_serves_is_reached(made: House) -> None:
    reachable(made, "10.0.0.7")
    made.elsewhere(**{"/run/systemd/system/x": ""})
    assert made.check("pages").verdict == "ok"
