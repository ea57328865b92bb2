"""The console as a value: everything that the dealer's screen shows.

A pure function of the view, the game and the viewer. It contains no face-down card.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import ascii_lowercase, digits
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from controller.api.contract.view import View, prompt_of
from controller.procedure.model.effects import Tell
from controller.procedure.model.game import Game
from controller.procedure.prompts import MoneyFormat, Texts, parts_of, sentence
from controller.rules.cards import RANKS, SUITS
from controller.screens.common.felt import DealersDrawing, felt_of
from controller.screens.console.text import HouseTerms
from controller.screens.console.view.allowed_acts import ActButton, AllowedActs
from controller.screens.console.view.bets import Payments, WagerPanel, payments_of, wagers_of
from controller.screens.console.view.buttons import (
    MenuGroup,
    adoptions,
    answers,
    call_floor,
    groups,
    tests,
)
from controller.screens.console.view.status import (
    ConsoleAlert,
    TableStatus,
    Viewer,
    alerts_of,
    status_of,
)

RESERVED: Final = {"sheet": "x", "sign": "i", "keys": "?"}
"""Keys of the page itself."""
_ALL: Final = ascii_lowercase + digits


def with_keys(
    main: tuple[ActButton, ...], aside: tuple[ActButton, ...], wagers: WagerPanel | None
) -> tuple[tuple[ActButton, ...], tuple[ActButton, ...], WagerPanel | None]:
    """Returns the buttons with their keys; earlier ones choose first."""
    seats = () if wagers is None else wagers.seats
    named = dict(_named((*aside, *main, *[action for seat in seats for action in seat.enter])))

    def keyed(actions: tuple[ActButton, ...]) -> tuple[ActButton, ...]:
        return tuple(replace(one, key=named[one.id]) for one in actions)

    if wagers is not None:
        # Buttons that take back a wager have none: a key would not name the seat.
        changed = (replace(seat, enter=keyed(seat.enter)) for seat in wagers.seats)
        wagers = replace(wagers, seats=tuple(changed))
    return keyed(main), keyed(aside), wagers


def _named(actions: Iterable[ActButton]) -> Iterator[tuple[str, str]]:
    every = tuple(actions)
    taken = set(RESERVED.values())
    wished: dict[str, str] = {}
    for one in every:
        if one.preferred_key and one.preferred_key not in taken:
            wished[one.id] = one.preferred_key
            taken.add(one.preferred_key)
    for one in every:
        key = wished.get(one.id) or _free(one.label, taken)
        taken.add(key)
        yield one.id, key


def _free(label: str, taken: set[str]) -> str:
    """Returns the first free letter of the label, or any free key; empty if all are taken."""
    return next((one for one in f"{label.lower()}{_ALL}" if one in _ALL and one not in taken), "")


Tone: TypeAlias = Literal["usual", "floor", "held", "stopped", "closed"]
_DRAWING: Final = DealersDrawing()
_STOPPED: Final = (
    Tell.RULE,
    Tell.ENTER_CARD,
    Tell.CONFIRM_CARD,
    Tell.AWAIT_DEVICE,
    Tell.CONFIRM_FELT,
    Tell.REFILL,
)
_SHOE_ACTS: Final = (Tell.BURN, Tell.DEAL, Tell.LOAD_SHOE, Tell.TAKE_WAGERS)


class Instruction(Struct, frozen=True):
    """The instruction: one large line and its details."""

    to: str
    """Who is asked, if not the dealer."""
    large: str
    small: tuple[str, ...]
    near: tuple[str, ...]
    """Bonuses that are one card away."""
    tone: Tone
    note: str
    """Who else can answer: a station, the shoe."""
    code: str


class ConsolePage(Struct, frozen=True):
    seq: int
    say: str
    controls: bool
    instruction: Instruction
    actions: tuple[ActButton, ...]
    aside: tuple[ActButton, ...]
    """The button that calls the floor."""
    groups: tuple[MenuGroup, ...]
    wagers: WagerPanel | None
    payments: Payments | None
    felt: str
    """The SVG."""
    felt_words: tuple[str, ...]
    troubles: tuple[ConsoleAlert, ...]
    status: TableStatus
    chips: tuple[tuple[str, int], ...]
    """The chips and their values, the smallest first."""
    unit: int
    """The smallest unit of amounts."""
    symbol: str
    digits: int
    ranks: tuple[tuple[str, str], ...]
    suits: tuple[tuple[str, str], ...]
    sheet_key: str = RESERVED["sheet"]
    sign_key: str = RESERVED["sign"]


def console_of(view: View, game: Game, here: Viewer, texts: Texts) -> ConsolePage:
    money = MoneyFormat(view.currency.symbol, view.currency.minor_digits)
    terms = HouseTerms(texts, money)
    offers = AllowedActs(view, game, terms)
    instruction, say = _instruction(offers, terms)
    nobody = view.dealer is None
    may = not view.stopped
    main = tuple(one for one in answers(offers, terms) if may and _here(one, here, nobody))
    aside = call_floor(offers, terms) if may and here.controls else ()
    wagers = wagers_of(offers, terms) if may and here.controls else None
    main, aside, wagers = with_keys(main, aside, wagers)
    felt = felt_of(offers.state, game.seats, terms, guides=True)
    return ConsolePage(
        view.seq,
        say,
        here.controls and may,
        instruction,
        main,
        aside,
        _sheet(offers, terms, here, nobody) if may else (),
        wagers,
        payments_of(offers, terms),
        _DRAWING.picture(felt),
        felt.words,
        alerts_of(view, terms),
        status_of(view, game, here, terms),
        tuple(
            (chip.name, chip.value) for chip in sorted(game.options.chips, key=lambda c: c.value)
        ),
        game.money.unit,
        money.symbol,
        money.minor_digits,
        tuple((rank.replace("T", "10"), texts(f"console.rank.{rank}")) for rank in RANKS),
        tuple((suit, texts(f"console.suit.{suit}")) for suit in SUITS),
    )


def _here(action: ActButton, here: Viewer, nobody: bool) -> bool:
    """The dealer acts where they have signed in; the floor there, or anywhere while no dealer is
    signed in."""
    return here.controls or (action.people > 0 and nobody)


def _sheet(o: AllowedActs, t: HouseTerms, here: Viewer, nobody: bool) -> tuple[MenuGroup, ...]:
    if here.controls:
        found = groups(o, t)
    else:
        held = adoptions(o, t) if nobody else ()
        found = (MenuGroup("floor", t.texts("console.group.floor"), held),) if held else ()
    if here.tests and (tested := tests(o, t)):
        found += (MenuGroup("devices", t.texts("console.group.devices"), tested),)
    return tuple(
        replace(group, actions=tuple(_in_sheet(one) for one in group.actions)) for group in found
    )


def _in_sheet(action: ActButton) -> ActButton:
    """In the menu only acts that need care stand out."""
    look = "care" if action.look == "care" else "quiet"
    return replace(action, id=f"sheet-{action.id}", look=look)


# --- the instruction --------------------------------------------------------------------------


def _instruction(o: AllowedActs, t: HouseTerms) -> tuple[Instruction, str]:
    view, texts = o.view, t.texts
    if view.stopped and view.soon:
        moment, code = texts("console.fault.moment"), texts("console.fault.code_moment")
        return _fault(moment, view.stopped, texts("console.fault.by_itself"), code=code)
    if view.stopped:
        return _fault(
            texts("console.fault.stopped"),
            view.stopped,
            texts("console.fault.call"),
            code=texts("console.fault.code_record"),
        )
    prompt = view.prompt
    if prompt is None:
        code = texts("console.fault.code", code=view.step.value)
        return _fault(texts("console.fault.no_prompt"), texts("console.fault.wait"), code=code)
    several = sum(hand.seat == prompt.seat for hand in o.state.hands) > 1
    worded = prompt_of(prompt)
    head, tail = parts_of(worded, t, several=several)
    say = sentence(worded, t, several=several)
    if (
        prompt.tell in (Tell.PAY, Tell.COLLECT, Tell.GIVE_BACK)
        and o.game.jurisdiction.declare_payments
    ):
        say = " - ".join((*head, texts("console.say.declare")))
        tail = (texts("console.say.declare"),)
    if prompt.tell is Tell.TAKE_WAGERS:
        bets = ", ".join(t.bet(bet) for bet in prompt.choices)
        head, tail = (texts("console.say.wagers"),), (bets, *tail)
    near = tuple(t.near(one, prompt.count + 1) for one in prompt.near)
    small = tuple(part for part in tail if part not in near)
    to = texts("console.say.to_floor") if prompt.to == "floor" else ""
    if view.again:
        say = f"{texts('console.pay.again')} {say}"
    return Instruction(to, " - ".join(head), small, near, _tone(o), _note(o, t), ""), say


def _fault(large: str, *small: str, code: str) -> tuple[Instruction, str]:
    return Instruction("", large, small, (), "stopped", "", code), " - ".join((large, *small))


def _tone(o: AllowedActs) -> Tone:
    prompt = o.view.prompt
    if prompt is None or prompt.tell in _STOPPED:
        return "held"
    if prompt.tell is Tell.OPEN_TABLE:
        return "closed"
    return "floor" if prompt.to == "floor" else "usual"


def _note(o: AllowedActs, t: HouseTerms) -> str:
    """Who answers, if not or not only a button."""
    prompt = o.view.prompt
    if prompt is None:
        return ""
    if prompt.tell in _SHOE_ACTS and o.state.spare is None:
        ready = prompt.tell is not Tell.TAKE_WAGERS or bool(o.state.seats)
        return t.texts(f"console.note.{prompt.tell.value}") if ready else ""
    asked = prompt.tell in (Tell.DECIDE, Tell.ASK_INSURANCE, Tell.ASK_NATURAL)
    if asked and o.game.buttons:
        return t.texts("console.note.station" if o.dealers("Hit") else "console.note.station_only")
    return ""
