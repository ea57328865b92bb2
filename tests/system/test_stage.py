"""A simulated house, its table file, and the daemon as a child."""

from __future__ import annotations

import asyncio
import os
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.config import load_table
from controller.errors import UsageProblem
from controller.games import game_of_table
from controller.procedure.engine import Procedure
from controller.sim.scripts.runner import procedure_for
from controller.table.loop import parts_of
from hil.table.demo.demo import TABLES
from hil.table.robots import Api
from hil.table.setup import FEW, DidNotServe, TableContent, example, scripted, staged
from hil.table.setup.house import SEVEN, SHOE, House
from hil.table.setup.stage import table_text, toml
from tests.support.asynchronous import asynchronous
from tests.support.table.simulated.scripted import scripts

# --- table files ------------------------------------------------------------------------------

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
plain = st.booleans() | st.integers(-(2**53), 2**53) | text
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3)
)


@given(values)
def test_a_value_is_read_back_as_it_was_written(value: object) -> None:
    assert tomllib.loads(f"it = {toml(value)}")["it"] == value


def test_what_a_table_file_cannot_have_is_said() -> None:
    assert tomllib.loads(f"it = {toml(None)}")["it"] == "none"
    with pytest.raises(TypeError, match="bytes has no place in a table file"):
        toml(b"")


def written(house: House, deals: TableContent, folder: Path) -> Path:
    file = folder / "table.toml"
    file.write_text(table_text(house, deals, "here", folder / "control"), encoding="utf-8")
    return file


def test_every_script_is_dealt_by_the_options_that_it_names(tmp_path: Path) -> None:
    house, known = House(tmp_path, FEW), dict[bytes, Procedure]()
    for name in ("examples", "classic", "maxtime", "mega", "sf21x"):
        for one in scripts(name):
            wanted = procedure_for(one, known).game
            found = game_of_table(load_table(written(house, scripted(one.script), tmp_path)))
            assert found.options == wanted.options, one.script.id
            assert found.jurisdiction == wanted.jurisdiction
            assert (found.name, found.seats) == (wanted.name, wanted.seats)


@pytest.mark.parametrize("table", TABLES.values())
def test_an_example_is_dealt_as_it_stands_in_its_file(table: str, tmp_path: Path) -> None:
    found = load_table(written(House(tmp_path), example(table), tmp_path))
    real = load_table(table)
    assert found.sheet.options == real.sheet.options
    assert (found.currency, found.seats, found.title) == (real.currency, real.seats, real.title)
    assert found.equipment.devices is not None
    assert real.equipment.devices is not None
    assert found.equipment.devices.standing == real.equipment.devices.standing


# --- houses -----------------------------------------------------------------------------------


def test_what_cannot_be_used_says_once_what_is_allowed(tmp_path: Path) -> None:
    house = House(tmp_path, (SHOE,), people=())
    house.make()
    place = house.place(SHOE)
    (place / "ring").write_bytes(b"no ring")

    async def at_a_stage() -> None:
        async with staged(tmp_path, (SHOE,), people=()):
            pytest.fail("its ring is none")

    with pytest.raises(UsageProblem) as caught:
        asyncio.run(at_a_stage())
    assert str(caught.value) == (
        f"{place / 'ring'}: is not a ring: no device can be simulated there; "
        "allowed: a folder that nobody else uses"
    )
    (place / "identity.toml").write_bytes(b"")
    with pytest.raises(UsageProblem) as caught:
        house.make()
    assert str(caught.value) == (
        f"{place / 'identity.toml'}: is missing or empty: no house can be made there; "
        "allowed: an empty folder"
    )


def test_a_house_is_made_once_and_can_be_served(tmp_path: Path) -> None:
    house = House(tmp_path / "house", SEVEN)
    house.make()
    first = {file: file.read_bytes() for file in house.keys.rglob("*") if file.is_file()}
    house.make()
    assert {file: file.read_bytes() for file in house.keys.rglob("*") if file.is_file()} == first
    assert not (house.keys / "surveillance.key").exists()  # what opens hole cards lies elsewhere
    assert stat.S_IMODE(house.folder.stat().st_mode) == 0o700

    parts = parts_of(load_table(written(house, example("mega-1"), tmp_path)))
    assert [one.device for one in parts.devices] == ["shoe", "shuffler", *("station",) * 7]
    assert [one.seats for one in parts.devices[2:]] == [(seat,) for seat in range(1, 8)]
    kinds = {str(one.wanted.address).partition(":")[0].partition("=")[0] for one in parts.devices}
    assert kinds == {"serial", "usb+sim"}


def test_a_file_where_the_house_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "house").write_text("no folder")

    async def main() -> None:
        async with staged(tmp_path / "house", FEW):
            raise AssertionError("it is made of a file")

    with pytest.raises(UsageProblem, match="cannot be made"):
        asyncio.run(main())


# --- the daemon as a child --------------------------------------------------------------------


@pytest.mark.timeout(200)
@asynchronous
async def test_the_daemon_is_begun_killed_begun_again_and_stopped(tmp_path: Path) -> None:
    """From a folder whose name is too long for a socket, too."""
    folder = tmp_path / ("a-long-name-" * 8)
    async with staged(folder, FEW) as stage:
        stage.write(example("blackjack-1"))
        await stage.daemon.start()
        assert stage.daemon.notifications[0] == "READY=1"
        first = stage.daemon.pid
        async with Api(stage.control) as api:
            assert (await api.health()).table == "demo-1"
        await stage.daemon.kill()
        assert not stage.daemon.running
        await stage.daemon.start()
        assert stage.daemon.pid != first
        assert await stage.daemon.stop() == 0
        assert "STOPPING=1" in stage.daemon.notifications
        assert stage.daemon.starts == 2
        control = stage.control
    assert not control.exists()


@asynchronous
async def test_a_daemon_that_cannot_serve_is_told_in_its_own_words(tmp_path: Path) -> None:
    async with staged(tmp_path / "house", FEW) as stage:
        stage.write(example("blackjack-1"))
        os.remove(stage.house.keys / "hole.key")
        with pytest.raises(DidNotServe, match="it ended before it was ready") as ended:
            await stage.daemon.start()
        assert "hole.key: is missing" in str(ended.value)
        assert not stage.daemon.running


def test_what_runs_when_it_all_ends_is_killed(tmp_path: Path) -> None:
    pids = []

    async def main() -> None:
        async with staged(tmp_path / "house", FEW) as stage:
            stage.write(example("blackjack-1"))
            await stage.daemon.start()
            pids.append(stage.daemon.pid)
            raise KeyError("something else goes wrong")

    with pytest.raises(KeyError, match="something else"):
        asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
