"""The pages of a table that is served: where they are, who they let in, and what the record has of
who looked."""

import asyncio
import errno
import os
import re
import socket
import ssl
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from controller.audit.errors import DiskFails
from controller.audit.export import SealedCase, export_case
from controller.audit.read.access_log import access_log_file
from controller.config import load_table
from controller.daemon.serve import ReadyNotice
from controller.errors import CommandError, UsageProblem
from controller.people import People
from controller.people.person import people_bytes
from controller.screens.common.access import HEADERS
from controller.screens.review.source import source
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import (
    Here,
    free_port,
    furnished,
    right,
    run_once,
    served,
    until,
    whats,
    world,
)
from tests.support.screens.certificates import certified
from tests.support.table.simulated.house import KEY, PINS, everybody, put

SCREENS = ("[screens]", "port = 0")
SECRET = re.compile(r'name="secret" (?:content|value)="([\w-]{43})"')


class Tab:
    """A browser's, at the pages of a table."""

    def __init__(self, client: httpx.AsyncClient, at: str) -> None:
        self.client = client
        self.at = at
        self.secret = ""

    async def get(self, path: str) -> httpx.Response:
        return await self.client.get(path)

    async def post(self, path: str, **fields: str) -> httpx.Response:
        form = {"secret": self.secret, **fields}
        return await self.client.post(path, data=form, headers={"Origin": self.at})

    async def open(self, path: str = "/") -> httpx.Response:
        """A page with a form: what it brings back is known from then on."""
        answer = await self.get(path)
        found = SECRET.search(answer.text)
        assert found is not None, answer.text
        self.secret = found[1]
        return answer


@asynccontextmanager
async def tab(ready: ReadyNotice) -> AsyncIterator[Tab]:
    at = ready.pages.removesuffix("/")
    async with httpx.AsyncClient(base_url=at, trust_env=False, timeout=60) as client:
        yield Tab(client, at)


@asynccontextmanager
async def pages(folder: Path, *more: str) -> AsyncIterator[tuple[Here, Tab]]:
    file = furnished(folder, *SCREENS, *more)
    async with served(load_table(file)) as here, tab(here.ready) as made:
        yield here, made


async def looking(made: Tab) -> None:
    """Surveillance comes in."""
    await made.open("/review/enter")
    entered = await made.post("/review/enter", badge="S-1", pin=PINS["S-1"])
    assert entered.status_code == 303, entered.text
    assert entered.headers["location"] == "/review/rounds"


# --- where they are ---------------------------------------------------------------------------


@asynchronous
async def test_any_free_port_is_said_when_it_is_taken(tmp_path: Path) -> None:
    async with pages(tmp_path) as (here, made):
        where = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", here.ready.pages)
        assert where is not None
        assert str(here.ready).endswith(f", screens {here.ready.pages}")
        answer = await made.open()
        assert answer.status_code == 200
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["cache-control"] == "no-store"
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"holecard-console-{where[1]}=")
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "Secure" not in cookie
        assert (await made.client.get("/", headers={"Host": "evil.example"})).status_code == 421
        assert await here.end() == 0


@asynchronous
async def test_behind_a_certificate_the_cookie_goes_over_nothing_else(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    file = furnished(tmp_path, *SCREENS, f'certificate = "{certificate}"', f'key = "{key}"')
    trust = ssl.create_default_context(cafile=certificate)
    async with served(load_table(file)) as here:
        assert here.ready.pages.startswith("https://127.0.0.1:")
        at = here.ready.pages.removesuffix("/")
        async with httpx.AsyncClient(base_url=at, verify=trust, timeout=60) as client:
            made = Tab(client, at)
            answer = await made.open()
            assert "Secure" in answer.headers["set-cookie"]
            assert "max-age=" in answer.headers["strict-transport-security"]
            signed = await made.post("/sign-in", badge="D-17", pin=PINS["D-17"])
            assert signed.json()["done"], signed.text
        assert await here.end() == 0


@asynchronous
async def test_without_a_place_for_them_there_are_no_pages(tmp_path: Path) -> None:
    async with served(load_table(furnished(tmp_path))) as here:
        assert here.ready.pages == ""
        assert "screens" not in str(here.ready)


def test_a_port_that_is_taken_is_named_and_nothing_is_begun(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        words = f"screens.port: port {port} is in use by another program"
        with pytest.raises(UsageProblem, match=words):
            run_once(furnished(tmp_path, "[screens]", f"port = {port}"))
    assert not (tmp_path / "record").exists()
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['listen = "0.0.0.0"'], "screens.listen: 0.0.0.0 can be reached from elsewhere"),
        (['listen = "here"'], "screens.listen: 'here' is no address"),
        (['certificate = "c.pem"'], "screens.certificate: "),
        (['certificate = "c.pem"', 'key = "k.pem"'], "screens.certificate: "),
        (['texts = "words.toml"'], "words.toml: "),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_the_record_is_begun(
    lines: list[str], words: str, tmp_path: Path
) -> None:
    file = furnished(tmp_path, "[screens]", f"port = {free_port()}", *lines)
    with pytest.raises(UsageProblem, match=re.escape(words)):
        run_once(file)
    assert not (tmp_path / "record").exists()


# --- surveillance -----------------------------------------------------------------------------


@asynchronous
async def test_each_look_stands_in_the_record_before_anything_is_shown(tmp_path: Path) -> None:
    async with pages(tmp_path) as (here, made):
        stranger = await made.get("/review/rounds")
        assert (stranger.status_code, stranger.headers["location"]) == (303, "/review/enter")
        await looking(made)
        paths = ("rounds", "problems", "records", "live", "about", "report")
        for number, path in enumerate(paths, 3):  # after signing in and coming in
            seen = await made.get(f"/review/{path}")
            assert seen.status_code == 200, seen.text
            people = whats(tmp_path, "person")
            assert len(people) == number, path
            assert (people[-1]["what"], people[-1]["name"]) == ("looked", "Dee Faro")
            assert people[-1]["page"].startswith("review "), path
        await made.open("/review/about")
        assert (await made.post("/review/leave")).headers["location"] == "/review/enter"
        assert (await made.get("/review/rounds")).status_code == 303
        assert await here.end() == 0
    said = [data["what"] for data in whats(tmp_path, "person")]
    assert (said[0], said[-1]) == ("signed in", "signed out")
    assert not access_log_file(tmp_path / "record").exists()


@asynchronous
async def test_what_cannot_be_recorded_is_not_shown(tmp_path: Path) -> None:
    file = furnished(tmp_path, *SCREENS)
    given, books = world()
    async with served(load_table(file), given) as here, tab(here.ready) as made:
        await looking(made)
        shown = await made.get("/review/records")
        assert shown.status_code == 200
        books[0].full = True
        refused = await made.get("/review/records")
        assert refused.status_code == 503
        assert "takes nothing now" in refused.text
        assert "</td>" in shown.text
        assert "</td>" not in refused.text
        books[0].full = False


@asynchronous
async def test_the_record_is_verified_and_exported_while_the_table_runs(tmp_path: Path) -> None:
    async with pages(tmp_path) as (here, made):
        await looking(made)
        await made.open("/review/verify")
        assert (await made.post("/review/verify")).status_code == 303
        async with asyncio.timeout(60):
            while "RIGHT" not in (text := (await made.get("/review/verify")).text):
                assert "WRONG" not in text
                await asyncio.sleep(0.05)
        case = await made.post("/review/export", all="yes", reason="asked for")
        assert case.status_code == 303, case.text
        assert (await made.get(case.headers["location"])).status_code == 200
        assert (await made.get(f"{case.headers['location']}/case.zip")).content[:2] == b"PK"
        assert await here.end() == 0
    exported = [data for data in whats(tmp_path, "person", "looked") if data["page"] == "exported"]
    assert [(one["reason"], len(one["seal"])) for one in exported] == [("asked for", 64)]
    assert not access_log_file(tmp_path / "record").exists()


@pytest.mark.parametrize(
    ("badge", "pin", "status"),
    [("S-1", "000000", 403), ("D-17", "402931", 403), ("", "", 400), ("S-1", "", 400)],
)
@asynchronous
async def test_nobody_else_comes_in(badge: str, pin: str, status: int, tmp_path: Path) -> None:
    async with pages(tmp_path) as (_, made):
        await made.open("/review/enter")
        assert (await made.post("/review/enter", badge=badge, pin=pin)).status_code == status
        assert (await made.get("/review/rounds")).status_code == 303


@asynchronous
async def test_a_session_ends_when_its_person_may_not_any_more(tmp_path: Path) -> None:
    async with pages(tmp_path) as (_, made):
        await looking(made)
        people = tmp_path / "people.json"
        left = tuple(one for one in everybody() if one.badge != "S-1")
        people.unlink()
        put(people, people_bytes(People(KEY, left)))
        async with asyncio.timeout(60):
            while (await made.get("/review/rounds")).status_code != 303:
                await asyncio.sleep(0.05)
        told = whats(tmp_path, "person")  # a look that had begun may stand behind the end of it
        assert "signed out" in [data["what"] for data in told]
        assert (await made.get("/review/rounds")).status_code == 303
        assert whats(tmp_path, "person") == told


@asynchronous
async def test_the_index_is_there_without_anybody_asking(tmp_path: Path) -> None:
    async with pages(tmp_path) as (here, _):
        await until((tmp_path / "record" / "index.db").exists)
        assert await here.end() == 0


# --- what takes long, and where it lies -------------------------------------------------------


@asynchronous
async def test_an_export_that_does_not_end_does_not_hold_up_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def hangs(*args: Any, **options: Any) -> SealedCase:
        begun.set()
        goes_on.wait()  # on a disk that has not come back
        return export_case(*args, **options)

    monkeypatch.setattr(source, "export_case", hangs)

    async with pages(tmp_path) as (here, made):
        await looking(made)
        await made.open("/review/export")
        asking = asyncio.create_task(made.post("/review/export", all="yes"))
        try:
            await until(begun.is_set)
            async with asyncio.timeout(20):
                assert await here.end() == 0
            assert len(whats(tmp_path, "closed")) == 1
        finally:
            goes_on.set()
        await asyncio.wait((asking,))
        assert asking.exception() is not None
    right(tmp_path)
    assert cases(tmp_path) == []


def cases(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir() if one.name.startswith("record.cases")]


@asynchronous
async def test_cases_wait_beside_the_record_and_none_is_left_behind(tmp_path: Path) -> None:
    left = tmp_path / "record.cases-killed" / "export-1"
    left.mkdir(parents=True)
    (left / "case.zip").write_bytes(b"PK")
    other = tmp_path / "record-2.cases-x"
    other.mkdir()

    async with pages(tmp_path) as (here, made):
        (name,) = cases(tmp_path)
        assert name != "record.cases-killed"
        assert os.stat(tmp_path / name).st_mode & 0o777 == 0o700
        await looking(made)
        await made.open("/review/export")
        assert (await made.post("/review/export", all="yes")).status_code == 303
        assert len(list((tmp_path / name).glob("export-*/*.zip"))) == 1
        assert await here.end() == 0
    assert cases(tmp_path) == []
    assert other.is_dir()


def test_a_table_without_pages_needs_no_place_for_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    run_once(furnished(tmp_path))
    right(tmp_path)


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EACCES, UsageProblem, "table.toml: screens: no directory for cases can be made in "),
        (errno.ENOSPC, DiskFails, "cannot be written: No space left on device; check the disk"),
        (errno.EROFS, DiskFails, "cannot be written: Read-only file system; check the disk"),
    ],
)
def test_where_no_case_could_lie_nothing_is_begun(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[CommandError],
    words: str,
) -> None:
    def full(*args: Any, **options: Any) -> str:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(kind) as caught:
        run_once(furnished(tmp_path, *SCREENS))
    assert words in str(caught.value)
    assert caught.value.exit_code == (74 if kind is DiskFails else 2)  # 2 is not started again
    assert not (tmp_path / "record").exists()
    assert not (tmp_path / "s").exists()
