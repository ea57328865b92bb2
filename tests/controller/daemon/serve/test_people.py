"""People at a table that is served: recorded by name, signed out at its end, known to its next
start."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.audit.format.records import Moment
from controller.config import load_table
from controller.daemon import people_watch
from controller.daemon.people_watch import PeopleWatch
from controller.people import (
    DenialReason,
    Denied,
    PeopleDesk,
    PeopleFile,
    SignInSession,
    SignInState,
)
from controller.people.records import SignOutReason
from controller.table.loop import TableStopped
from hil.table.robots import Api, api_client
from tests.support.asynchronous import asynchronous, raised, simulated
from tests.support.daemon.rig import furnished, served, until, whats
from tests.support.table.simulated.house import PINS, Time, house
from tests.support.table.typed.at_desk import change


@asynchronous
async def test_who_deals_is_recorded_by_name_and_signed_out_at_the_end(tmp_path: Path) -> None:

    async with served(load_table(furnished(tmp_path))) as here, Api(tmp_path / "s") as api:
        dealer, eye = await api.open("dealer"), await api.open("eye")
        await dealer.sign_in("D-17", PINS["D-17"])
        await eye.sign_in("S-1", PINS["S-1"], "surveillance")
        assert await here.end() == 0
    found = [(data["what"], data["name"], data.get("why")) for data in whats(tmp_path, "person")]
    assert found == [
        ("signed in", "Ann Lee", None),
        ("signed in", "Dee Faro", None),
        ("signed out", "Ann Lee", "closed"),
        ("signed out", "Dee Faro", "closed"),
    ]


@asynchronous
async def test_who_dealt_deals_on_after_a_start_that_nobody_wanted(tmp_path: Path) -> None:
    config = load_table(furnished(tmp_path))

    async with served(config) as here, Api(tmp_path / "s") as api:
        await (await api.open("dealer")).sign_in("D-17", PINS["D-17"])
        here.task.cancel()  # as good as killed: nobody is signed out
        await asyncio.wait((here.task,))
    async with served(config) as here, Api(tmp_path / "s") as api:
        dealer = (await (await api.open("dealer")).table()).dealer
        assert dealer is not None
        assert (dealer.badge, dealer.name) == ("D-17", "Ann Lee")
        assert await here.end() == 0
    async with served(config) as here, Api(tmp_path / "s") as api:
        assert (await (await api.open("dealer")).table()).dealer is None
        assert await here.end() == 0
    assert [data["what"] for data in whats(tmp_path, "person")] == ["signed in", "signed out"]


async def _when_told(ask: Callable[[], Awaitable[object]]) -> None:
    """One thing at a time is asked at a screen: whoever comes while somebody is being signed out
    there is told when to come again."""
    told = False
    while not told:
        try:
            await ask()
            told = True
        except api_client.TooMuch as busy:
            await asyncio.sleep(busy.wait)


@asynchronous
async def test_a_technician_is_signed_out_when_the_table_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.daemon.people_watch.CHECK_INTERVAL", 0.02)

    async with served(load_table(furnished(tmp_path))) as here, Api(tmp_path / "s") as api:
        bench, floor = await api.open("bench"), await api.open("floor")
        await bench.sign_in("T-1", PINS["T-1"], "technician")
        first, second = (api_client.Pin(one, PINS[one]) for one in ("F-2", "D-18"))
        counts = {"bank": 100000, "counted_again": 100000}
        assert (await floor.floor("TableOpened", first, second, **counts)).answers[0].taken
        await until(lambda: "signed out" in str(whats(tmp_path, "person")), 30)
        await raised(
            api_client.NotNow,
            _when_told(lambda: bench.sign_in("T-1", PINS["T-1"], "technician")),
            "table_open",
        )
        assert await here.end() == 0
    gone = whats(tmp_path, "person", "signed out")
    assert [(one["name"], one["why"]) for one in gone] == [("Eve Pond", "opened")]


@asynchronous
async def test_a_start_forgets_no_wrong_pin(tmp_path: Path) -> None:
    config = load_table(furnished(tmp_path))
    async with served(config), Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        for _ in range(4):
            await raised(api_client.ApiProblem, screen.sign_in("D-17", "806417"))
    async with served(config), Api(tmp_path / "s") as api:
        caught = await raised(
            api_client.TooMuch, (await api.open("dealer")).sign_in("D-17", PINS["D-17"])
        )
        assert 0 < caught.wait <= 30


def disable(folder: Path, badge: str) -> None:
    change(
        PeopleFile(folder / "people.json", folder / "keys"),
        badge,
        lambda one: replace(one, disabled=True),
    )


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while it does not"])
@asynchronous
async def test_who_is_disabled_is_signed_out(
    running: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.daemon.people_watch.CHECK_INTERVAL", 0.02)
    config = load_table(furnished(tmp_path))

    async with served(config) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        await screen.sign_in("D-17", PINS["D-17"])
        if running:
            disable(tmp_path, "D-17")
            async with asyncio.timeout(30):
                while (await screen.table()).dealer is not None:
                    await asyncio.sleep(0.02)
        else:
            here.task.cancel()
            await asyncio.wait((here.task,))
    if running:
        return
    disable(tmp_path, "D-17")
    async with served(config), Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        async with asyncio.timeout(30):
            while (await screen.table()).dealer is not None:
                await asyncio.sleep(0.02)
    (gone,) = whats(tmp_path, "person", "signed out")
    assert (gone["name"], gone["why"]) == ("Ann Lee", "disabled")


@asynchronous
async def test_a_people_file_that_others_may_write_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.daemon.people_watch.CHECK_INTERVAL", 0.02)

    async with served(load_table(furnished(tmp_path))) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        (tmp_path / "people.json").chmod(0o602)
        await until(lambda: len(whats(tmp_path, "fault")) == 1, 30)
        await raised(api_client.ApiProblem, screen.sign_in("D-17", PINS["D-17"]))
        (tmp_path / "people.json").chmod(0o600)
        await screen.sign_in("D-17", PINS["D-17"])
        assert await here.end() == 0
    (fault,) = whats(tmp_path, "fault")
    assert fault["what"] == "people"
    assert "others may touch it (mode 602)" in fault["detail"]


class Asked(PeopleDesk):
    """A desk that says what it is told to."""

    def __init__(self, *answers: int | Denied | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0
        self.out: list[tuple[str, str, SignOutReason]] = []
        self.shut = lambda: False
        self.standing = SignInState(
            sessions=(
                SignInSession("dealer", "Ann Lee", "D-17", "dealer", 0),
                SignInSession("surveillance", "Dee Faro", "S-1", "eye", 0),
                SignInSession("technician", "Eve Pond", "T-1", "bench", 0),
            )
        )

    async def refresh(self, now: Moment) -> int | Denied:
        return self._answer()

    async def sign_out(
        self, screen: str, now: Moment, *, role: str = "dealer", why: SignOutReason = "asked"
    ) -> bool | Denied:
        answer = self._answer()
        if isinstance(answer, Denied):
            return answer
        self.out.append((role, screen, why))
        return True

    def _answer(self) -> int | Denied:
        self.asked += 1
        answer = self.answers.pop(0) if self.answers else 0
        if isinstance(answer, Exception):
            raise answer
        return answer


def news(desk: Asked, file: Path) -> PeopleWatch:
    return PeopleWatch(desk, PeopleFile(file, file.parent), lambda: Time().now)


def looks(desk: Asked, file: Path, times: int) -> int:
    """How often the desk was asked so far."""
    looking = news(desk, file)

    async def main() -> None:
        for _ in range(times):
            await looking.check_file()

    asyncio.run(main())
    return desk.asked


@asynchronous
async def test_once_for_each_file(tmp_path: Path) -> None:
    file = house(tmp_path).file
    desk = Asked()
    looking = news(desk, file)
    for asked in (1, 2):
        await looking.check_file()
        await looking.check_file()
        assert desk.asked == asked
        file.write_bytes(file.read_bytes() + b"\n")
    file.chmod(0o622)
    await looking.check_file()
    assert desk.asked == 3
    file.unlink()
    await looking.check_file()
    await looking.check_file()
    assert desk.asked == 4


@simulated
async def test_time_goes_on_for_those_who_are_signed_in(tmp_path: Path) -> None:
    moments: list[Moment] = []

    class Clocked(Asked):
        def expire(self, now: Moment) -> tuple[SignInSession, ...]:
            moments.append(now)
            return self.standing.sessions[:1]

    looking = asyncio.create_task(news(Clocked(), house(tmp_path).file).run())
    await asyncio.sleep(2.5 * people_watch.CHECK_INTERVAL)
    looking.cancel()
    await asyncio.wait((looking,))
    assert len(moments) == 3


@pytest.mark.parametrize("why", ["busy", "wait"])
def test_again_where_nobody_had_time_for_it(why: DenialReason, tmp_path: Path) -> None:
    assert looks(Asked(Denied(why), Denied(why)), house(tmp_path).file, 5) == 3


def test_again_where_nothing_could_be_recorded(tmp_path: Path) -> None:
    assert looks(Asked(TableStopped("no room")), house(tmp_path).file, 5) == 2


def test_what_cannot_be_read_stands_in_the_record_and_is_not_asked_for_again(
    tmp_path: Path,
) -> None:
    assert looks(Asked(Denied("unreadable")), house(tmp_path).file, 5) == 1


@simulated
async def test_what_could_not_be_read_for_a_while_is_read_later(tmp_path: Path) -> None:
    """A disk that was slow once does not leave somebody at the table who was disabled."""
    desk = Asked(Denied("unreadable"), 1)
    looking = news(desk, house(tmp_path).file)
    await looking.check_file()
    await asyncio.sleep(people_watch.RETRY_AFTER - 1)
    await looking.check_file()
    assert desk.asked == 1
    await asyncio.sleep(1)
    await looking.check_file()
    await asyncio.sleep(people_watch.RETRY_AFTER)
    await looking.check_file()
    assert desk.asked == 2


def test_everybody_is_signed_out_also_who_is_busy(tmp_path: Path) -> None:
    desk = Asked(Denied("busy"), 0, Denied("busy"), 0)
    asyncio.run(news(desk, house(tmp_path).file).sign_all_out())
    assert desk.out == [
        ("dealer", "dealer", "closed"),
        ("surveillance", "eye", "closed"),
        ("technician", "bench", "closed"),
    ]
    assert desk.asked == 5


@asynchronous
async def test_a_technician_leaves_when_the_table_opens(tmp_path: Path) -> None:
    """The next look does what stood in the way of this one."""
    desk = Asked(TableStopped("no room"), Denied("busy"))
    looking = news(desk, house(tmp_path).file)

    desk.shut = lambda: True
    await looking.check_table()
    assert desk.asked == 0
    desk.shut = lambda: False
    for _ in range(3):
        assert desk.out == []
        await looking.check_table()
    assert desk.out == [("technician", "bench", "opened")]


@pytest.mark.parametrize("late", [False, True], ids=["no record", "no time"])
def test_an_end_does_not_wait_for_what_cannot_be(
    late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people_watch, "END_WAIT", 0.1)
    answers = [Denied("busy")] * 1000 if late else [TableStopped("no room")]
    desk = Asked(*answers)
    asyncio.run(news(desk, house(tmp_path).file).sign_all_out())
    assert desk.out == []
