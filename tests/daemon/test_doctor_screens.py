"""Where browsers find a table's pages, as it is looked at before it is served."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.daemon import doctor_ports
from tests.daemon.doctor_house import House, child, house
from tests.daemon.rig import free_port
from tests.daemon.test_doctor_control import LISTENING


@pytest.fixture
def made(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path) as one:
        yield one


def screens(house: House, *lines: str) -> None:
    text = "".join(f"{line}\n" for line in ("", "[screens]", *lines))
    house.file.write_text(house.file.read_text() + text)


def test_a_table_without_pages(made: House) -> None:
    assert made.look("pages").note == "no [screens]: no pages are served"


def test_a_port_that_is_free(made: House) -> None:
    port = free_port()
    screens(made, f"port = {port}")
    assert (made.look("pages").verdict, made.look("pages").note) == (
        "ok",
        f"http://127.0.0.1:{port}",
    )


def test_any_port(made: House) -> None:
    screens(made, "port = 0")
    assert made.look("pages").note == "any free port of 127.0.0.1"


def test_a_port_that_is_taken(made: House, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    screens(made, f"port = {port}")
    with child(LISTENING, port) as other:
        problem = made.problem("pages")
        assert problem.what.startswith(f"port {port} of 127.0.0.1 is taken by process {other.pid}")
        assert problem.commands == (f"ss -ltnp 'sport = :{port}'",)
        monkeypatch.setattr(doctor_ports, "free", lambda host, one: one == port + 2)
        assert f"at [screens]: port = {port + 2}, which is free" in made.problem("pages").mend
    monkeypatch.undo()
    assert made.look("pages").verdict == "ok"


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
