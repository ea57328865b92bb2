"""Where browsers find a table's pages, as it is looked at before it is served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.doctor import network
from controller.doctor.host import UNIT, deployed
from tests.support.daemon.doctor_house import LISTENING, House, as_installed, child, house
from tests.support.daemon.installed import blocks
from tests.support.daemon.rig import free_port
from tests.support.screens.certificates import certified


@pytest.fixture
def made(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path) as one:
        yield one


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


def test_a_port_that_is_taken(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    screens(made, f"port = {port}")
    with child(LISTENING, port) as other:
        problem = made.problem("pages")
        assert problem.what.startswith(f"port {port} of 127.0.0.1 is taken by process {other.pid}")
        assert problem.commands == (f"ss -ltnp 'sport = :{port}'",)
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


def elsewhere(made: House, host: str, **files: str) -> None:
    certificate, key = certified(made.place)
    screens(
        made, "port = 0", f'listen = "{host}"', f'certificate = "{certificate}"', f'key = "{key}"'
    )
    as_installed(made, **files)


def page_s_drop_in() -> str:
    """As the page has whoever installs a table write it."""
    (block,) = [one for one in blocks("sh") if "IPAddressAllow" in one]
    _, _, text = block.partition("<< 'END'\n")
    return text.partition("END\n")[0]


def test_a_unit_that_lets_no_browser_in(made: House) -> None:
    elsewhere(made, "10.0.0.7")
    problem = made.problem("pages")
    assert problem.grade == "wrong"
    assert problem.what.startswith("10.0.0.7")
    assert "IPAddressAllow=" in problem.mend
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
    certificate, key = certified(made.place)
    lines = ('listen = "10.0.0.7"', f'certificate = "{certificate}"', f'key = "{key}"')
    screens(made, "port = 0", *lines)
    made.elsewhere(**{"/run/systemd/system/x": ""})
    assert made.check("pages").verdict == "ok"
