"""Every designed state of the dealer's page, by name: each prompt, each irregularity that is ruled
on, each fault, each dialog; of tables that play at random, with what stands around them.

    async with chromium() as browser, drawn(browser, "small", Appearance(theme="dark")) as show:
        page = await show(state)
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace
from playwright.async_api import Browser, Page, Route

from controller.api.contract.view import DealerShown, DeviceShown
from controller.games import SHOE
from controller.procedure.model import events
from controller.procedure.model.effects import Tell
from controller.procedure.model.events import Device
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State, Step
from controller.screens.common.access import HEADERS
from controller.screens.common.sessions import Appearance
from controller.screens.console.view import Viewer, console_of
from controller.table.memory import SpaceStatus, WitnessStatus
from tests.support.screens.browser.page import PATIENCE, SIZES, wrong_with
from tests.support.screens.console.shown_at import (
    DEVICES,
    HERE,
    HOUSE,
    LONG,
    PAGES,
    STATIC,
    TEXTS,
    WATCHES,
    Around,
    At,
    everywhere,
    view_at,
)

ADDRESS: Final = "http://table.test"
SEED: Final = "designed"
EVENTS: Final = 250
TEN: Final = 9
"""The ten of clubs."""
SCREEN: Final = "console-2"
LOST: Final = DeviceShown("shoe", "SH-0001", "lost", "its port is gone")
HELD: Final = DeviceShown("shoe", "SH-0001", "resuming", "", held="new_epoch")
AWAY: Final = DeviceShown("shuffler", "SF-0001", "lost", "no power")
DISK: Final = "the disk is full: nothing was written"
NO_ROOM: Final = "No space left on device"
NOON: Final = 1_800_014_400_000_000
SEEN: Final = WitnessStatus(987_654, NOON - 300_000_000_000)
SHUFFLE: Final = "2 cards missing, 0 too many"


_BARE: Final = frozenset(tell.value for tell in Tell)


class Designed(NamedTuple):
    """A state, how it came to be shown, and what is opened over it."""

    name: str
    at: At
    around: Around = Around()
    here: Viewer = HERE
    signed: tuple[tuple[str, str], ...] = (("dealer", "Dana"),)
    open: str = ""
    """The id of a button that opens a dialog."""
    lost: int = 0
    """The stream: 0: nothing new comes; 1: it does not come through; else: this status."""
    refuses: str = ""
    """An act is pressed, and refused in these words."""
    notes: str = ""
    """The same, of an act that is done and changes nothing on the page."""

    def html(self, looks: Appearance) -> str:
        return PAGES.text(
            "console/page.html",
            c=console_of(view_at(self.at, self.around), self.at.game, self.here, TEXTS),
            secret="a-secret",
            appearance=looks,
            screen=SCREEN,
            signed=self.signed,
        )


# --- which there are --------------------------------------------------------------------------


def _richness(s: State) -> int:
    """How much lies on the felt, and how much is to be said of it."""
    cards = sum(len(hand.cards) for hand in s.hands)
    return cards + 3 * len(s.hands) + 3 * len(s.due) + 2 * len(s.seats) + 4 * len(s.holds)


def _tells(at: At) -> tuple[str, ...]:
    """What a state shows that has a name."""
    s, prompt = at.state, view_at(at).prompt
    if prompt is None:
        return ()
    tell, hold = prompt.tell.value, s.holds[-1].what.value if s.holds else ""
    named = {
        tell: True,
        f"{tell} at {s.step.value}": prompt.tell in (Tell.DEAL, Tell.BURN),
        f"{tell} {hold}": bool(hold),
        "near a bonus": bool(prompt.near),
        "instant win": prompt.tell is Tell.PAY and s.after is not Step.CLEARING,
        "declared payment": prompt.tell is Tell.PAY and at.game.jurisdiction.declare_payments,
        "spare seen": s.spare is not None and s.spare.card >= 0,
        "spare": s.spare is not None and s.spare.card < 0,
        "last round": s.shoe.rounds_left == 0 and bool(s.hands),
        "closing": s.closing,
        "split hands": len(s.hands) > len(s.seats) and any(hand.seat for hand in s.hands),
        "refuse the card": prompt.tell is Tell.DECIDE and "refuse_card" in prompt.choices,
    }
    return tuple(name for name, shows in named.items() if shows)


@cache
def by_name() -> dict[str, At]:
    """Of each name the state in which most is to be seen."""
    found: dict[str, tuple[int, At]] = {}
    for at in everywhere(SEED, EVENTS, LONG, HOUSE):
        rich = _richness(at.state)
        for name in _tells(at):
            if name not in found or found[name][0] < rich:
                found[name] = rich, at
    return {name: at for name, (_, at) in sorted(found.items())}


def _seldom() -> dict[str, At]:
    """What chance did not bring, one event after what it did."""
    every = list(everywhere(SEED, EVENTS, money=HOUSE))
    draw = next(at for at in every if at.state.step is Step.HAND_CARD)
    reveal, *_ = (
        at
        for at in every
        if at.state.step is Step.REVEAL and at.state.checked is False and at.state.up == 1
    )
    return {
        "shoe ran out": _then(draw, events.ShoeRanOut(SHOE)),
        "hole mismatch": _then(reveal, events.HoleRevealed(SHOE, TEN, "opening")),
    }


def _then(at: At, event: events.Event) -> At:
    answer = at.procedure.step(at.state, event)
    assert isinstance(answer, Decision), answer
    return at._replace(state=answer.state)


def _lost(at: At, *kinds: Device) -> At:
    """The same, with these gone that have no part in what happens now."""
    return at._replace(state=replace(at.state, lost=kinds))


def _without(*serials: str) -> tuple[DeviceShown, ...]:
    gone = "it was unplugged or hung up"
    return tuple(
        replace(one, state="lost", why=gone) if one.serial in serials else one for one in DEVICES
    )


@cache
def designed() -> tuple[Designed, ...]:
    """All of them."""
    states = {**by_name(), **_seldom()}
    # A prompt that has a longer name too is shown once.
    longer = {id(at) for name, at in states.items() if name not in _BARE}
    made = [
        Designed(name, at)
        for name, at in states.items()
        if name not in _BARE or id(at) not in longer
    ]
    turn, wagers, pay = states["decide"], states["take_wagers"], states["pay"]
    rule = states["rule misdeal"]
    closed = At(turn.game, turn.procedure, State(), {})
    nobody = Around(dealer=None)
    made += [
        Designed("closed", closed),
        Designed("closed, nobody deals", closed, nobody, WATCHES, ()),
        Designed("nobody deals", turn, nobody, WATCHES, ()),
        Designed(
            "only watching", turn, Around(dealer=DealerShown("D1", "Dana", "console")), WATCHES, ()
        ),
        Designed("only watching wagers", wagers, here=WATCHES, signed=()),
        Designed("payment again", pay, Around(again=True)),
        Designed("stopped record", turn, Around(stopped=DISK)),
        Designed("clock in doubt", turn, Around(quality="unsynced")),
        Designed("shoe lost", turn, Around(devices=(LOST, *DEVICES[1:]))),
        Designed("shuffler lost", turn, Around(devices=(DEVICES[0], AWAY, *DEVICES[2:]))),
        Designed("a station lost", _lost(turn, "station"), Around(devices=_without("ST-0003"))),
        Designed(
            "only watching, many troubles",
            _lost(max(states.values(), key=lambda at: len(at.state.holds)), "shuffler", "station"),
            Around(devices=_without(*(one.serial for one in DEVICES[1:]))),
            WATCHES,
            (),
        ),
        Designed("device held", wagers, Around(devices=(HELD, *DEVICES[1:]))),
        Designed(
            "device held, nobody deals",
            closed,
            Around(dealer=None, devices=(HELD, *DEVICES[1:])),
            WATCHES,
            (),
        ),
        Designed("shuffle did not begin", states["await_shuffle"], Around(problem=SHUFFLE)),
        Designed("connection lost", turn, lost=1),
        Designed("session over", turn, lost=401),
        Designed("refused", states["clear"], refuses="Seat 2 is still to be paid."),
        Designed("recorded", states["shoe ran out"], notes=TEXTS("doors.recorded")),
        Designed("sign in", closed, nobody, WATCHES, (), open="sign-in"),
        Designed("looks", turn, open="open-looks"),
        Designed("keys", turn, open="open-keys"),
        Designed("something is wrong", turn, open="open-sheet"),
        Designed("the shoe is empty", states["deal"], open="act-shoeranout"),
        Designed("something is wrong, wagers", wagers, open="open-sheet"),
        Designed("amount of a wager", wagers, open="act-wagerplaced-1"),
        Designed("a card from the felt", states["enter_card"], open="act-cardentered"),
        Designed("two people sign", rule, open="act-floorruled-void"),
        Designed("the floor signs", states["confirm_card"], open="act-cardconfirmed"),
        Designed("the bank is counted", closed, open="act-tableopened"),
        Designed("record not witnessed for days", turn, Around(witness=SEEN, utc=NOON)),
        Designed(
            "record never witnessed", wagers, Around(witness=WitnessStatus(0, NOON), utc=NOON)
        ),
        Designed("disk full in hours", turn, Around(space=SpaceStatus(NO_ROOM, 150))),
        Designed("disk full in minutes", wagers, Around(space=SpaceStatus(NO_ROOM, 0))),
    ]
    return tuple(made)


def named(name: str) -> Designed:
    """StopIteration for a name that there is not."""
    return next(one for one in designed() if one.name == name)


# --- how they come into a browser -------------------------------------------------------------

Show = Callable[[Designed], Awaitable[Page]]


class _Desk:
    """Answers a browser as the table's pages would, of one state."""

    def __init__(self, looks: Appearance) -> None:
        self.appearance = looks
        self.state: Designed | None = None
        self._open: list[Route] = []
        """Streams on which nothing is told."""

    async def hang_up(self) -> None:
        while self._open:
            await self._open.pop().abort()

    async def answer(self, route: Route) -> None:
        state = self.state
        assert state is not None
        path = urlsplit(route.request.url).path
        if path.startswith("/static/"):
            _, _, hashed, name = path.split("/")
            found = STATIC.answer(hashed, name)
            assert found is not None, path
            await route.fulfill(body=bytes(found.body), content_type=found.media_type)
        elif path == "/stream":
            await self._stream(state, route)
        elif path == "/act":
            said = {"said": state.refuses or state.notes, "stays": bool(state.notes)}
            await route.fulfill(json={"done": not state.refuses, **said})
        else:
            await route.fulfill(
                body=state.html(self.appearance), content_type="text/html", headers=dict(HEADERS)
            )

    async def _stream(self, state: Designed, route: Route) -> None:
        if state.lost == 1:
            await route.abort()
        elif state.lost:
            await route.fulfill(status=state.lost, body="")
        else:
            self._open.append(route)


@asynccontextmanager
async def drawn(
    browser: Browser, size: str, looks: Appearance, *, bypass_csp: bool = False
) -> AsyncIterator[Show]:
    """Shows one state after the other, in the same window."""
    width, height = SIZES[size]
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        bypass_csp=bypass_csp,
        color_scheme="dark" if looks.theme == "dark" else "light",
    )
    context.set_default_timeout(PATIENCE)
    desk = _Desk(looks)
    await context.route("**/*", desk.answer)
    page = await context.new_page()

    async def show(state: Designed) -> Page:
        await desk.hang_up()
        desk.state = state
        await page.goto(f"{ADDRESS}/")
        if state.open:
            button = page.locator(f'[id="{state.open}"], [id="sheet-{state.open}"]').first
            if not await button.is_visible():
                await page.locator("#open-sheet").click()
            await button.click()
            await page.wait_for_selector("dialog[open]")
        if state.refuses or state.notes:
            await page.locator("#answers button").first.click()
            await page.wait_for_selector("#refused:not([hidden])")
        if state.lost:
            await page.wait_for_selector("#banner:not([hidden])")
        return page

    try:
        yield show
    finally:
        await desk.hang_up()
        await context.close()


def artifacts() -> Path | None:
    found = os.environ.get("HOLECARD_ARTIFACTS")
    if not found:
        return None
    folder = Path(found)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def look(
    browser: Browser, states: Iterable[Designed], size: str, looks: Appearance
) -> list[tuple[str, str]]:
    """What is wrong with these: the state, and what."""
    found = []
    folder = artifacts()
    async with drawn(browser, size, looks, bypass_csp=True) as show:
        for state in states:
            page = await show(state)
            wrong = await wrong_with(page, dialog=bool(state.open))
            found += [(f"{state.name} at {size}, {looks.theme}", one) for one in wrong]
            if folder is not None:
                await page.screenshot(
                    path=folder / file_name(state, size, looks), animations="disabled"
                )
    return found


THEMES: Final = (Appearance(theme="dark"), Appearance(theme="light", suits="four"))


WINDOWS: Final = tuple(product(SIZES, THEMES))


def file_name(state: Designed, size: str, looks: Appearance) -> str:
    return f"{state.name.replace(',', '').replace(' ', '-')}.{size}.{looks.theme}.png"
