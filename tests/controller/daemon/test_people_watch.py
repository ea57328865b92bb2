"""The file of the people is looked at again when it is another one, and not in between."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from controller.audit.format.records import Moment
from controller.daemon import people_watch
from controller.daemon.people_watch import PeopleWatch
from controller.people import DenialReason, Denied, PeopleDesk, SignInSession, SignInState
from controller.people.records import SignOutReason
from controller.table.loop import TableStopped
from tests.support.asynchronous import asynchronous, simulated
from tests.support.table.simulated.house import Time, house


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
    return PeopleWatch(desk, file, lambda: Time().now)


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
