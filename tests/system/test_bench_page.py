"""The bench page of a whole table: people take seats from robots and return them, and no
face-down card is shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from controller.procedure.model.effects import Tell
from controller.procedure.model.state import State, Step
from controller.rules.cards import NAMES, Card
from firmware_protocol.device import CutPower
from hil.table.page.page import face
from hil.table.robots import Api
from hil.table.robots.robot import card_of
from hil.table.robots.surroundings import chips
from hil.table.setup import DEALER, GUEST, until
from tests.support.asynchronous import asynchronous
from tests.support.system.at_bench import LOW, SOON, AtBench, at_bench

pytestmark = pytest.mark.timeout(200)


def next_round(one: AtBench) -> Callable[[State], bool]:
    """Whether a round more than now is over."""
    former = one.state.round
    return lambda s: s.step is Step.WAGERING and s.round > former and not s.seats


def wagers_lie(s: State) -> bool:
    return s.step is Step.WAGERING and bool(s.seats)


@cache
def names(card: Card) -> re.Pattern[str]:
    """All ways to write it."""
    shown = face(card)
    plain = NAMES[card]
    ways = {plain, plain[0] + plain[1].lower(), plain.replace("T", "10"), shown.text, shown.words}
    return re.compile(rf"(?<![\w])(?:{'|'.join(map(re.escape, ways))})(?![\w])")


def hidden(one: AtBench) -> set[Card]:
    """The face-down cards: in the shoe, over the reader, at the gate, before the dealer."""
    inside = one.shoe
    lying = [*inside["cards"], *inside["over_reader"], *inside["held"]]
    if one.state.hole and one.robot.face_down is not None:
        lying += inside["out"][one.robot.face_down : one.robot.face_down + 1]
    return {card_of(name) for name in lying if name != "cut"}


@asynchronous
async def test_a_table_with_stations(tmp_path: Path) -> None:
    """Of one deck each card is there once, so any name of it would give it away."""
    async with at_bench(tmp_path, "maxtime", robots=3) as one:
        await no_card_is_shown_before_it_lies_face_up(one)
        await a_card_that_a_dealer_reads_from_the_felt_is_seen(one)
        await robots_wait_for_what_people_have_done(one)


async def no_card_is_shown_before_it_lies_face_up(one: AtBench) -> None:
    ended, faces, holes = next_round(one), 0, 0
    while not ended(one.state):
        lying = hidden(one)
        seen = one.page.table()
        if len(one.robot.prompts) % 8 == 0:
            seen += (await one.http.get("/")).text
        _, refused = await one.ask("hand", device="SH-1", hand={"do": "describe"})
        seen += str(refused)
        lying &= hidden(one)
        found = [NAMES[card] for card in lying if names(card).search(seen)]
        assert found == [], (one.prompt, found)
        for card in one.state.dealer:
            assert names(card).search(seen)
            faces += 1
        holes += one.robot.face_down is not None and bool(one.state.hole)
        await one.robot.step()
    assert faces > 3
    assert holes > 3


async def a_card_that_a_dealer_reads_from_the_felt_is_seen(one: AtBench) -> None:
    """A card that could not be read lies face up, and has to be entered."""
    ended = next_round(one)
    await one.until(wagers_lie)
    await one.done("next-card", how="unreadable")
    await one.until(lambda s: s.step is Step.CARD_ENTRY)
    assert one.prompt.tell is Tell.ENTER_CARD
    last = one.shoe["out"][-1]
    assert f'aria-label="{face(card_of(last)).words}"' in one.page.table()
    await one.until(ended)
    assert one.desk.next_pull == "well"


async def robots_wait_for_what_people_have_done(one: AtBench) -> None:
    """A jam that was caused at the bench stops the round until it is cleared; the page shows it."""
    ended = next_round(one)
    await one.until(wagers_lie)
    await one.done("hand", device="SH-1", button="fault-jam")
    async with one.dealing(ended) as task:
        await one.until_seen('id="trouble">Waiting: cards are stuck')
        assert not task.done()
        await one.done("hand", device="SH-1", button="fault-free")
        await asyncio.wait_for(task, 60)
    station = one.stage.station_of(1)
    assert station is not None
    station.request(CutPower(off_ms=600_000))
    assert 'id="dark-1">no power' in one.page.table()


@asynchronous
async def test_a_table_without_buttons(tmp_path: Path) -> None:
    async with at_bench(tmp_path, "classic", *LOW, robots=2) as one:
        await what_a_seat_tells_the_robot_dealer_is_entered(one)
        await one.done("seat", how="leave", seat=1)
        await the_robot_gives_way_to_a_dealer_and_takes_back_when_it_is_told_to(one)


async def what_a_seat_tells_the_robot_dealer_is_entered(one: AtBench) -> None:
    """By hand signals: once, when it is asked, and only what is open to it."""
    ended = next_round(one)
    await one.until(lambda s: len(s.seats) == 2)
    await one.done("seat", how="take", seat=1)
    async with one.dealing(ended) as task:
        assert (await one.ask("say", seat=1, choice="hit"))[0] == 409  # not asked yet
        await one.until_asked(Tell.DECIDE, seat=1)
        await one.until_seen('id="say-1-hit"')
        await one.stays()
        assert (await one.ask("say", seat=1, choice="surrender"))[0] == 400
        await one.done("say", seat=1, choice="hit")
        await until(lambda: len(one.state.hands[0].cards) == 3, SOON)
        await one.until_asked(Tell.DECIDE, seat=1)
        await one.stays()
        await one.done("say", seat=1, choice="stand")
        await asyncio.wait_for(task, SOON)
    assert one.robot.refused == []


async def the_robot_gives_way_to_a_dealer_and_takes_back_when_it_is_told_to(one: AtBench) -> None:
    """While a person deals, robot players bet by button and signal their choices."""
    former, ended = one.state.round, next_round(one)
    async with Api(one.stage.control) as api:
        await (await api.open("console")).sign_in(GUEST.badge, GUEST.pin, relieve=True)
        await until(lambda: not one.robot.deals, SOON)
        assert f"<strong>{GUEST.name}</strong> deals" in one.page.table()
        async with one.dealing(ended) as task:
            while one.state.step is not Step.WAGERING:  # cards are burned for the new dealer
                await one.pull()
                await until(lambda: one.state.step is Step.WAGERING, SOON)
            await until(lambda: len(one.state.seats) == 2, SOON)
            assert [chips(one.state, seat, "main") for seat in (1, 2)] == [1000, 1000]
            await one.stays()
            while one.prompt.tell is not Tell.DECIDE:
                shown = one.console.shown
                await one.pull()
                await until(lambda: one.console.shown is not shown, SOON)  # noqa: B023
            await until(lambda: bool(one.desk.claims.signals), SOON)
            seat = one.prompt.seat
            assert f'id="signal-{seat}">says: ' in one.page.table()
            await one.stays()
            status, told = await one.ask("say", seat=seat, choice="stand")
            assert (status, told["done"]) == (409, False)

            await one.done("deal")
            assert one.robot.deals
            assert f"<strong>{DEALER.name}, the robot,</strong> deals" in one.page.table()
            assert (await one.ask("deal"))[0] == 409
            await asyncio.wait_for(task, SOON)
        assert one.state.round == former + 1


@asynchronous
async def test_a_seat_is_taken_and_left(tmp_path: Path) -> None:
    """The dealer waits for the person's wager and decisions."""
    async with at_bench(tmp_path, "mega", *LOW, robots=2) as one:
        await one.until(lambda s: s.step is Step.WAGERING)
        await one.done("seat", how="take", seat=1)
        assert (await one.ask("seat", how="take", seat=1))[0] == 409
        async with one.dealing(next_round(one)) as task:
            await until(lambda: chips(one.state, 2, "main") == 1000, SOON)
            await one.stays()
            assert one.prompt.tell is Tell.TAKE_WAGERS
            await one.until_seen('id="key-1-bet" class="key bet lit')
            await one.press(1, "bet")
            await one.until_asked(Tell.DECIDE, seat=1)
            await one.until_seen('id="key-1-stand" class="key stand lit')
            await one.until_seen('aria-label="lamps: blue, ')
            await one.stays()
            await one.press(1, "hit")
            await until(lambda: len(one.state.hands[0].cards) == 3, SOON)
            await one.until_asked(Tell.DECIDE, seat=1)
            await one.done("seat", how="leave", seat=1)
            await asyncio.wait_for(task, SOON)
        assert not one.desk.claims.seats

        await one.done("seat", how="take", seat=1)
        async with one.dealing(lambda s: bool(s.hands)) as task:
            await until(lambda: chips(one.state, 2, "main") == 1000, SOON)
            await one.done("seat", how="out", seat=1)
            await asyncio.wait_for(task, SOON)
        assert [hand.seat for hand in one.state.hands] == [2]
        assert (await one.ask("seat", how="out", seat=1))[0] == 409
